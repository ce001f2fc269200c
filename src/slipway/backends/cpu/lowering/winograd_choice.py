"""Which 3x3 convolutions Winograd's algorithm makes faster, and with which tile.

F(m x m, 3x3) takes (m + 2)^2 products a tile in place of 9 m^2, but its kernel has (m + 2)^2 values
in place of 9, which a model longer than the caches reads from memory in every run.
"""

from __future__ import annotations

from slipway.relay.expr import Call
from slipway.transform.graph.widen_products import has_known_weight

# Cycles for each pair of an input and an output channel.
_PRODUCT = 0.5  # two multiply-adds start in a cycle, each for one vector of channels
_TRANSFORM = 2.4  # for one element of a vector of tiles, in and out
_VALUE = 0.35  # to read a float32 of the kernel: 11 bytes a cycle come from beyond the caches
_VALUE_OF_MANY = 0.5  # the same where the kernel is so long that none of it stays in the cache
_MANY_BYTES = 8 << 20
# What the products of few tiles lose, and what is not counted here.
_WORTHWHILE = 0.85


def winograd_tile(call: Call, lanes: int, speed: int = 1) -> int:
    """Return the m of the F(m x m, 3x3) that takes the least time for an nn.conv2d; 0: none does.

    `lanes` is the number of channels in a vector; `speed` how many products the direct way, which
    may use another type, does for one of Winograd's.
    """
    kernel, attrs, out = call.args[1].tensor_type, call.attrs, call.tensor_type
    if not (
        kernel.shape[2:] == (3, 3)
        and tuple(attrs.strides) == (1, 1)
        and tuple(attrs.dilation) == (1, 1)
        and has_known_weight(call)
        and min(kernel.shape[:2]) >= 16
    ):
        return 0
    images, _, height, width = out.shape
    transform = _TRANSFORM * sum(1 / channels for channels in kernel.shape[:2])

    def reading(elements: int) -> float:
        kernel_bytes = 4 * elements * kernel.shape[0] * kernel.shape[1]
        return elements * (_VALUE if kernel_bytes < _MANY_BYTES else _VALUE_OF_MANY)

    def cost(m: int) -> float:
        elements = (m + 2) ** 2
        tiles = images * -(-height // m) * -(-width // m)
        return elements * tiles / lanes * (_PRODUCT + transform) + reading(elements)

    direct = 9 * images * height * width / lanes * _PRODUCT + reading(9)
    best = min((2, 4), key=cost)
    return best if cost(best) <= _WORTHWHILE * direct / speed else 0
