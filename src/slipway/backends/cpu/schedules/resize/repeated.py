"""The nearest elements of rows that become a whole number of times as long.

    out[.., first : first + lanes, r] = data[.., first : first + lanes]      r in range(times)

A vector of the data is read as it lies, and its elements are repeated in registers; positions that
are not known before would be read one by one.  Short rows are one such vector as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import LoopKnobs, loop_knobs, loop_space, vector_lanes
from slipway.backends.cpu.schedules.generic import parallel_outer, schedule_elementwise_stage
from slipway.backends.stages import Loop, fuse, inline_injective, new_schedule, shape_of, split
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import is_open
from slipway.relay.ops.image.resize import resized_axes, steps_whole
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.image.resize import ResizeAttrs
    from slipway.target import Target

_ROW = 4  # vectors of a row that the loops of any operator take as one
_MOST = 8  # vectors that are written at once


def _times(attrs: ResizeAttrs, data: TensorType) -> int:
    """Return how many times as long a row becomes; 0 where that is no whole number."""
    if attrs.method != "nearest_neighbor" or any(map(is_open, (*data.shape, *attrs.size))):
        return 0
    size = [s or d for s, d in zip(attrs.size, data.shape, strict=True)]
    last, row = data.rank - 1, data.shape[-1]
    axes = resized_axes(attrs, data.shape, size)
    if last not in axes or not row or size[-1] % row or size[-1] == row:
        return 0
    whole = all(steps_whole(attrs, a, data.shape[a], size[a]) for a in axes)
    return size[-1] // row if whole else 0


def _applies(attrs: ResizeAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Rows of more vectors than the loops of any operator take as one."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    times, lanes = _times(attrs, data), vector_lanes(target, data.dtype)
    return 1 < times <= _MOST and lanes > 1 and data.shape[-1] * times > _ROW * lanes


def _default(problem: Problem) -> LoopKnobs:
    return loop_knobs(problem.target)


def _space(problem: Problem) -> Space:
    return loop_space(problem)


def _cost(problem: Problem, knobs: LoopKnobs) -> float:
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    return prod(out.shape) / vector_lanes(problem.target, out.dtype)


@register_strategy(
    "image.resize", name="resize.repeated", priority=30, applies=_applies,
    default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_repeated(
    problem: Problem, outs: Sequence[te.Tensor], resize: te.Tensor, knobs: LoopKnobs
) -> te.Schedule:
    """Rows in blocks of a vector of the data, each element `times` times."""
    schedule, output = new_schedule(outs)
    inline_injective(schedule, outs)
    (data,) = problem.in_types
    assert isinstance(data, TensorType)
    stage: Any = schedule[output]
    times, lanes = _times(problem.attrs, data), vector_lanes(problem.target, data.dtype)
    *loops, row = Loop.of(stage.op.axis)
    if row.extent != data.shape[-1] * times:  # what follows in the kernel has other rows
        schedule_elementwise_stage(schedule, output, problem.target, knobs)
        return schedule
    steps, copies = split(stage, row, times)
    while times * lanes > _MOST * vector_lanes(problem.target, data.dtype):
        lanes //= 2
    if steps.extent > lanes:
        outer, steps = split(stage, steps, lanes)
        loops.append(outer)
    stage.vectorize(fuse(stage, [steps, copies]).axis)
    total = prod(shape_of(output))
    if len(loops) > 1 and total >= knobs.share_from:
        parallel_outer(stage, loops, total, knobs.share_from // 4)
    return schedule
