"""The nearest elements, where their positions are no whole steps: found once for each axis.

    places_h[h], places_w[w]                                 a few numbers of each axis
    out[n, c, h, w] = data[n, c, places_h[h], places_w[w]]

A place takes two divisions of float64, as a tie decides which element is read.  Along an axis that
others lie inside of, whole vectors are copied; along the innermost, element by element.  Where rows
are there several times, that is done once for each row of the data::

    rows[n, c, h, w] = data[n, c, h, places_w[w]]
    out[n, c, h, w] = rows[n, c, places_h[h], w]
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import LoopKnobs, loop_knobs, loop_space, streamed_cycles
from slipway.backends.cpu.schedules.generic import parallel_outer, schedule_elementwise_stage
from slipway.backends.stages import (
    Loop,
    inline_injective,
    new_schedule,
    producers,
    shape_of,
    split,
)
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import is_open
from slipway.relay.ops.image.resize import nearest_position, resized_axes, steps_whole
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.image.resize import ResizeAttrs
    from slipway.target import Target

_COPIES = 4  # of the loop along a row
_COPIED = 4  # elements are copied in vectors in the time of one whose position is looked up
_TAG, _ROWS = "resize_positions", "resize_rows"
_WORTH_ROWS = 2  # times that a row is there


def _kept_axes(attrs: ResizeAttrs, shape: Sequence[int], size: Sequence[int]) -> list[int]:
    """Return the axes whose positions are kept; none where there is nothing to find."""
    axes = resized_axes(attrs, shape, size)
    return [a for a in axes if not steps_whole(attrs, a, shape[a], size[a])]


def _sizes(attrs: ResizeAttrs, data: TensorType) -> list[int]:
    return [s or d for s, d in zip(attrs.size, data.shape, strict=True)]


def _applies(attrs: ResizeAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Several rows, so that positions serve more than one."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    if attrs.method != "nearest_neighbor" or any(map(is_open, (*data.shape, *attrs.size))):
        return False
    size = _sizes(attrs, data)
    axes = _kept_axes(attrs, data.shape, size)
    return bool(axes) and prod(size) >= 4 * sum(size[a] for a in axes)


def _compute(problem: Problem, inputs: Sequence[te.Tensor], knobs: LoopKnobs) -> list[te.Tensor]:
    """The stages of the module's text."""
    (data,), (out,), attrs = inputs, problem.out_types, problem.attrs
    assert isinstance(out, TensorType)
    shape = shape_of(data)
    positions: dict[int, Any] = {
        axis: te.compute(
            (out.shape[axis],),
            lambda i, a=axis: nearest_position(attrs, a, shape[a], out.shape[a], i),
            name="positions",
            tag=_TAG,
        )
        for axis in _kept_axes(attrs, shape, out.shape)
    }
    whole = [a for a in resized_axes(attrs, shape, out.shape) if a not in positions]
    last = len(shape) - 1
    if last in positions and prod(out.shape[:-1]) >= _WORTH_ROWS * prod(shape[:-1]):
        table, source = positions.pop(last), data
        data = te.compute(
            (*shape[:-1], out.shape[-1]),
            lambda *indices: source[(*indices[:-1], table[indices[-1]])],
            name="rows",
            tag=_ROWS,
        )

    def element(*indices: Any) -> Any:
        at = list(indices)
        for axis, table in positions.items():
            at[axis] = table[indices[axis]]
        for axis in whole:
            at[axis] = nearest_position(attrs, axis, shape[axis], out.shape[axis], indices[axis])
        return data[tuple(at)]

    return [te.compute(out.shape, element, name="resize", tag="injective")]


def _default(problem: Problem) -> LoopKnobs:
    return loop_knobs(problem.target)


def _space(problem: Problem) -> Space:
    return loop_space(problem)


def _cost(problem: Problem, knobs: LoopKnobs) -> float:
    return streamed_cycles(problem, 1, 1)


@register_strategy(
    "image.resize", name="resize.nearest", priority=30, compute=_compute, applies=_applies,
    default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_nearest(
    problem: Problem, outs: Sequence[te.Tensor], resize: te.Tensor, knobs: LoopKnobs
) -> te.Schedule:
    """The positions first; then rows, in vectors where these are read as they lie."""
    schedule, output = new_schedule(outs)
    kept = [op.output(0) for op in producers(outs) if op.tag in (_TAG, _ROWS)]
    inline_injective(schedule, outs, keep=kept)
    (data,) = problem.in_types
    assert isinstance(data, TensorType)
    size = _sizes(problem.attrs, data)
    if len(size) - 1 not in _kept_axes(problem.attrs, data.shape, size):
        schedule_elementwise_stage(schedule, output, problem.target, knobs)
        return schedule
    rows = next((tensor for tensor in kept if tensor.op.tag == _ROWS), output)
    if rows is not output:
        schedule_elementwise_stage(schedule, output, problem.target, knobs)
    stage: Any = schedule[rows]
    *loops, row = Loop.of(stage.op.axis)
    if row.extent > _COPIES:
        _, copies = split(stage, row, _COPIES)
        stage.unroll(copies.axis)
    else:
        stage.unroll(row.axis)
    total = _COPIED * prod(shape_of(rows))
    if loops and total >= knobs.share_from:
        parallel_outer(stage, loops, total, knobs.share_from // 4)
    return schedule
