"""Pixels of each remainder put in order: a copy in vectors, whose remainders are unrolled.

    for h.outer, h.phase, w.outer: unrolled w.phase: vectorized lane:
        out[h.outer * s + h.phase, w.outer * t + w.phase, lane] = parts[...][h.outer, w.outer, lane]

Sums of columns are the same loops, with the columns that meet at a pixel in place of one part.
No element asks which part has it, and none divides.  Lanes are the channels of a block, or without
blocks the pixels of a row: what is stored then lies as far apart as the stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from slipway import te
from slipway.backends.cpu.knobs import (
    RowKnobs,
    copied_elements,
    dividing_lanes,
    row_space,
    streamed_cycles,
    vector_lanes,
    widest_lanes,
)
from slipway.backends.stages import inline_injective, new_schedule, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import usual
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.ops.packed.columns import ColumnSumAttrs
    from slipway.relay.ops.packed.interleave import InterleaveAttrs
    from slipway.target import Target

_MOST_UNROLLED = 16  # stores of one step


def _applies(
    attrs: InterleaveAttrs | ColumnSumAttrs, in_types: Sequence[Type], target: Target
) -> bool:
    return attrs.strides[-1] <= _MOST_UNROLLED


def _default(problem: Problem) -> RowKnobs:
    """Vectors of channels that divide a block, or of as many pixels as a row has."""
    (out,), attrs = problem.out_types, problem.attrs
    assert isinstance(out, TensorType)
    lanes, blocks = vector_lanes(problem.target, out.dtype), out.shape[2 + len(attrs.strides) :]
    if blocks:
        lanes = dividing_lanes(blocks[-1], lanes)
    else:
        lanes = widest_lanes(-(-attrs.size[-1] // attrs.strides[-1]), lanes)
    return RowKnobs(lanes, copied_elements(problem.target))


def _space(problem: Problem) -> Space:
    return row_space(problem, _default(problem).lanes)


def _cost(problem: Problem, knobs: RowKnobs) -> float:
    return streamed_cycles(problem, knobs.lanes, 2)


@register_strategy(
    "nn.contrib_column_sum",
    name="columns.rests",
    applies=_applies,
    default=_default,
    space=_space,
    cost=_cost,
)
@register_strategy(
    "nn.contrib_interleave", name="interleave.rests", applies=_applies,
    default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_interleave(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: RowKnobs
) -> te.Schedule:
    """A row of pixels after the other; what belongs to one step is unrolled."""
    schedule, output = new_schedule(outs)
    inline_injective(schedule, outs)
    strides, stage = problem.attrs.strides, schedule[output]
    count = len(strides)
    around, pixels = list(stage.op.axis[:2]), list(stage.op.axis[2 : 2 + count])
    inside = list(stage.op.axis[2 + count :])
    lane, vectors = None, knobs.lanes > 1
    if inside and vectors:
        outer, lane = stage.split(inside.pop(), factor=knobs.lanes)
        inside.append(outer)
    copies = 1
    order: list[te.IterVar] = []
    for axis, stride in reversed(list(zip(pixels, strides, strict=True))):
        if stride == 1:
            order.insert(0, axis)
            continue
        step, phase = stage.split(axis, factor=stride)
        stage.pragma(step, "loop_partition_hint", True)
        copies *= stride
        if copies <= _MOST_UNROLLED:
            stage.unroll(phase)
        order[:0] = [step, phase]
    if lane is None and vectors:
        position = 0 if strides[-1] == 1 else -2
        run, lane = stage.split(order[position], factor=knobs.lanes, tail="shift")
        order[position] = run
    stage.reorder(*around, *order, *inside, *([lane] if lane is not None else []))
    if lane is not None:
        stage.vectorize(lane)
    if usual(prod(shape_of(output))) >= knobs.share_from:
        stage.parallel(stage.fuse(*around, order[0]) if count > 1 else stage.fuse(*around))
    return schedule
