"""A thread's row that is filled by one loop and read by the next: one loop does both.

before: ``for k: row[k] = exp(x[k]);  sum = 0;  for k: sum = sum + row[k]``
after:  ``sum = 0;  for k: { let v = exp(x[k]); row[k] = v; sum = sum + v }``

It is for drivers that run threads in the lanes of a processor's vectors, where each step of a loop
asks which lanes are still in it, and a row lies in memory.  What is computed has the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.backends.gpu.warps import runs_in_lanes
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.function import PrimFunc
from slipway.ir.structural import structural_equal
from slipway.ir.visit import map_children, rewrite_bottom_up, substitute, walk

_PLAIN = (S.ForKind.SERIAL, S.ForKind.UNROLLED)


def join_rows(func: PrimFunc) -> PrimFunc:
    """Return `func` with loops that fill a row, and loops that read it in order, as one."""
    target = func.attr("target")
    if target is None or not runs_in_lanes(target):
        return func
    return func.replace(body=_joined(func.body))  # type: ignore[no-any-return]


def _joined(node: Any) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    fresh = map_children(node, _joined)
    if not isinstance(fresh, S.SeqStmt):
        return fresh
    made: list[S.Stmt] = []
    for stmt in reversed(fresh.stmts):  # what follows is joined already
        fill = _Nest.of(stmt)
        found = None
        if fill is not None and fill.store.buffer.scope == "local" and fill.is_row():
            found = _with_reader(fill, made)
        made = [stmt, *made] if found is None else found
    return S.seq(made)


@dataclass(frozen=True)
class _Nest:
    """Loops with a single store inside."""

    loops: tuple[S.For, ...]
    store: S.BufferStore

    @staticmethod
    def of(node: S.Stmt) -> _Nest | None:
        """Return the loops of a statement, if it is such a nest."""
        loops = []
        while isinstance(node, S.For) and node.kind in _PLAIN:
            loops.append(node)
            node = node.body
        if not loops or not isinstance(node, S.BufferStore):
            return None
        return _Nest(tuple(loops), node)

    def is_row(self) -> bool:
        """Return whether each step stores an element of its own, without reading another."""
        store = self.store
        if store.buffer.data in _reads(store.value) or len(store.indices) != 1:
            return False
        terms = Analyzer().linear(store.indices[0]).terms
        steps = {atom.expr: step for atom, step in terms.items() if atom.kind == "var"}
        extents = [(loop.loop_var, ops.as_int(loop.extent)) for loop in self.loops]
        span = 0  # of the loops with smaller steps
        for step, extent in sorted((steps.get(var, 0), extent or 0) for var, extent in extents):
            if step <= span or extent < 1:
                return False
            span += step * (extent - 1)
        return True

    def has_steps_of(self, other: _Nest) -> bool:
        """Return whether both nests have the same steps."""
        pairs = list(zip(self.loops, other.loops, strict=False))
        return len(self.loops) == len(other.loops) and all(
            a.kind == b.kind and structural_equal((a.min, a.extent), (b.min, b.extent))
            for a, b in pairs
        )


def _with_reader(fill: _Nest, rest: Sequence[S.Stmt]) -> list[S.Stmt] | None:
    """Return the statements behind a fill with the fill in the loop that reads it first.

    None where something else stands between, or the loop wants what the fill has not got yet.
    """
    if not rest:
        return None
    first, *others = rest
    if isinstance(first, S.Allocate):
        stmts = first.body.stmts if isinstance(first.body, S.SeqStmt) else (first.body,)
        inner = _with_reader(fill, stmts)
        return None if inner is None else [first.replace(body=S.seq(inner)), *others]
    if isinstance(first, S.BufferStore):  # where a sum begins
        if fill.store.buffer.data in _reads(first) or not _may_pass(fill, first):
            return None
        after = _with_reader(fill, others)
        return None if after is None else [first, *after]
    reader = _Nest.of(first)
    if reader is None or not fill.has_steps_of(reader) or not _may_pass(fill, reader.store):
        return None
    one = _one_loop(fill, reader)
    return None if one is None else [one, *others]


def _reads(node: Any) -> set[E.Var]:
    return {n.buffer.data for n in walk(node) if isinstance(n, E.BufferLoad)}


def _may_pass(fill: _Nest, store: S.BufferStore) -> bool:
    """Return whether a store may come before steps of a fill that it stood behind."""
    written: Buffer = store.buffer
    return written.data is not fill.store.buffer.data and written.data not in _reads(fill.store)


def _one_loop(fill: _Nest, reader: _Nest) -> S.Stmt | None:
    """Return one nest that fills and reads; None where another element is read than is filled."""
    steps = {b.loop_var: a.loop_var for a, b in zip(fill.loops, reader.loops, strict=True)}
    row, store = fill.store, substitute(reader.store, steps)
    loads = [
        n for n in walk(store) if isinstance(n, E.BufferLoad) and n.buffer.data is row.buffer.data
    ]
    if not loads or not all(structural_equal(n.indices, row.indices) for n in loads):
        return None
    value = E.Var(f"{row.buffer.name}_value", row.value.dtype)

    def rule(node: Any) -> Any:
        is_own = isinstance(node, E.BufferLoad) and node.buffer.data is row.buffer.data
        return value if is_own else None

    used = rewrite_bottom_up(store, rule)
    body: S.Stmt = S.LetStmt(value, row.value, S.seq((row.replace(value=value), used)))
    for loop in reversed(fill.loops):
        body = loop.replace(body=body)
    return body
