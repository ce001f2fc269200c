"""Resizing along the innermost axis: the other axes first, in whole vectors, a few rows at a time.

What is left reads lane by lane, from rows in the cache, once for each tap along one axis and not
for each pair of taps along two.  A block of columns is the loop outside those rows, so that LLVM
computes once what a column reads, and its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.knobs import (
    RowKnobs,
    copied_elements,
    row_space,
    streamed_cycles,
    vector_lanes,
)
from slipway.backends.cpu.schedules.register_tile import vector_loop
from slipway.backends.stages import inline_injective, shape_of, tagged
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay import op_registry
from slipway.relay.dims import usual
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.image.resize import ResizeAttrs
    from slipway.target import Target

READS = 4  # of an element that is interpolated along two axes
_FEWEST = 4  # lanes


@dataclass(frozen=True)
class ResizeKnobs(RowKnobs):
    """Also of rows that are interpolated together: `rows` of an image, or blocks of channels."""

    rows: int


def separable_resize(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: ResizeKnobs, along: int = -1
) -> list[te.Tensor]:
    """Resize all axes but `along`, counted from the last, then that one."""
    (data,), (out,), attrs = inputs, problem.out_types, problem.attrs
    assert isinstance(out, TensorType)
    compute = op_registry.get("image.resize").compute_function
    assert compute is not None
    shape = list(out.shape)
    shape[along] = shape_of(data)[along]
    before, after = _only(attrs, along, False), _only(attrs, along, True)
    (part,) = compute(before, [data], [TensorType(tuple(shape), out.dtype)])
    rows = te.compute(shape, lambda *i: part(*i), name="rows", tag="injective,resized_rows")
    return list(compute(after, [rows], [out]))


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
    resized = all(sizes[a] != data.shape[a] for a in (-2, -1))
    row = min(sizes[-1], data.shape[-1])
    return resized and row_lanes(row, target, data.dtype) >= _FEWEST


def row_lanes(row: Any, target: Target, dtype: str) -> int:
    """Return the lanes of vectors of rows, of which one of `row` elements fills one at least."""
    lanes = vector_lanes(target, dtype)
    while lanes > 1 and not row >= lanes:
        lanes //= 2
    return lanes


def _default(problem: Problem) -> ResizeKnobs:
    """Rows that fill half of the nearest cache."""
    (out,), (data,), core = problem.out_types, problem.in_types, problem.target.core
    room = core.l1_bytes // 2 // size_bytes_of_row(data)
    lanes = row_lanes(min(out.shape[-1], data.shape[-1]), problem.target, out.dtype)
    share_from = copied_elements(problem.target) // READS
    return ResizeKnobs(lanes, share_from, max(1, min(out.shape[-2], room)))


def size_bytes_of_row(data: TensorType) -> int:
    """Return the bytes of a row that is interpolated along the other axes."""
    return dtypes.bytes_of(data.dtype) * data.shape[-1]


def _space(problem: Problem) -> Space:
    (out,), (data,) = problem.out_types, problem.in_types
    lanes = vector_lanes(problem.target, out.dtype)
    space = row_space(problem, min(lanes, out.shape[-1], data.shape[-1]))
    return {**space, "rows": range(1, out.shape[-2] + 1)}


def resize_cost(problem: Problem, knobs: ResizeKnobs) -> float:
    """Predict a resize: two taps of an axis, a multiply-add each, for each of two axes."""
    return streamed_cycles(problem, knobs.lanes, 4)


@register_strategy(
    "image.resize", name="resize.in_turn", compute=separable_resize, applies=_applies,
    default=_default, space=_space, cost=resize_cost,
)  # fmt: skip
def schedule_resize(
    problem: Problem, outs: Sequence[te.Tensor], resize: te.Tensor, knobs: ResizeKnobs
) -> te.Schedule:
    """A few rows in the cache, and blocks of columns of them."""
    schedule = te.create_schedule([t.op for t in outs])
    rows = tagged(outs)["resized_rows"]
    inline_injective(schedule, outs, keep=[rows])
    (output,) = {id(t.op): t for t in outs}.values()
    lanes = knobs.lanes
    stage: Any = schedule[output]
    *outer, row, column = stage.op.axis
    part, row = stage.split(row, factor=knobs.rows, tail="shift")
    block, lane = stage.split(column, factor=lanes, tail="shift")
    stage.reorder(*outer, part, block, row, lane)
    stage.vectorize(lane)
    task = stage.fuse(*outer, part)
    if usual(prod(shape_of(output))) >= knobs.share_from:
        stage.parallel(task)
    first = schedule[rows]
    first.compute_at(stage, task)
    vector_loop(first, first.op.axis[-1], lanes)
    return schedule
