"""What one known condition decides: in a statement under it, and of other conditions.

A comparison of integers says in which interval a sum of variables lies: i + 3 < 8 that i is at
most 4.  Known to hold, or not to, it decides every comparison of the same sum whose interval holds
all of that, or nothing of it.  Other conditions decide those that are written the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from slipway.arith.analyzer import Analyzer
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.visit import map_children

Interval = tuple[float, float]
# Where x < -c holds, for x + c compared with 0, and so on; ends belong to the interval.
_HOLDS: dict[type, Callable[[int], Interval]] = {
    E.LT: lambda c: (-inf, -c - 1),
    E.LE: lambda c: (-inf, -c),
    E.GT: lambda c: (-c + 1, inf),
    E.GE: lambda c: (-c, inf),
    E.EQ: lambda c: (-c, -c),
}
_COMPLEMENT: dict[type, type] = {E.LT: E.GE, E.LE: E.GT, E.GT: E.LE, E.GE: E.LT}


def given(stmt: S.Stmt, condition: E.PrimExpr, holds: bool) -> Any:
    """Return `stmt` where `condition` is known, with every choice that it decides made."""
    return _Given(condition, holds).visit(stmt)


def decides(known: E.PrimExpr, condition: E.PrimExpr) -> bool | None:
    """Return what `condition` is wherever `known` holds; None where their sums leave it open."""
    return _Given(known, True).decide(condition)


def comparable(conditions: Sequence[E.PrimExpr]) -> list[E.PrimExpr]:
    """Return those that compare the sum of the first one, by where they divide it.

    The first alone where it compares no sum.
    """
    first = _Given(conditions[0], True)
    if first.key is None:
        return [conditions[0]]
    ends: dict[Interval, E.PrimExpr] = {}
    for condition in conditions:
        found = first.sum_of(condition, type(condition))
        if found is not None and found[0] == first.key:
            ends.setdefault(found[1], condition)
    return [ends[interval] for interval in sorted(ends, key=_finite_ends)]


def _finite_ends(interval: Interval) -> list[float]:
    return [end for end in interval if abs(end) != inf]


def conjuncts(condition: E.PrimExpr) -> list[E.PrimExpr]:
    """Return the conditions that must hold together for `condition`."""
    if isinstance(condition, E.And):
        return conjuncts(condition.a) + conjuncts(condition.b)
    return [condition]


class _Given:
    def __init__(self, condition: E.PrimExpr, holds: bool) -> None:
        self.condition = condition
        self.holds = holds
        self.an = Analyzer()
        self.memo: dict[int, tuple[Any, Any]] = {}
        self.key: Any = None
        kind = type(condition) if holds else _COMPLEMENT.get(type(condition))
        if kind is not None and (found := self.sum_of(condition, kind)) is not None:
            self.key, self.known = found

    def visit(self, node: Any) -> Any:
        if not isinstance(node, (S.Stmt, E.PrimExpr)):
            return node
        memo = self.memo.get(id(node))
        if memo is None:
            memo = self.memo[id(node)] = node, self._visit(node)
        return memo[1]

    def _visit(self, node: Any) -> Any:
        verdict = self.decide(node)
        if verdict is not None:
            return ops.TRUE if verdict else ops.FALSE
        result = map_children(node, self.visit)
        if result is node:
            return node
        if isinstance(result, E.And):
            return ops.logical_and(result.a, result.b)
        if isinstance(result, E.Select) and isinstance(result.condition, E.IntImm):
            return result.true_value if result.condition.value else result.false_value
        if isinstance(result, E.Call) and result.op == "if_then_else":
            known, yes, no = result.args
            if isinstance(known, E.IntImm):
                return yes if known.value else no
        return result

    def decide(self, node: Any) -> bool | None:
        """Return whether a condition holds; None where that is open, or it is none."""
        if node is self.condition:
            return self.holds
        if type(node) is type(self.condition) and _same(node, self.condition):
            return self.holds
        if self.key is None:
            return None
        found = self.sum_of(node, type(node))
        if found is None or found[0] != self.key:
            return None
        (low, high), (smallest, most) = self.known, found[1]
        if smallest <= low and high <= most:
            return True
        return False if high < smallest or most < low else None

    def sum_of(self, node: Any, kind: type) -> tuple[Any, Interval] | None:
        """Return what names the sum that a comparison is about, and where it lies by `kind`."""
        if type(node) not in _HOLDS or node.a.dtype not in ("int32", "int64"):
            return None
        an = self.an
        difference = an.recombine(an.linear(node.a).minus(an.linear(node.b)))
        if not difference.terms or not all(a.pure for a in difference.terms):
            return None
        first = min(difference.terms, key=lambda atom: atom.uid)
        low, high = _HOLDS[kind](difference.const)
        if first.kind == "div" and difference.terms == {first: 1}:
            # Of a quotient y // c it says something of y, which is how the Analyzer writes it.
            assert first.arg is not None
            difference, c = first.arg, first.divisor
            low, high = low * c - difference.const, high * c + c - 1 - difference.const
            first = min(difference.terms, key=lambda atom: atom.uid)
        if difference.terms[first] < 0:  # x and -x have one name
            difference = an.constant(0, difference.dtype).minus(difference)
            low, high = -high, -low
        return difference.shifted(-difference.const).key, (low, high)


def _same(one: Any, other: Any) -> bool:
    """Return whether two expressions are written the same, over the same variables."""
    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, (E.Var, E.BufferLoad, E.Call, E.Let)):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, E.PrimExpr):
        return all(_same(getattr(one, f), getattr(other, f)) for f in one.FIELDS)
    return bool(one == other)
