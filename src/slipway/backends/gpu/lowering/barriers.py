"""Barriers, where a thread of a block needs what another has written, or is about to overwrite it.

before: ``A.shared[t] = A[t]; C[t] = A.shared[63 - t]``
after:  ``A.shared[t] = A[t]; barrier; C[t] = A.shared[63 - t]``

Two accesses of memory that threads have in common need one between them if one of them writes, and
they do not stand under the same thread loops.  Under the same loops, a thread meets what it has
written itself, as the steps of a bound loop are independent; but where a program written by hand
reads memory of a block at another index than it has written (`is_elsewhere`), it reads what other
threads wrote.  Around a serial loop, the end of a step is before the beginning of the next.  What
is filled ahead at a step of a loop (`fill_ahead.py`) is memory that the rest of the step does not
use.  A barrier of the program's own is one of these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.structural import structural_equal
from slipway.ir.visit import walk

AHEAD = "slipway.ahead"  # AttrStmt around what fills memory for later steps of a loop
LEAF = "slipway.leaf"  # AttrStmt around what one thread does; its value are the thread loops
BARRIER = S.Evaluate(E.Call("int32", "storage_sync", (E.StringImm("shared"),)))


Indices = tuple[E.PrimExpr, ...]


@dataclass(frozen=True)
class Access:
    """A read or write of memory that threads have in common, under the thread loops `path`.

    `indices` are those of memory that a block shares; else there are none.
    """

    data: int
    writes: bool
    path: tuple[int, ...]
    indices: Indices = ()

    def conflicts(self, other: Access) -> bool:
        """Return whether different threads may access the same element, one of them writing."""
        if self.data != other.data or not (self.writes or other.writes):
            return False
        return self.path != other.path or is_elsewhere(self.indices, other.indices)


def is_elsewhere(first: Indices, second: Indices) -> bool:
    """Return whether two threads may meet at indices that each of them has of its own.

    They do not where indices that are the same say which thread it is.
    """
    if first is second:
        return False
    pairs = list(zip(first, second, strict=True))
    same = [structural_equal(a, b) for a, b in pairs]
    if all(same):
        return False
    told = set().union(*(_threads_in(a) for (a, _), is_same in zip(pairs, same, strict=True)
                         if is_same))  # fmt: skip
    differing = (x for pair, is_same in zip(pairs, same, strict=True) if not is_same for x in pair)
    return not set().union(*map(_threads_in, differing)) <= told


def _threads_in(index: E.PrimExpr) -> set[str]:
    names = (n.name for n in walk(index) if isinstance(n, E.Var))
    return {name for name in names if name.startswith("threadIdx.")}


def meets_itself(node: S.Stmt, shared: Collection[int]) -> bool:
    """Return whether statements in `node` access memory of a block, by data Var, at other indices.

    A single store is one statement: between its reads and its write nothing can stand.
    """
    found: list[tuple[int, bool, Indices]] = []
    for inner in walk(node):
        if isinstance(inner, (S.BufferStore, E.BufferLoad)) and id(inner.buffer.data) in shared:
            found.append((id(inner.buffer.data), isinstance(inner, S.BufferStore), inner.indices))
    return any(
        data == other and is_elsewhere(indices, others)
        for data, writes, indices in found
        if writes
        for other, _, others in found
    )


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
        call = node.body.value if isinstance(node.body, S.Evaluate) else None
        if isinstance(call, E.Call) and call.op == "storage_sync":
            return node.body, NONE
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
                indices = inner.indices if self.scopes.get(data) == "shared" else ()
                found.add(Access(data, isinstance(inner, S.BufferStore), path, indices))
        return frozenset(found)
