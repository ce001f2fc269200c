"""Remove unused storage: temporaries that nothing reads, and the stores into them.

before: ``allocate T: float32[8]: T[0] = A[0]; B[0] = A[0]``
after:  ``B[0] = A[0]``
"""

from __future__ import annotations

from typing import Any

from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.intrin import is_pure
from slipway.ir.visit import map_children, walk


def remove_unused(func: PrimFunc) -> PrimFunc:
    """Return `func` without allocations that are never read."""
    while True:
        allocated = [n.buffer.data for n in walk(func.body) if isinstance(n, S.Allocate)]
        if not allocated:
            return func
        read: set[E.Var] = set()
        _reads(func.body, read)
        unused = {data for data in allocated if data not in read}
        if not unused:
            return func
        func = func.replace(body=_without(func.body, unused))


def _reads(root: S.Stmt, found: set[E.Var]) -> None:
    """Collect the data pointers that are loaded from, or handed to calls."""
    stack: list[Any] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, E.Var):
            found.add(node)
        elif isinstance(node, E.BufferLoad):
            found.add(node.buffer.data)
            stack.extend(node.indices)
        elif isinstance(node, S.BufferStore):
            stack.extend((node.value, *node.indices))
        elif isinstance(node, S.Allocate):
            stack.extend((node.body, *node.buffer.shape))
        else:
            for name in node.FIELDS:
                value = getattr(node, name)
                items = value if type(value) is tuple else (value,)
                stack.extend(i for i in items if isinstance(i, (S.Stmt, E.PrimExpr)))


def _without(node: Any, unused: set[E.Var]) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.BufferStore) and node.buffer.data in unused:
        effects = [n for n in walk(node.value) if isinstance(n, E.Call) and not is_pure(n.op)]
        return S.Evaluate(node.value) if effects else S.NOP
    if isinstance(node, S.SeqStmt):
        return S.seq(_without(s, unused) for s in node.stmts)
    result = map_children(node, lambda child: _without(child, unused))
    if isinstance(result, S.Allocate) and result.buffer.data in unused:
        return result.body
    if isinstance(result, (S.For, S.Allocate, S.LetStmt)) and S.is_nop(result.body):
        if isinstance(result, S.For) and result.kind == S.ForKind.THREAD:
            return result
        return S.NOP
    if isinstance(result, S.IfThenElse) and result.else_case is None and S.is_nop(result.then_case):
        return S.NOP
    return result
