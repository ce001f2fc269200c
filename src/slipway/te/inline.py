"""Inlining: read an elementwise stage's formula instead of its storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir.expr import IntImm, PrimExpr, ProducerLoad
from slipway.te.operation import ComputeOp, Operation
from slipway.te.rewrite import replace_nodes, rewrite
from slipway.te.schedule import Schedule
from slipway.te.stage import INLINE

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike
    from slipway.ir.node import Node


def inline_bodies(schedule: Schedule) -> dict[Operation, tuple[PrimExpr, ...]]:
    """Return the bodies of every compute that is not inlined, with the inlined ones put in."""
    inlined: dict[Operation, tuple[PrimExpr, ...]] = {}
    bodies: dict[Operation, tuple[PrimExpr, ...]] = {}
    for stage in schedule.stages:
        op = stage.op
        if not isinstance(op, ComputeOp):
            continue
        body = op.body
        if inlined and any(t.op in inlined for t in op.input_tensors):
            known: dict[Any, tuple[Any, PrimExpr]] = {}
            body = tuple(_inline(b, inlined, known) for b in body)
        if stage.attach_type == INLINE:
            if op.reduce_axis:
                raise ScheduleError(f"cannot inline stage {op.name!r}: it is a reduction")
            inlined[op] = body
        else:
            bodies[op] = body
    return bodies


def _inline(
    body: PrimExpr,
    inlined: dict[Operation, tuple[PrimExpr, ...]],
    known: dict[Any, tuple[Any, PrimExpr]],
) -> PrimExpr:
    """Put formulas in place of loads; loads of one element share one formula.

    A value with two readers, each with two of its own, would else be written four times: twice as
    often with each further step.  `known` has what was put in so far, by stage and place.
    """

    def rule(node: Node) -> Any:
        if not isinstance(node, ProducerLoad) or node.producer.op not in inlined:
            return None
        op, output = node.producer.op, node.producer.value_index
        key = (id(op), output, *map(_name, node.indices))
        if key not in known:
            # What is read lies in the axis, so that an index that counts further fits its type.
            axes = [a.var for a in op.axis]
            places = (
                index if index.dtype == var.dtype else ops.cast(index, var.dtype)
                for var, index in zip(axes, node.indices, strict=True)
            )
            mapping = dict(zip(axes, places, strict=True))
            known[key] = node, replace_nodes(inlined[op][output], mapping)  # it keeps the ids
        return known[key][1]

    return rewrite(body, rule)  # type: ignore[no-any-return]


def _name(index: PrimExprLike) -> Any:
    """What equal indices share: constants by value, all others by identity."""
    return (index.dtype, index.value) if isinstance(index, IntImm) else id(index)
