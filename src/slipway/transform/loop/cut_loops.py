"""Cut the loops that a schedule marks, where the conditions inside them change.

``s[T].pragma(axis, "loop_partition_hint", True)``, before::

    for x in range(4):                                  # hinted
        for kx in range(3):                             # hinted
            unrolled for r in range(8):
                if 0 <= x * 8 + r + kx - 1 < 32: use(x * 8 + r, kx)

after::

    for kx in range(0, 1): unrolled for r in range(8): if 0 <= r - 1: use(r, 0)
    for kx in range(1, 3): unrolled for r in range(8): use(r, kx)
    for x in range(1, 3): for kx in range(3): ...       # no condition left
    ...                                                 # and the last x like the first

A loop of constant ends becomes one loop for each run of steps that decide all conditions alike; a
step in which only the loops inside decide stands alone, so that their conditions are constant.
Where an outer loop has a say, a condition around all that a loop does becomes its ends::

    for ky in range(3):                  ->    for ky in range(max(0, 1 - y), min(3, 33 - y)):
        if 0 <= y + ky - 1 < 32: use(ky)           use(ky)

A vectorized loop is cut alike, at the ends where all conditions are decided; pieces of few steps
are unrolled, one after the other.

A loop of open ends asks at each step once whether all conditions hold in the loops inside, and has
a body without them for those steps (`partitioned`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.arith.interval import interval_of
from slipway.arith.linear import Atom, Linear
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.visit import map_children
from slipway.transform.loop.ends import INDEX_TYPES, Decisions, difference_of, ends_of
from slipway.transform.loop.loop_partition import (
    Ranges,
    conditions_of,
    conjuncts,
    decided,
    loops_inside,
    partitioned,
)

HINT = "pragma_loop_partition_hint"
_MOST_LOOKS = 1024  # at steps of a loop, or runs of them, to find where to cut it
_MOST_ALONE = 8  # steps that get a copy of their own
_FEWEST_LANES = 4  # of a piece of a vectorized loop
_CUT = (S.ForKind.SERIAL, S.ForKind.UNROLLED, S.ForKind.VECTORIZED)


def cut_loops(func: PrimFunc) -> PrimFunc:
    """Return `func` with the loops cut that carry a hint, and the hints gone."""
    if not any(isinstance(n, S.For) and _is_hinted(n) for n in S.statements(func.body)):
        return func
    return func.replace(body=_Cutter().visit(func.body))  # type: ignore[no-any-return]


def _is_hinted(node: S.For) -> bool:
    return any(key == HINT for key, _ in node.annotations)


class _Cutter:
    def __init__(self) -> None:
        self.an = Analyzer()

    def visit(self, node: Any) -> Any:
        if not isinstance(node, S.Stmt):
            return node
        if isinstance(node, S.For):
            if node.loop_var.dtype in INDEX_TYPES:
                self.an.bind_range(node.loop_var, E.Range(node.min, node.extent))
            if _is_hinted(node):
                notes = tuple(note for note in node.annotations if note[0] != HINT)
                return self.cut(node.replace(annotations=notes))
        return map_children(node, self.visit)

    def cut(self, node: S.For) -> S.Stmt:
        """Return the loops that `node` becomes."""
        own = self.an.linear(node.loop_var).terms
        if len(own) != 1 or node.kind not in _CUT:
            return map_children(node, self.visit)  # type: ignore[no-any-return]
        ((atom, _),) = own.items()
        inner = loops_inside(self.an, node.body)
        is_vector = node.kind == S.ForKind.VECTORIZED
        node = node if is_vector else self._clip(node, atom, inner)
        tests = {}
        for condition in conditions_of(node.body, values=True):
            difference = difference_of(self.an, condition)
            if difference is not None and any(atom in a.variables for a in difference.terms):
                tests[id(condition)] = (condition, difference)
        pieces = self._pieces(node, atom, list(tests.values()), inner)
        if pieces is not None:
            return S.seq(self._piece(node, *piece) for piece in pieces)
        if ops.as_int(node.extent) is None and not is_vector:
            node = partitioned(self.an, node)
        return map_children(node, self.visit)  # type: ignore[no-any-return]

    # -- cutting -----------------------------------------------------------------------------------

    def _pieces(
        self, node: S.For, atom: Atom, tests: Sequence[tuple[Any, Linear]], inner: Ranges
    ) -> list[tuple[int, int, Decisions]] | None:
        """Return (first step, number of steps, decided conditions) of each piece.

        None where the ends are unknown, there are too many steps to look at, or no condition is
        decided anywhere.
        """
        first, extent = ops.as_int(node.min), ops.as_int(node.extent)
        if first is None or extent is None or extent <= 0 or not tests:
            return None
        found: list[tuple[int, int, tuple[bool | None, ...], bool]] = []
        waiting, looks = [(first, first + extent - 1)], 0
        while waiting:
            low, high = waiting.pop()
            looks += 1
            if looks > _MOST_LOOKS:
                return None
            verdicts = tuple(self._decide(t, atom, low, high, inner) for t in tests)
            if low < high and None in verdicts:
                middle = (low + high) // 2
                waiting += [(middle + 1, high), (low, middle)]
                continue
            alone = any(
                verdict is None and self._inside_decides(test[1], atom, inner)
                for verdict, test in zip(verdicts, tests, strict=True)
            )
            found.append((low, high, verdicts, alone))
        apart = sum(alone for *_, alone in found) <= _MOST_ALONE
        pieces = []

        def sort(span: tuple[int, int, Any, bool]) -> Any:
            first, _, verdicts, alone = span
            return verdicts, first if apart and alone else None

        for (verdicts, _), run in groupby(found, sort):
            spans = list(run)
            known = {
                id(condition): (condition, verdict)
                for (condition, _), verdict in zip(tests, verdicts, strict=True)
                if verdict is not None
            }
            pieces.append((spans[0][0], spans[-1][1] - spans[0][0] + 1, known))
        useful = len(pieces) > 1 or any(known for *_, known in pieces)
        return pieces if useful else None

    def _decide(
        self, test: tuple[Any, Linear], atom: Atom, low: int, high: int, inner: Ranges
    ) -> bool | None:
        """Return what a comparison gives in all steps from `low` to `high`; None when it varies."""
        an, (condition, difference) = self.an, test
        first, last = (an.constant(step, difference.dtype) for step in (low, high))
        ends = interval_of(an, difference, {**inner, atom: (first, last)})
        if ends is None:
            return None
        kind = type(condition)
        worst, best = reversed(ends) if kind in (E.LT, E.LE) else ends
        if an.decide(kind, worst):
            return True
        return False if an.decide(kind, best) is False else None

    def _inside_decides(self, difference: Linear, atom: Atom, inner: Ranges) -> bool:
        """Return whether a step leaves a condition to the loops inside, and to no other."""
        return all(a.variables <= {atom, *inner} for a in difference.terms)

    def _piece(self, node: S.For, first: int, steps: int, known: Decisions) -> S.Stmt:
        dtype, kind = node.loop_var.dtype, node.kind
        if kind == S.ForKind.VECTORIZED and steps < _FEWEST_LANES:
            kind = S.ForKind.UNROLLED
        piece = node.replace(
            min=ops.const(first, dtype), extent=ops.const(steps, dtype), kind=kind,
            body=decided(node.body, known),
        )  # fmt: skip
        return self.visit(piece)  # type: ignore[no-any-return]

    # -- clipping ----------------------------------------------------------------------------------

    def _clip(self, node: S.For, atom: Atom, inner: Ranges) -> S.For:
        """Return the loop with ends that make conditions around all it does unnecessary."""
        an, dtype = self.an, node.loop_var.dtype
        begin = an.linear(node.min)
        span = begin, begin.plus(an.linear(node.extent))
        first, last, known = ends_of(an, atom, span, _around_all(node.body) or (), inner)
        if not known:
            return node
        steps = an.maximum(an.recombine(last.minus(first)), an.constant(0, dtype))
        return node.replace(  # type: ignore[no-any-return]
            min=an.to_expr(first), extent=an.to_expr(steps), kind=S.ForKind.SERIAL,
            body=decided(node.body, known),
        )  # fmt: skip


def _around_all(stmt: S.Stmt) -> list[Any] | None:
    """Return the conditions under which all of `stmt` stands; None where it does nothing."""
    if isinstance(stmt, (S.For, S.AttrStmt, S.Allocate)):
        return _around_all(stmt.body)
    if isinstance(stmt, S.IfThenElse) and stmt.else_case is None:
        inside = _around_all(stmt.then_case)
        return None if inside is None else [*conjuncts(stmt.condition), *inside]
    if isinstance(stmt, S.SeqStmt):
        parts = [p for p in map(_around_all, stmt.stmts) if p is not None]
        rest = parts[1:]
        return [c for c in parts[0] if all(any(c is d for d in p) for p in rest)] if parts else None
    return None if _only_asks(stmt) else []


def _only_asks(stmt: S.Stmt) -> bool:
    """Return whether a statement may as well not run: a prefetch, or none at all."""
    if not isinstance(stmt, S.Evaluate):
        return False
    return S.is_nop(stmt) or (isinstance(stmt.value, E.Call) and stmt.value.op == "prefetch")
