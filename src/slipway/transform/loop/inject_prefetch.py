"""Inject prefetches of the memory that a later step of a loop reads.

before: ``for i in range(n): ... A[i * 64 + j] ...  # {'prefetch': (A, 2)}``
after:  ``for i in range(n): prefetch(address_of(A[i * 64 + 128]), 0, 3, 1); ... A[i * 64 + j] ...``

One prefetch is made for each different place that the loop's body reads of the buffer, with the
loops inside at their first step.
"""

from __future__ import annotations

from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.calls import prefetch
from slipway.ir.function import PrimFunc
from slipway.ir.visit import map_children, substitute, walk


def inject_prefetch(func: PrimFunc) -> PrimFunc:
    """Return `func` with the loops marked "prefetch" asking for memory ahead."""
    if not any(isinstance(n, S.For) and _requests(n) for n in S.statements(func.body)):
        return func
    return func.replace(body=_visit(func.body))  # type: ignore[no-any-return]


def _requests(loop: S.For) -> list[Any]:
    return [value for key, value in loop.annotations if key == "prefetch"]


def _visit(node: Any) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    result = map_children(node, _visit)
    if not isinstance(node, S.For) or not _requests(node):
        return result
    calls = [call for buffer, offset in _requests(node) for call in _ahead(node, buffer, offset)]
    kept = tuple(pair for pair in result.annotations if pair[0] != "prefetch")
    return result.replace(body=S.seq((*calls, result.body)), annotations=kept)


def _ahead(loop: S.For, buffer: Buffer, offset: E.PrimExpr) -> list[S.Stmt]:
    an = Analyzer()
    later: dict[Any, Any] = {loop.loop_var: ops.add(loop.loop_var, offset)}
    for inner in walk(loop.body):
        if isinstance(inner, S.For):
            later[inner.loop_var] = inner.min
    positions: dict[Any, E.PrimExpr] = {}
    for load in walk(loop.body):
        if isinstance(load, E.BufferLoad) and load.buffer is buffer:
            at = an.linear(substitute(load.indices[0], later))
            positions.setdefault(at.key, an.to_expr(at))
    return [prefetch(buffer, (at,)) for at in positions.values()]
