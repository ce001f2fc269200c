"""Inlining: read an elementwise stage's formula instead of its storage."""

from __future__ import annotations

from typing import Any

from slipway.errors import ScheduleError
from slipway.ir.expr import PrimExpr, ProducerLoad
from slipway.te.operation import ComputeOp, Operation
from slipway.te.rewrite import replace_nodes, rewrite
from slipway.te.schedule import Schedule
from slipway.te.stage import INLINE


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
            body = tuple(_inline(b, inlined) for b in body)
        if stage.attach_type == INLINE:
            if op.reduce_axis:
                raise ScheduleError(f"cannot inline stage {op.name!r}: it is a reduction")
            inlined[op] = body
        else:
            bodies[op] = body
    return bodies


def _inline(body: PrimExpr, inlined: dict[Operation, tuple[PrimExpr, ...]]) -> PrimExpr:
    def rule(node: Any) -> Any:
        if not isinstance(node, ProducerLoad) or node.producer.op not in inlined:
            return None
        op = node.producer.op
        formula = inlined[op][node.producer.value_index]
        return replace_nodes(
            formula, dict(zip((a.var for a in op.axis), node.indices, strict=True))
        )

    return rewrite(body, rule)  # type: ignore[no-any-return]
