"""Interpolation of images whose channels lie in blocks: the rows first, then along them.

A row of the result is made of rows that are interpolated already, so that a pixel takes the taps of
two axes one after the other, not their products.  Some blocks of channels are the innermost loop:
where a pixel reads, and its weights, are computed once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.knobs import (
    copied_elements,
    row_space,
    vector_lanes,
)
from slipway.backends.cpu.schedules.register_tile import vector_loop
from slipway.backends.cpu.schedules.resize.plain import (
    READS,
    ResizeKnobs,
    resize_cost,
    separable_resize,
)
from slipway.backends.stages import inline_injective, shape_of, tagged
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import usual
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.image.resize import ResizeAttrs
    from slipway.target import Target


def _applies(attrs: ResizeAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Floats interpolated along two axes or more, with whole vectors of channels innermost."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    if data.rank < 4 or not dtypes.is_float(data.dtype) or attrs.method == "nearest_neighbor":
        return False
    resized = [bool(s) and s != d for s, d in zip(attrs.size, data.shape, strict=True)]
    lanes = vector_lanes(target, data.dtype)
    whole = lanes > 1 and data.shape[-1] % lanes == 0
    return whole and resized[-2] and resized[-3] and not resized[-1]


def _default(problem: Problem) -> ResizeKnobs:
    """Blocks whose rows fill half of the nearest cache, in numbers that divide all blocks."""
    (out,), (data,), core = problem.out_types, problem.in_types, problem.target.core
    row_bytes = dtypes.bytes_of(out.dtype) * prod(data.shape[-2:])
    most = min(max(1, core.l1_bytes // 2 // row_bytes), out.shape[1])
    lanes = vector_lanes(problem.target, out.dtype)
    share_from = copied_elements(problem.target) // READS
    return ResizeKnobs(lanes, share_from, max(_divisors(out.shape[1], most)))


def _divisors(number: int, most: int) -> list[int]:
    return [n for n in range(1, most + 1) if number % n == 0]


def _space(problem: Problem) -> Space:
    (out,) = problem.out_types
    space = row_space(problem, vector_lanes(problem.target, out.dtype))
    return {**space, "rows": _divisors(out.shape[1], out.shape[1])}


@register_strategy(
    "image.resize",
    name="resize.blocked",
    compute=partial(separable_resize, along=-2),
    applies=_applies,
    priority=20,
    default=_default,
    space=_space,
    cost=resize_cost,
)
def schedule_resize_blocked(
    problem: Problem, outs: Sequence[te.Tensor], resize: te.Tensor, knobs: ResizeKnobs
) -> te.Schedule:
    """Some blocks of channels whose row stays in the first-level cache, a vector each time."""
    schedule = te.create_schedule([t.op for t in outs])
    rows = tagged(outs)["resized_rows"]
    inline_injective(schedule, outs, keep=[rows])
    (output,) = {id(t.op): t for t in outs}.values()
    lanes = knobs.lanes
    stage: Any = schedule[output]
    image, block, *positions, column, channel = stage.op.axis
    part, block = stage.split(block, factor=knobs.rows)
    vector, lane = stage.split(channel, factor=lanes)
    stage.reorder(image, part, *positions, column, block, vector, lane)
    stage.vectorize(lane)
    task = stage.fuse(image, part, *positions)
    if usual(prod(shape_of(output))) >= knobs.share_from:
        stage.parallel(task)
    first: Any = schedule[rows]
    first.compute_at(stage, task)
    vector_loop(first, first.op.axis[-1], lanes, tail="guard")
    return schedule
