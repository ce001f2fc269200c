"""Resizing along the innermost axis: the other axes first, in whole vectors, a few rows at a time.

What is left reads lane by lane, from rows in the cache, once for each tap along one axis and not
for each pair of taps along two.  A block of columns is the loop outside those rows, so that LLVM
computes once what a column reads, and its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.schedules.generic import (
    PARALLEL_ELEMENTS,
    extent_of,
    inline_injective,
    producers,
    shape_of,
    vector_lanes,
)
from slipway.backends.strategy import register_strategy
from slipway.relay import op_registry
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.op_registry import Attrs
    from slipway.relay.ops.image.resize import ResizeAttrs
    from slipway.target import Target


def resize_in_turn(
    target: Target,
    attrs: Attrs,
    inputs: Sequence[te.Tensor],
    out_types: Sequence[Type],
    along: int = -1,
) -> list[te.Tensor]:
    """Resize all axes but `along`, counted from the last, then that one."""
    (data,), (out,) = inputs, out_types
    assert isinstance(out, TensorType)
    compute = op_registry.get("image.resize").compute_function
    assert compute is not None
    shape = list(out.shape)
    shape[along] = shape_of(data)[along]
    before, behind = _only(attrs, along, False), _only(attrs, along, True)
    (part,) = compute(before, [data], [TensorType(tuple(shape), out.dtype)])
    rows = te.compute(shape, lambda *i: part(*i), name="rows", tag="injective,resized_rows")
    return list(compute(behind, [rows], [out]))


def _only(attrs: Any, along: int, itself: bool) -> Any:
    """Return the attributes for the axis `along` alone, or for all others."""
    count = len(attrs.size)
    chosen = [(axis == count + along) == itself for axis in range(count)]
    size = tuple(s if own else 0 for s, own in zip(attrs.size, chosen, strict=True))
    scales = zip(attrs.scales, chosen, strict=bool(attrs.scales))
    return attrs.replace(size=size, scales=tuple(s if own else 1.0 for s, own in scales))


def _applies(attrs: ResizeAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Floats and vectors; both of the last two axes resized, and interpolated."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    if data.rank < 2 or not dtypes.is_float(data.dtype) or attrs.method == "nearest_neighbor":
        return False
    sizes = [s or d for s, d in zip(attrs.size, data.shape, strict=True)]
    lanes = vector_lanes(target, data.dtype)
    resized = all(sizes[a] != data.shape[a] for a in (-2, -1))
    return resized and min(sizes[-1], data.shape[-1]) >= lanes > 1


@register_strategy("image.resize", name="resize.in_turn", compute=resize_in_turn, applies=_applies)
def schedule_resize(target: Target, outs: Sequence[te.Tensor], resize: te.Tensor) -> te.Schedule:
    """A few rows in the cache, and blocks of columns of them."""
    schedule = te.create_schedule([t.op for t in outs])
    (rows,) = (op.output(0) for op in producers(outs) if "resized_rows" in op.tag)
    inline_injective(schedule, outs, keep=[rows])
    (output,) = {id(t.op): t for t in outs}.values()
    lanes = vector_lanes(target, output.dtype)
    stage: Any = schedule[output]
    *outer, row, column = stage.op.axis
    room = target.core.l1_bytes // 2 // (dtypes.bytes_of(rows.dtype) * shape_of(rows)[-1])
    part, row = stage.split(row, factor=max(1, min(extent_of(row), room)), tail="shift")
    block, lane = stage.split(column, factor=lanes, tail="shift")
    stage.reorder(*outer, part, block, row, lane)
    stage.vectorize(lane)
    task = stage.fuse(*outer, part)
    if prod(shape_of(output)) >= PARALLEL_ELEMENTS:
        stage.parallel(task)
    first = schedule[rows]
    first.compute_at(stage, task)
    first.vectorize(first.split(first.op.axis[-1], factor=lanes, tail="shift")[1])
    return schedule
