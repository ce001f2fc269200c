"""In what blocks channels lie, and where blocks do not pay: for the layout pass and schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.ir.instructions.tiles import TileInstruction
from slipway.relay.dims import lower_bound
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.target.cores import Core


def few_filters(attrs: Any, data: TensorType, kernel: TensorType, lanes: int) -> bool:
    """Return whether a 2-D convolution has so few filters that rows fill vectors better.

    A quarter of the lanes at most, which are 8 or more, and rows of as many at least, without gaps.
    """
    if data.rank != 4 or attrs.groups != 1 or attrs.strides[-1] != 1:
        return False
    span = (kernel.shape[-1] - 1) * attrs.dilation[-1]
    width = lower_bound(data.shape[-1]) + attrs.padding[1] + attrs.padding[3] - span
    return bool(max(8, 4 * kernel.shape[0]) <= lanes <= width)


def block_size(channels: int, lanes: int) -> int:
    """Return the largest power of two that divides `channels`, at most `lanes`; 1 if odd."""
    block = 1
    while block * 2 <= lanes and channels % (block * 2) == 0:
        block *= 2
    return block


def best_block(channels: int, lanes: int, core: Core | None = None) -> int:
    """Return the block, at most `lanes`, in which `channels` take the fewest vectors.

    A vector of few lanes takes as long as one of many; of equals, the smaller block.  Where one
    whole vector fills the units of `core`, two halves begin in a cycle: 24 channels take three
    halves and not two vectors of 16.  1 for fewer channels than the smallest vector has.
    """
    if channels < 4:
        return block_size(channels, lanes)
    alike = lanes // 2 if core is not None and core.fma_bits <= 32 * lanes else lanes

    def taken(block: int) -> tuple[int, int, int]:
        vectors = -(-channels // block)
        return vectors * max(block, alike), vectors, block

    return min((b for b in (4, 8, 16, 32, 64) if b <= lanes), key=taken)


def row_block(units: int, widest: int, lanes: int) -> int:
    """Return the block of `units` for a product of one row; 0: none.

    Whole vectors of `lanes`, two at least: the widest block that fills `units` up by a sixteenth at
    most, else that which pads least.  All of it is read once, so that a part of the padding is a
    part of the time.  Where blocks of two vectors pad by more than a third, one vector or a part.
    """
    wide = [b for b in range(widest, lanes, -lanes) if 3 * (-units % b) <= units]
    if not wide:
        parts = [lanes >> n for n in range(lanes.bit_length()) if lanes >> n >= 4]
        return next((b for b in parts if 3 * (-units % b) <= units), 0)
    tightest = min(wide, key=lambda b: (-units % b, -b))
    return next((b for b in wide if 16 * (-units % b) <= units), tightest)


def filled_block(channels: int, entry: TileInstruction) -> int:
    """Return the block of channels that a step on tiles reads whole, or half of it.

    That for channels which a whole one would pad by more than a quarter.
    """
    whole = 2 * entry.c_size
    return whole if -channels % whole * 4 <= channels else entry.c_size
