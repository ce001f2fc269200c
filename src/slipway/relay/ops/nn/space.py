"""Blocks of pixels into channels or into the batch, and back: reshapes and transposes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.relay.op_registry import BadArgument
from slipway.relay.ops.build import call, known, known_ints, typed
from slipway.relay.ops.checks import need_rank

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike


def _sides(layout: str, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return batch, channels, height and width."""
    if layout not in ("NCHW", "NHWC"):
        raise BadArgument("layout", f"is {layout!r}; use NCHW or NHWC")
    extents = dict(zip(layout, shape, strict=True))
    return extents["N"], extents["C"], extents["H"], extents["W"]


def depth_to_space(data: ExprLike, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Any:
    """Make a block of pixels of each run of channels.

    In mode "DCR" the place in the block is the slowest part of a channel's number, in "CRD" the
    fastest.
    """
    x, own = typed(data)
    need_rank("data", own, 4)
    mode = "CRD" if mode == "CDR" else mode  # as TVM's documentation spells it
    if mode not in ("DCR", "CRD"):
        raise BadArgument("mode", f"is {mode!r}; use 'DCR' or 'CRD'")
    n, c, h, w = _sides(layout, own.shape)
    b = int(block_size)
    if b < 1 or c % (b * b):
        raise BadArgument("block_size", f"is {block_size}, whose square does not divide {c}")
    if layout == "NCHW":
        parts = (n, b, b, c // b**2, h, w) if mode == "DCR" else (n, c // b**2, b, b, h, w)
        order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
        shape = (n, c // b**2, h * b, w * b)
    else:
        parts = (n, h, w, b, b, c // b**2) if mode == "DCR" else (n, h, w, c // b**2, b, b)
        order = (0, 1, 3, 2, 4, 5) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
        shape = (n, h * b, w * b, c // b**2)
    return call("reshape", call("transpose", call("reshape", x, parts), order), shape)


def space_to_depth(data: ExprLike, block_size: int, layout: str = "NCHW") -> Any:
    """Make channels of blocks of pixels; depth_to_space in mode "DCR" is the way back."""
    x, own = typed(data)
    need_rank("data", own, 4)
    n, c, h, w = _sides(layout, own.shape)
    b = int(block_size)
    if b < 1 or h % b or w % b:
        raise BadArgument("block_size", f"is {block_size}, which does not divide {h} and {w}")
    if layout == "NCHW":
        parts, order = (n, c, h // b, b, w // b, b), (0, 3, 5, 1, 2, 4)
        shape = (n, c * b * b, h // b, w // b)
    else:
        parts, order = (n, h // b, b, w // b, b, c), (0, 1, 3, 2, 4, 5)
        shape = (n, h // b, w // b, c * b * b)
    return call("reshape", call("transpose", call("reshape", x, parts), order), shape)


def _pairs(argument: str, value: Any, count: int) -> list[tuple[int, int]]:
    numbers = known(argument, value)
    if numbers.shape != (count, 2) or (numbers < 0).any():
        raise BadArgument(argument, f"must be {count} pairs of numbers, not negative")
    return [(int(a), int(b)) for a, b in numbers]


def space_to_batch_nd(
    data: ExprLike, block_shape: ExprLike, paddings: ExprLike, pad_value: float = 0
) -> Any:
    """Pad the axes behind the batch, and make batches of the places in their blocks."""
    x, own = typed(data)
    blocks = known_ints("block_shape", block_shape)
    count = len(blocks)
    if count >= own.rank or min(blocks, default=1) < 1:
        raise BadArgument("block_shape", f"{blocks} does not fit {own}")
    others = own.rank - 1 - count
    amounts = [(0, 0), *_pairs("paddings", paddings, count), *[(0, 0)] * others]
    if any(a or b for a, b in amounts):
        x = call("nn.pad", x, amounts, pad_value)
    batch, *sizes = x.tensor_type.shape
    parts, shape = [batch], [batch]
    for size, block in zip(sizes, blocks, strict=False):
        if size % block:
            raise BadArgument("block_shape", f"{blocks} does not divide the padded {sizes}")
        parts += [size // block, block]
        shape[0] *= block
        shape.append(size // block)
    tail = sizes[count:]
    inner = [2 + 2 * i for i in range(count)]
    outer = [1 + 2 * i for i in range(count)]
    order = [*inner, 0, *outer, *range(1 + 2 * count, 1 + 2 * count + others)]
    return call(
        "reshape", call("transpose", call("reshape", x, [*parts, *tail]), order), [*shape, *tail]
    )


def batch_to_space_nd(data: ExprLike, block_shape: ExprLike, crops: ExprLike) -> Any:
    """Put batches back into the blocks that they are the places of, and cut the crops off."""
    x, own = typed(data)
    blocks = known_ints("block_shape", block_shape)
    count, total = len(blocks), 1
    for block in blocks:
        total *= block
    if count >= own.rank or min(blocks, default=1) < 1 or own.shape[0] % total:
        raise BadArgument("block_shape", f"{blocks} does not fit {own}")
    crops_of_axes = _pairs("crops", crops, count)
    batch, sizes = own.shape[0] // total, own.shape[1:]
    parts = [*blocks, batch, *sizes]
    order = [count]
    shape = [batch]
    for i, block in enumerate(blocks):
        order += [count + 1 + i, i]
        shape.append(sizes[i] * block)
    order += range(2 * count + 1, len(parts))
    shape += sizes[count:]
    x = call("reshape", call("transpose", call("reshape", x, parts), order), shape)
    begin = [0, *(a for a, _ in crops_of_axes), *[0] * (len(shape) - 1 - count)]
    end = [shape[0], *(d - b for d, (_, b) in zip(shape[1:], crops_of_axes, strict=False)),
           *shape[1 + count :]]  # fmt: skip
    if any(a >= b for a, b in zip(begin, end, strict=True)):
        raise BadArgument("crops", f"{crops_of_axes} leave nothing of {shape}")
    return call("strided_slice", x, begin, end)
