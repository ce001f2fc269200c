"""Which 3x3 convolutions Winograd's algorithm makes faster, and with which tile.

F(m x m, 3x3) takes (m + 2)^2 products a tile in place of 9 m^2, but its kernel has (m + 2)^2 values
in place of 9, which a model longer than the caches reads from memory in every run.  A convolution
of KD x 3 x 3 takes KD times as many of both, of tiles that are transformed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from slipway.relay.dims import lower_bound, usual
from slipway.relay.expr import Call
from slipway.relay.open_dims import has_open
from slipway.target.cores import Core, core_of
from slipway.transform.graph.precision.widen_products import has_known_weight

FEWEST = 4  # channels: transforms work on vectors of them
UNIT = 64  # costs in integers have it for one product


@dataclass(frozen=True)
class WinogradCosts:
    """What the two ways take of a convolution, in products of one position's vector."""

    frames: int  # of the window: 3x3 each
    gain: float  # the part of the direct way's time from which Winograd's is chosen
    each: float  # a product, with the transforms of its element
    reading: Callable[[int], float]  # a kernel of so many elements for each pair of channels

    def of_tiles(self, m: int, images: int, height: int, width: int) -> float:
        """Return what tiles of m by m take."""
        tiles = images * -(-height // m) * -(-width // m)
        elements = self.frames * (m + 2) ** 2
        return elements * tiles * self.each + self.reading(elements)

    def most(self, images: int, height: int, width: int) -> float:
        """Return what tiles may take, so that they are chosen."""
        taps = 9 * self.frames
        return self.gain * (taps * images * height * width + self.reading(taps))

    def as_integers(self, m: int) -> dict[str, int]:
        """Return what a tile, reading its kernel, and a position take, in a common unit."""
        parts = {
            "tile_cost": (m + 2) ** 2 * self.each,
            "kernel_cost": self.reading((m + 2) ** 2) - self.gain * self.reading(9),
            "position_cost": 9 * self.gain,
        }
        return {name: round(part * UNIT) for name, part in parts.items()}


def winograd_costs(
    call: Call, lanes: int, speed: int = 1, core: Core | None = None
) -> WinogradCosts | None:
    """Return the costs of a convolution that Winograd's algorithm may compute, else None.

    `lanes` is the number of channels in a vector; `speed` how many products the direct way, which
    may use another type, does for one of Winograd's; `core` a usual one, if it is not given.
    """
    core = core or core_of("", 32 * lanes, {})
    costs, product = core.costs, 32 * lanes / core.fma_bits
    kernel, attrs = call.args[1].tensor_type, call.attrs
    frames, window = kernel.shape[2:-2], kernel.shape[-2:]
    if not (
        kernel.rank in (4, 5)
        and window == (3, 3)
        and {*attrs.strides, *attrs.dilation} == {1}
        and has_known_weight(call)
        and not (frames and has_open(call.type))
        and min(kernel.shape[:2]) >= FEWEST
    ):
        return None
    # Multiply-adds for each element of a tile, which is transformed for its channels alone.
    is_few = min(kernel.shape[:2]) < costs.winograd_channels
    transform = costs.few_transform_products if is_few else costs.transform_products
    count = prod(frames)
    each = 1 + transform * sum(1 / channels for channels in kernel.shape[:2]) / count

    def reading(elements: int) -> float:
        kernel_bytes = 4 * elements * kernel.shape[0] * kernel.shape[1]
        cold = kernel_bytes >= costs.cold_bytes
        cycles = costs.cold_weight_cycles if cold else costs.weight_cycles
        return elements * cycles * lanes / product

    return WinogradCosts(count, costs.winograd_gain / speed, each, reading)


def winograd_tile(call: Call, lanes: int, speed: int = 1, core: Core | None = None) -> int:
    """Return the m of the F(m x m, 3x3) that takes the least time for a convolution; 0: none does.

    The arguments are those of `winograd_costs`.
    """
    costs = winograd_costs(call, lanes, speed, core)
    if costs is None:
        return 0
    images, height, width = _images(call)
    best = min((2, 4), key=lambda m: costs.of_tiles(m, images, height, width))
    within = costs.of_tiles(best, images, height, width) <= costs.most(images, height, width)
    return best if within else 0


def _images(call: Call) -> tuple[int, int, int]:
    """Return the number of images of the result, those of all frames, their height and width."""
    batch, _, *frames, height, width = map(usual, call.tensor_type.shape)
    return batch * prod(frames), height, width


def winograd_part(call: Call, lanes: int, tile: int, core: Core | None) -> float:
    """Return the time of tiles of a fixed size, as a part of the direct way's on blocks."""
    costs = winograd_costs(call, lanes, 1, core)
    assert costs is not None
    images, height, width = _images(call)
    direct = costs.most(images, height, width) / costs.gain
    return costs.of_tiles(tile, images, height, width) / direct


def small_is_direct(call: Call, lanes: int, tile: int, core: Core | None) -> WinogradCosts | None:
    """Return the costs of a convolution of open size whose smallest images are best direct."""
    costs = winograd_costs(call, lanes, 1, core)
    if costs is None or not has_open(call.type):
        return None
    images, _, height, width = map(lower_bound, call.tensor_type.shape)
    # Of few rows the direct way's tiles take so much more that nothing need be gained beforehand:
    # 128 channels of 9x5 took 1.6 of the time of Winograd's tiles.
    costs = replace(costs, gain=1.0)
    fits = costs.of_tiles(tile, images, height, width) <= costs.most(images, height, width)
    return None if fits else costs
