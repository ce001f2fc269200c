"""Inlining: read an elementwise stage's formula instead of its storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from slipway.errors import ScheduleError
from slipway.ir import deep, ops
from slipway.ir.expr import IntImm, PrimExpr, ProducerLoad
from slipway.ir.visit import map_children, post_order_by
from slipway.te.operation import ComputeOp, Operation
from slipway.te.primitives.state import INLINE
from slipway.te.rewrite import inside
from slipway.te.schedule import Schedule
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike

Known: TypeAlias = dict[Any, tuple[Any, PrimExpr]]


def inline_bodies(schedule: Schedule) -> dict[Operation, tuple[PrimExpr, ...]]:
    """Return the bodies of every compute that is not inlined, with the inlined ones put in."""
    inlined: set[Operation] = set()
    bodies: dict[Operation, tuple[PrimExpr, ...]] = {}
    for stage in schedule.stages:
        op = stage.op
        if not isinstance(op, ComputeOp):
            continue
        if stage.attach_type == INLINE:
            if op.reduce_axis:
                raise ScheduleError(f"cannot inline stage {op.name!r}: it is a reduction")
            inlined.add(op)
        elif any(t.op in inlined for t in op.input_tensors):
            known: Known = {}
            bodies[op] = tuple(deep.run(_inline(b, {}, inlined, known)) for b in op.body)
        else:
            bodies[op] = op.body
    return bodies


def _inline(
    body: PrimExpr, at: dict[int, PrimExpr], inlined: set[Operation], known: Known
) -> deep.Steps[PrimExpr]:
    """Put formulas in place of loads, and `at` in place of axes; each formula is walked once.

    From the reader down: a formula that already held what is inlined into it would be copied again
    into each further reader, which for a chain is quadratic in its length.  Loads of one element
    share one formula: a value with two readers, each with two of its own, would else be written
    four times, twice as often with each further step.  `known` has what was put in so far, by
    stage and place, with the load, which keeps the ids of its indices.
    """
    done: dict[int, Any] = dict(at)
    for node in post_order_by([body], inside, known=dict(at)):
        made = node if isinstance(node, Tensor) else map_children(node, lambda c: done[id(c)])
        if isinstance(made, ProducerLoad) and made.producer.op in inlined:
            op, output = made.producer.op, made.producer.value_index
            key = (id(op), output, *map(_name, made.indices))
            if key not in known:
                # What is read lies in the axis: an index that counts further fits its type.
                there = {
                    id(a.var): i if i.dtype == a.var.dtype else ops.cast(i, a.var.dtype)
                    for a, i in zip(op.axis, made.indices, strict=True)
                }
                known[key] = made, (yield _inline(op.body[output], there, inlined, known))
            made = known[key][1]
        done[id(node)] = made
    return done[id(body)]  # type: ignore[no-any-return]


def _name(index: PrimExprLike) -> Any:
    """What equal indices share: constants by value, all others by identity."""
    return (index.dtype, index.value) if isinstance(index, IntImm) else id(index)
