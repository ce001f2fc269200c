"""Operators that put elements further apart, around, or beside: dilate, mirror_pad, fifo_buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.relay.op_registry import BadArgument, const
from slipway.relay.ops.build import call, counted, scalar, typed
from slipway.relay.ops.checks import (
    as_extents,
    integers,
    need_integral,
    need_words,
    normal_axis,
    whole,
)

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike, Extents


def dilate(data: ExprLike, strides: Extents, dilation_value: float = 0.0) -> Any:
    """Put the elements `strides` apart, and `dilation_value` between them."""
    x, own = typed(data)
    steps = integers("strides", strides)
    if len(steps) != own.rank or min(steps, default=1) < 1:
        raise BadArgument("strides", f"{steps} must have a number above 0 for each axis of {own}")
    if own.size == 0:
        return x
    inside = None
    for axis, step in enumerate(steps):
        if step == 1:
            continue
        extent, apart = (own.shape[axis] - 1) * step + 1, scalar(step, "int32")
        position = counted(extent, "int32")
        x = call("take", x, call("floor_divide", position, apart), axis)
        view = [1] * own.rank
        view[axis] = extent
        there = call("equal", call("floor_mod", position, apart), scalar(0, "int32"))
        there = call("reshape", there, view)
        inside = there if inside is None else call("logical_and", inside, there)
    return x if inside is None else call("where", inside, x, scalar(dilation_value, own.dtype))


def mirror_pad(data: ExprLike, pad_width: Sequence[Extents], mode: str = "SYMMETRIC") -> Any:
    """Continue `data` backwards over its ends; "REFLECT" leaves the last element itself out."""
    x, own = typed(data)
    kind = mode.lower()
    if kind not in ("symmetric", "reflect"):
        raise BadArgument("mode", f"is {mode!r}; use SYMMETRIC or REFLECT")
    if len(pad_width) != own.rank:
        raise BadArgument("pad_width", f"{pad_width} must have a pair for each axis of {own}")
    widths = [as_extents(amounts, 2, "pad_width") for amounts in pad_width]
    for pair, extent in zip(widths, own.shape, strict=True):
        most = extent if kind == "symmetric" else extent - 1
        if any(amount < 0 or amount > most for amount in pair):
            raise BadArgument("pad_width", f"{pad_width} reaches beyond {own}")
    return call("nn.pad", x, widths, pad_mode=kind) if any(map(any, widths)) else x


def fifo_buffer(data: ExprLike, buffer: ExprLike, axis: int) -> Any:
    """Put `data` at the end of `buffer` and leave out as much at its front."""
    (x, own), (old, kind) = typed(data), typed(buffer)
    along = normal_axis(axis, kind.rank)
    joined = call("concatenate", [old, x], along)
    begin, end = [0] * kind.rank, list(joined.tensor_type.shape)
    if own.rank != kind.rank:
        raise BadArgument("data", f"is {own}, and the buffer {kind}")
    begin[along] = own.shape[along]
    return call("strided_slice", joined, begin, end)


def bitpack(
    data: ExprLike, bits: int = 1, pack_axis: int = 1, bit_axis: int = 2, pack_type: str = "uint32",
    name: str = "BitPack",
) -> Any:  # fmt: skip
    """Put the same bit of as many elements of `pack_axis` as `pack_type` has bits into one number.

    The lowest `bits` bits are taken; those of one number lie along the new axis `bit_axis`.
    """
    x, own = typed(data)
    need_integral("data", own)
    axis = normal_axis(pack_axis, own.rank, "pack_axis")
    position = normal_axis(bit_axis, own.rank + 1, "bit_axis")
    need_words("pack_type", pack_type)
    width = 8 * dtypes.bytes_of(pack_type)
    if own.shape[axis] % width:
        raise BadArgument("pack_axis", f"has {own.shape[axis]} elements, no multiple of {width}")
    bits = whole("bits", bits, 1, width)
    groups = (*own.shape[:axis], own.shape[axis] // width, width, *own.shape[axis + 1 :])
    view = [1] * len(groups)
    view[axis + 1] = width
    worth = (np.uint64(1) << np.arange(width - 1, -1, -1, dtype=np.uint64)).astype(pack_type)
    wide = call("reshape", call("cast", x, pack_type), groups)
    planes = []
    for bit in range(bits):
        shifted = call("right_shift", wide, scalar(bit, pack_type)) if bit else wide
        plane = call("bitwise_and", shifted, scalar(1, pack_type))
        weighted = call("multiply", plane, const(worth.reshape(view)))
        planes.append(call("sum", weighted, [axis + 1]))
    return call("stack", planes, position)
