"""Which 3x3 convolutions Winograd's algorithm makes faster, and with which tile.

F(m x m, 3x3) takes (m + 2)^2 products a tile in place of 9 m^2, but its kernel has (m + 2)^2 values
in place of 9, which a model longer than the caches reads from memory in every run.
"""

from __future__ import annotations

from slipway.relay.dims import usual
from slipway.relay.expr import Call
from slipway.target.cores import Core, core_of
from slipway.transform.graph.precision.widen_products import has_known_weight


def winograd_tile(call: Call, lanes: int, speed: int = 1, core: Core | None = None) -> int:
    """Return the m of the F(m x m, 3x3) that takes the least time for an nn.conv2d; 0: none does.

    `lanes` is the number of channels in a vector; `speed` how many products the direct way, which
    may use another type, does for one of Winograd's; `core` a usual one, if it is not given.
    """
    core = core or core_of("", 32 * lanes, {})
    costs, product = core.costs, 32 * lanes / core.fma_bits
    kernel, attrs, out = call.args[1].tensor_type, call.attrs, call.tensor_type
    if not (
        kernel.shape[2:] == (3, 3)
        and tuple(attrs.strides) == (1, 1)
        and tuple(attrs.dilation) == (1, 1)
        and has_known_weight(call)
        and min(kernel.shape[:2]) >= costs.winograd_channels
    ):
        return 0
    images, _, height, width = map(usual, out.shape)
    # Multiply-adds for each element of a tile, which is transformed for its channels alone.
    each = 1 + costs.transform_products * sum(1 / channels for channels in kernel.shape[:2])

    def reading(elements: int) -> float:
        kernel_bytes = 4 * elements * kernel.shape[0] * kernel.shape[1]
        cold = kernel_bytes >= costs.cold_bytes
        return elements * (costs.cold_weight_cycles if cold else costs.weight_cycles)

    # Cycles for each pair of an input and an output channel.
    def cost(m: int) -> float:
        elements = (m + 2) ** 2
        tiles = images * -(-height // m) * -(-width // m)
        return elements * tiles / lanes * product * each + reading(elements)

    direct = 9 * images * height * width / lanes * product + reading(9)
    best = min((2, 4), key=cost)
    return best if cost(best) <= costs.winograd_gain * direct / speed else 0
