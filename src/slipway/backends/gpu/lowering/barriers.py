"""Barriers, where a thread of a block needs what another has written, or is about to overwrite it.

before: ``A.shared[t] = A[t]; C[t] = A.shared[63 - t]``
after:  ``A.shared[t] = A[t]; barrier; C[t] = A.shared[63 - t]``

Two accesses of memory that threads have in common need one between them if one of them writes, and
they do not stand under the same thread loops: under the same loops, a thread meets what it has
written itself, as the steps of a bound loop are independent.  Around a serial loop, the end of a
step is before the beginning of the next.  What is filled ahead at a step of a loop
(`fill_ahead.py`) is memory that the rest of the step does not use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.visit import walk

AHEAD = "slipway.ahead"  # AttrStmt around what fills memory for later steps of a loop
LEAF = "slipway.leaf"  # AttrStmt around what one thread does; its value are the thread loops
BARRIER = S.Evaluate(E.Call("int32", "storage_sync", (E.StringImm("shared"),)))


@dataclass(frozen=True)
class Access:
    """A read or write of memory that threads have in common, under the thread loops `path`."""

    data: int
    writes: bool
    path: tuple[int, ...]

    def conflicts(self, other: Access) -> bool:
        """Return whether different threads may access the same element, one of them writing."""
        return self.data == other.data and (self.writes or other.writes) and self.path != other.path


Pending = frozenset[Access]
NONE: Pending = frozenset()


def insert_barriers(body: S.Stmt, scopes: Mapping[int, str], name: str) -> S.Stmt:
    """Return `body` with barriers; `scopes` says of memory allocated in the kernel where it is."""
    made, _ = _Inserter(scopes, name).visit(body, NONE)
    return made


class _Inserter:
    def __init__(self, scopes: Mapping[int, str], name: str) -> None:
        self.scopes = scopes
        self.name = name

    def visit(self, node: S.Stmt, pending: Pending) -> tuple[S.Stmt, Pending]:
        """Return `node` with barriers, and the accesses since the last one."""
        match node:
            case S.AttrStmt(key=key) if key == LEAF:
                return self._leaf(node, pending)
            case S.SeqStmt():
                made, later = [], NONE
                for inner in node.stmts:
                    stmt, pending = self.visit(inner, pending)
                    made.append(stmt)
                    if isinstance(inner, S.AttrStmt) and inner.key == AHEAD:
                        later |= self._all(inner)
                return S.seq(made), pending | later
            case S.AttrStmt(key=key) if key == AHEAD:
                if any(a.conflicts(b) for a in pending for b in self._all(node)):
                    return S.seq((BARRIER, self.visit(node.body, NONE)[0])), NONE
                return self.visit(node.body, NONE)[0], pending
            case S.For():
                return self._loop(node, pending)
            case S.IfThenElse():
                then, first = self.visit(node.then_case, pending)
                if node.else_case is None:
                    return node.replace(then_case=then), pending | first
                other, second = self.visit(node.else_case, pending)
                return node.replace(then_case=then, else_case=other), first | second
            case S.Allocate() | S.LetStmt() | S.AttrStmt():
                body, pending = self.visit(node.body, pending)
                return node.replace(body=body), pending
            case S.Evaluate():
                return node, pending
        raise LoweringError(f"{self.name}: a {type(node).__name__} stands where threads meet")

    def _loop(self, node: S.For, pending: Pending) -> tuple[S.Stmt, Pending]:
        """Return a loop; what waits for code in front of it waits once, in front of it too."""
        inside = self._all(node.body)
        if any(a.conflicts(b) for a in pending for b in inside):
            loop, pending = self._loop(node, NONE)
            return S.seq((BARRIER, loop)), pending
        _, after = self.visit(node.body, NONE)
        body, end = self.visit(node.body, after)
        return node.replace(body=body), pending | end

    def _all(self, node: S.Stmt) -> Pending:
        leaves = (n for n in walk(node) if isinstance(n, S.AttrStmt) and n.key == LEAF)
        return NONE.union(*(self._accesses(n.body, n.value) for n in leaves))

    def _leaf(self, node: S.AttrStmt, pending: Pending) -> tuple[S.Stmt, Pending]:
        own = self._accesses(node.body, node.value)
        if any(a.conflicts(b) for a in pending for b in own):
            return S.seq((BARRIER, node.body)), own
        return node.body, pending | own

    def _accesses(self, node: S.Stmt, path: tuple[int, ...]) -> Pending:
        inside = {id(n.buffer.data) for n in walk(node) if isinstance(n, S.Allocate)}
        found = set()
        for inner in walk(node):
            if not isinstance(inner, (S.BufferStore, E.BufferLoad)):
                continue
            data = id(inner.buffer.data)
            if data not in inside and self.scopes.get(data) != "local":
                found.add(Access(data, isinstance(inner, S.BufferStore), path))
        return frozenset(found)
