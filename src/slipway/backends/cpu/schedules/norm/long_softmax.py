"""Softmax and log-softmax along long last axes: one row at a time, sums that do not wait.

Maximum element, exponentials, their sum: each in several vectors at once, while the row
is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    RowSumKnobs,
    copied_elements,
    row_sum_space,
    vector_lanes,
)
from slipway.backends.cpu.schedules.norm.exponential import exponential
from slipway.backends.cpu.schedules.norm.softmax import softmax_cost
from slipway.backends.cpu.schedules.reduction import reduce_row
from slipway.backends.cpu.schedules.register_tile import vector_loop
from slipway.backends.stages import (
    Loop,
    extent_of,
    inline_injective,
    new_schedule,
    producers,
    shape_of,
)
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import usual
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.target import Target


def _stages(lanes: int, x: te.Tensor) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Return the maximum element of each row, the exponentials, and their sum.

    Both reductions take whole vectors first.  The tail is another vector, which reaches back, for
    the maximum element, and single elements for the sum.
    """
    *outer, length = shape_of(x)
    tail = length % lanes

    def reduced(reducer: Any, of: te.Tensor, first: int, name: str, tag: str) -> te.Tensor:
        last = length - tail if first == 0 else length
        k = te.reduce_axis((0, last - first), name="k")
        made: te.Tensor = te.compute(
            tuple(outer),
            lambda *i: reducer(of(*i, first + k if first else k), axis=[k]),
            name=name,
            tag=tag,
        )
        return made

    def joined(join: Any, one: te.Tensor, other: te.Tensor) -> te.Tensor:
        made: te.Tensor = te.compute(
            tuple(outer), lambda *i: join(one(*i), other(*i)), name="all", tag="softmax_each"
        )
        return made

    maximum = reduced(te.max_of_numbers, x, 0, "max", "softmax_row")
    if tail:
        end = reduced(te.max_of_numbers, x, length - lanes, "last_max", "softmax_row")
        maximum = joined(te.max_of_numbers, maximum, end)
    exponentials = te.compute(
        (*outer, length),
        lambda *i: exponential(x(*i) - maximum(*i[:-1])),
        name="exponentials",
        tag="softmax_exponentials",
    )
    total = reduced(te.sum, exponentials, 0, "sum", "softmax_row")
    if tail:
        end = reduced(te.sum, exponentials, length - tail, "last_sum", "softmax_tail")
        total = joined(lambda a, b: a + b, total, end)
    return maximum, exponentials, total


def _softmax_compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: RowSumKnobs
) -> list[te.Tensor]:
    (x,) = inputs
    _, exponentials, total = _stages(knobs.lanes, x)
    outer = shape_of(total)
    inverse = te.compute(
        outer, lambda *i: te.const(1.0, x.dtype) / total(*i), name="inverse", tag="softmax_each"
    )
    return [
        te.compute(
            shape_of(x),
            lambda *i: exponentials(*i) * inverse(*i[:-1]),
            name="T_softmax",
            tag="injective",
        )
    ]


def _log_compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: RowSumKnobs
) -> list[te.Tensor]:
    (x,) = inputs
    maximum, _, total = _stages(knobs.lanes, x)
    logarithm = te.compute(
        shape_of(total), lambda *i: te.log(total(*i)), name="logarithm", tag="softmax_each"
    )
    return [
        te.compute(
            shape_of(x),
            lambda *i: (x(*i) - maximum(*i[:-1])) - logarithm(*i[:-1]),
            name="T_log_softmax",
            tag="injective",
        )
    ]


def _applies(times: int) -> Callable[[Any, Sequence[Type], Target], bool]:
    """Return the question whether each sum of several takes `times` vectors or more.

    A shorter row is done before its sums would wait.  Strict code keeps denormal exponentials.
    """

    def applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
        (data,) = in_types
        assert isinstance(data, TensorType)
        lanes = vector_lanes(target, data.dtype)
        if data.dtype != "float32" or data.rank < 2 or lanes < 2 or target.is_strict:
            return False
        last = attrs.axis % data.rank == data.rank - 1
        return last and times * lanes * target.core.costs.sum_vectors <= data.shape[-1]

    return applies


def _default(problem: Problem) -> RowSumKnobs:
    (data,), target = problem.in_types, problem.target
    lanes, costs = vector_lanes(target, data.dtype), target.core.costs
    share_from = copied_elements(target) // 4
    return RowSumKnobs(lanes, share_from, costs.sum_vectors, costs.sum_steps)


def _space(problem: Problem) -> Space:
    length = problem.in_types[0].shape[-1]
    return row_sum_space(problem, vector_lanes(problem.target, "float32"), min(4, length))


def schedule_long_softmax(
    problem: Problem, outs: Sequence[te.Tensor], softmax: te.Tensor, knobs: RowSumKnobs
) -> te.Schedule:
    """All stages of a row inside the loop over rows."""
    schedule, output = new_schedule(outs)
    staged = [op for op in producers(outs) if op.tag.startswith("softmax_")]
    inline_injective(schedule, outs, keep=[op.output(0) for op in staged])
    lanes = knobs.lanes
    stage = schedule[output]
    *outer, last = stage.op.axis
    rows = stage.fuse(*outer)
    vector_loop(stage, last, lanes)
    if usual(prod(shape_of(output))) >= knobs.share_from:
        stage.parallel(rows)
    for op in staged:
        part = schedule[op]
        if op.tag == "softmax_row":
            (k,) = op.reduce_axis
            row = Loop(k, extent_of(k))
            reduce_row(schedule, op.output(0), row, lanes, sums=knobs.sums, steps=knobs.steps)
            part = schedule[op]
        elif op.tag == "softmax_tail":
            part.unroll(op.reduce_axis[0])
        elif op.tag == "softmax_exponentials":
            vector_loop(part, op.axis[-1], lanes)
        part.compute_at(stage, rows)
    return schedule


for _op, _compute, _times in (
    ("nn.softmax", _softmax_compute, 4),
    (
        "nn.log_softmax",
        _log_compute,
        8,
    ),  # softmax.rows takes the logarithms of several rows at once
):
    register_strategy(
        _op, name="softmax.long", priority=20, compute=_compute, applies=_applies(_times),
        default=_default, space=_space, cost=softmax_cost,
    )(schedule_long_softmax)  # fmt: skip
