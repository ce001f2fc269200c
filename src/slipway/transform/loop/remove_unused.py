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
from slipway.ir.node import Node
from slipway.ir.visit import children, map_children, walk


def remove_unused(func: PrimFunc) -> PrimFunc:
    """Return `func` without allocations that are never read."""
    made = [n.buffer.data for n in S.statements(func.body) if isinstance(n, S.Allocate)]
    unread = set(made)
    if len(unread) == len(made):  # else each is read or not in its own body
        _reads(func.body, set(), unread)
        if not unread:
            return func
    body, _ = _visit(func.body)
    return func if body is func.body else func.replace(body=body)


def _visit(node: S.Stmt) -> tuple[S.Stmt, set[E.Var]]:
    """Return the statement without unused storage, and the data pointers that it reads.

    Two allocations may share one pointer (copies of an unrolled body), so each is judged by its
    own body alone.
    """
    read: set[E.Var] = set()

    def child(inner: Any) -> Any:
        if isinstance(inner, S.Stmt):
            inner, more = _visit(inner)
            read.update(more)
        elif isinstance(inner, E.PrimExpr):
            _reads(inner, read)
        return inner

    if isinstance(node, S.BufferStore):
        for part in (node.value, *node.indices):
            _reads(part, read)
        return node, read
    result = map_children(node, child)
    if isinstance(result, S.Allocate):
        data = result.buffer.data
        if data not in read:
            return _visit(_without(result.body, data))  # fewer reads are left now
        read.discard(data)
    elif isinstance(result, S.SeqStmt):
        return S.seq(result.stmts) if result is not node else result, read
    return result, read


def _reads(root: Node, found: set[E.Var], unread: set[E.Var] | None = None) -> None:
    """Collect the data pointers that are loaded from, or handed to calls.

    They are taken out of `unread`; where that is given, nothing is collected once it is empty.
    """
    stack: list[Any] = [root]
    seen: set[int] = set()  # expressions may share parts, those of a hash a hundred times over
    while stack and (unread is None or unread):
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        kind = type(node)
        if kind is E.IntImm or kind is E.FloatImm:
            continue
        if isinstance(node, E.Var):
            if node.dtype == "handle":
                found.add(node)
                if unread:
                    unread.discard(node)
        elif kind is E.BufferLoad:
            found.add(node.buffer.data)
            if unread:
                unread.discard(node.buffer.data)
            stack.extend(node.indices)
        elif isinstance(node, (E.BinaryOp, E.CmpOp)):
            stack += (node.a, node.b)
        elif isinstance(node, S.Stmt):
            stack += [c for c in children(node) if isinstance(c, (E.PrimExpr, S.Stmt))]
        else:
            for name in node.FIELDS:
                value = getattr(node, name)
                items = value if type(value) is tuple else (value,)
                stack.extend(i for i in items if isinstance(i, E.PrimExpr))


def _without(node: Any, data: E.Var) -> Any:
    """Return `node` without the stores to `data`, and without what is empty then."""
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.BufferStore):
        if node.buffer.data is not data:
            return node
        effects = [n for n in walk(node.value) if isinstance(n, E.Call) and not is_pure(n.op)]
        return S.Evaluate(node.value) if effects else S.NOP
    if isinstance(node, S.SeqStmt):
        return S.seq(_without(s, data) for s in node.stmts)
    result = map_children(node, lambda child: _without(child, data))
    if isinstance(result, (S.For, S.Allocate, S.LetStmt)) and S.is_nop(result.body):
        keep = isinstance(result, S.For) and result.kind == S.ForKind.THREAD
        return result if keep else S.NOP
    if isinstance(result, S.IfThenElse) and result.else_case is None and S.is_nop(result.then_case):
        return S.NOP
    return result
