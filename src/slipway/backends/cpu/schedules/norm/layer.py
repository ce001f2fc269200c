"""Normalisations: both moments and the result of a row while it is in the cache.

A row is what has moments of its own: the last axis of a layer norm, a channel's image of an
instance norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    RowSumKnobs,
    copied_elements,
    row_sum_space,
    streamed_cycles,
    vector_lanes,
)
from slipway.backends.cpu.schedules.reduction import reduce_row, row_axes
from slipway.backends.cpu.schedules.register_tile import vector_loop
from slipway.backends.stages import Loop, fuse, inline_injective, new_schedule, producers, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import usual
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.target import Target


def _rows_are_long(rank: int) -> Any:
    def applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
        """Float32, rows, moments over the last axes, of some vectors."""
        data = in_types[0]
        assert isinstance(data, TensorType)
        first = attrs.axis % data.rank + rank
        length = prod(data.shape[first:])
        lanes = vector_lanes(target, data.dtype)
        last = first == data.rank - 1 if rank == 0 else attrs.axis % data.rank == 1
        long = lanes > 1 and length >= target.core.costs.sum_vectors * lanes
        return data.dtype == "float32" and first > 0 and last and long

    return applies


def _default(problem: Problem) -> RowSumKnobs:
    target, costs = problem.target, problem.target.core.costs
    lanes = vector_lanes(target, problem.in_types[0].dtype)
    share_from = copied_elements(target) // 4  # each is read three times
    return RowSumKnobs(lanes, share_from, costs.sum_vectors, costs.sum_steps)


def _space(problem: Problem) -> Space:
    return row_sum_space(problem, vector_lanes(problem.target, problem.in_types[0].dtype))


def _cost(problem: Problem, knobs: RowSumKnobs) -> float:
    """Two sums, and a multiply-add or two, of each element."""
    return streamed_cycles(problem, knobs.lanes, 5)


def schedule_rows(
    problem: Problem, outs: Sequence[te.Tensor], norm: te.Tensor, knobs: RowSumKnobs
) -> te.Schedule:
    """Sums and squares inside the loop over rows."""
    schedule, output = new_schedule(outs)
    reductions = [op for op in producers(outs) if isinstance(op, te.ComputeOp) and op.reduce_axis]
    inline_injective(schedule, outs)
    lanes = knobs.lanes
    stage = schedule[output]
    depth = len(reductions[0].axis)
    rows, inner = stage.op.axis[:depth], stage.op.axis[depth:]
    row = stage.fuse(*rows)
    whole = fuse(stage, Loop.of(inner))
    vector_loop(stage, whole.axis, lanes)
    if usual(prod(shape_of(output))) >= knobs.share_from:
        stage.parallel(row)
    for op in reductions:
        sums = schedule[op]
        along = fuse(sums, Loop.of(row_axes(op)))
        reduce_row(schedule, op.output(0), along, lanes, sums=knobs.sums, steps=knobs.steps)
        schedule[op].compute_at(stage, row)
    return schedule


for _op, _rank in (("nn.layer_norm", 0), ("nn.instance_norm", 1)):
    register_strategy(
        _op, name="norm.rows", applies=_rows_are_long(_rank), default=_default, space=_space,
        cost=_cost,
    )(schedule_rows)  # fmt: skip
