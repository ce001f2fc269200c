"""Softmax and log-softmax along the last axis: a row at a time, which stays in the nearest cache.

A row is read in whole vectors.  Where its length is no multiple of them, the last one reaches back,
and its exponentials are added without those that the one before it has.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    RowKnobs,
    copied_elements,
    row_space,
    streamed_cycles,
    vector_lanes,
    widest_lanes,
)
from slipway.backends.cpu.schedules.norm.exponential import EXPONENTIAL, exponential_of
from slipway.backends.cpu.schedules.register_tile import vector_loop
from slipway.backends.stages import extent_of, inline_injective, new_schedule, producers, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import usual
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.target import Target


def _lanes(target: Target, dtype: str, length: int) -> int:
    """Return the lanes of the vectors that a row is worked on in: a short row gets short ones."""
    lanes = vector_lanes(target, dtype)
    while lanes > length:
        lanes //= 2
    return lanes


def _default(problem: Problem) -> RowKnobs:
    """A row's work is some twenty instructions an element: fewer elements are worth sharing."""
    (data,), target = problem.in_types, problem.target
    lanes = _lanes(target, data.dtype, data.shape[-1])
    return RowKnobs(lanes, copied_elements(target) // 4)


def _space(problem: Problem) -> Space:
    return row_space(problem, problem.in_types[0].shape[-1], minimum=4)


def softmax_cost(problem: Problem, knobs: RowKnobs) -> float:
    """Predict a softmax: a maximum, an exponential, a sum and a product for each element."""
    return streamed_cycles(problem, knobs.lanes, EXPONENTIAL + 3)


def _stages(x: te.Tensor, target: Target, lanes: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Return the maximum of each row, exponentials and their sum; one partial result a lane."""
    *outer, length = shape_of(x)
    tail = length % lanes
    k = te.reduce_axis((0, -(-length // lanes)), name="k")

    def begin(step: Any) -> Any:
        return te.min(step * lanes, length - lanes) if tail else step * lanes

    most = te.compute(
        (*outer, lanes),
        lambda *i: te.max_of_numbers(x(*i[:-1], begin(k) + i[-1]), axis=[k]),
        name="lane_max",
        tag="softmax_max",
    )
    maximum = _joined(most, lanes, te.max_of_numbers, "max")

    exponential = exponential_of(target)
    exponentials = te.compute(
        (*outer, length),
        lambda *i: exponential(x(*i) - maximum(*i[:-1])),
        name="exponentials",
        tag="softmax_exponentials",
    )
    k2 = te.reduce_axis((0, -(-length // lanes)), name="k")

    def fresh(*i: Any) -> Any:
        """An element, or zero where the step before has added it."""
        at = begin(k2) + i[-1]
        value = exponentials(*i[:-1], at)
        return te.select(at >= k2 * lanes, value, te.const(0, x.dtype)) if tail else value

    sums = te.compute(
        (*outer, lanes), lambda *i: te.sum(fresh(*i), axis=[k2]), name="lane_sum", tag="softmax_sum"
    )
    return maximum, exponentials, _joined(sums, lanes, operator.add, "sum")


def _joined(
    parts: te.Tensor, lanes: int, join: Callable[[PrimExpr, PrimExpr], PrimExpr], name: str
) -> te.Tensor:
    """Return one value of `lanes` partial results, a power of two: half with half, and so on.

    One after the other each would wait for the one before.
    """

    def halved(half: int, of: te.Tensor) -> te.Tensor:
        made: te.Tensor = te.compute(
            (*shape_of(of)[:-1], half),
            lambda *i: join(of(*i), of(*i[:-1], i[-1] + half)),
            name=f"{name}_half",
            tag="softmax_half",
        )
        return made

    while lanes > 1:
        lanes //= 2
        parts = halved(lanes, parts)
    whole: te.Tensor = te.compute(
        shape_of(parts)[:-1], lambda *i: parts(*i, 0), name=name, tag="softmax_joined"
    )
    return whole


def _softmax_compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: RowKnobs
) -> list[te.Tensor]:
    """The exponentials by the inverse of their sum."""
    (x,), target = inputs, problem.target
    _, exponentials, total = _stages(x, target, knobs.lanes)
    *outer, length = shape_of(x)
    if target.is_strict:
        return [
            te.compute(
                (*outer, length),
                lambda *i: exponentials(*i) / total(*i[:-1]),
                name="T_softmax_norm",
                tag="injective",
            )
        ]
    inverse = te.compute(
        tuple(outer), lambda *i: te.const(1.0, x.dtype) / total(*i), name="inverse",
        tag="softmax_inverse",
    )  # fmt: skip
    return [
        te.compute(
            (*outer, length),
            lambda *i: exponentials(*i) * inverse(*i[:-1]),
            name="T_softmax_norm",
            tag="injective",
        )
    ]


def _log_compute(problem: Problem, inputs: Sequence[te.Tensor], knobs: RowKnobs) -> list[te.Tensor]:
    """The elements less their maximum and the logarithm of the sum."""
    (x,) = inputs
    maximum, _, total = _stages(x, problem.target, knobs.lanes)
    logarithm = te.compute(
        shape_of(total), lambda *i: te.log(total(*i)), name="logarithm", tag="softmax_logarithm"
    )
    return [
        te.compute(
            shape_of(x),
            lambda *i: (x(*i) - maximum(*i[:-1])) - logarithm(*i[:-1]),
            name="T_log_softmax",
            tag="injective",
        )
    ]


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """float32 along the last axis, at least one vector of it."""
    (data,) = in_types
    assert isinstance(data, TensorType)
    return (
        data.dtype == "float32"
        and data.rank >= 2
        and attrs.axis % data.rank == data.rank - 1
        and _lanes(target, data.dtype, data.shape[-1]) >= 4
    )


def schedule_softmax(
    problem: Problem, outs: Sequence[te.Tensor], softmax: te.Tensor, knobs: RowKnobs
) -> te.Schedule:
    """All stages of a row inside the loop over rows, each in vectors."""
    schedule, output = new_schedule(outs)
    staged = [op for op in producers(outs) if op.tag.startswith("softmax_")]
    inline_injective(schedule, outs, keep=[op.output(0) for op in staged])
    lanes = knobs.lanes
    stage = schedule[output]
    *outer, last = stage.op.axis
    together, logarithms = [], [op for op in staged if op.tag == "softmax_logarithm"]
    if logarithms:  # of some rows at once, which are a vector
        most = widest_lanes(usual(extent_of(outer[-1])), vector_lanes(problem.target, output.dtype))
        block, row = stage.split(outer.pop(), factor=most, tail="shift")
        outer, together = [*outer, block], [row]
    stage.reorder(*outer, *together, last)
    rows = stage.fuse(*outer)
    vector_loop(stage, last, lanes)
    if usual(prod(shape_of(output))) >= knobs.share_from:
        stage.parallel(rows)
    for op in staged:
        part = schedule[op]
        part.compute_at(stage, rows)
        if op.tag == "softmax_exponentials":
            vector_loop(part, op.axis[-1], lanes)
        elif op.tag in ("softmax_max", "softmax_sum"):
            part.reorder(*op.axis[:-1], *op.reduce_axis, op.axis[-1])
            part.vectorize(op.axis[-1])
            part.set_scope("local")
        elif op.tag in ("softmax_logarithm", "softmax_half"):
            part.vectorize(op.axis[-1])
            part.set_scope("local")
        elif op.tag == "softmax_joined":
            part.set_scope("local")
    return schedule


for _op, _compute in (("nn.softmax", _softmax_compute), ("nn.log_softmax", _log_compute)):
    register_strategy(
        _op, name="softmax.rows", compute=_compute, applies=_applies,
        default=_default, space=_space, cost=softmax_cost,
    )(schedule_softmax)  # fmt: skip
