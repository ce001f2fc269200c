"""Symbolic intervals: the values an index takes while some of its variables run over ranges.

Bound inference asks: which elements of a tensor does this loop body read?  `interval_of` answers
for one index: variables in `ranges` are relaxed to their [low, high], all others stay symbols.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slipway.arith.linear import INF, Atom, Linear

if TYPE_CHECKING:
    from slipway.arith.analyzer import Analyzer

Interval = tuple[Linear, Linear]


def interval_of(an: Analyzer, x: Linear, ranges: Mapping[Atom, Interval | None]) -> Interval | None:
    """Return inclusive ends of `x` while the atoms in `ranges` run; None when unbounded.

    An atom whose range is None takes any value that its own bounds allow.
    """
    fixed: dict[Atom, int] = {}
    low = high = None
    for atom, k in x.terms.items():
        inside = ranges.get(atom)
        if inside is None:
            if atom.variables.isdisjoint(ranges):
                fixed[atom] = k
                continue
            inside = _interval_of_atom(an, atom, ranges, x.dtype)
            if inside is None:
                return None
        first, last = inside if k > 0 else (inside[1], inside[0])
        low = first.scaled(k) if low is None else low.plus(first, k)
        high = last.scaled(k) if high is None else high.plus(last, k)
    constant_part = Linear(fixed, x.const, x.dtype)
    if low is None or high is None:
        return x, x
    return an.recombine(constant_part.plus(low)), an.recombine(constant_part.plus(high))


def _interval_of_atom(
    an: Analyzer, atom: Atom, ranges: Mapping[Atom, Interval | None], dtype: str
) -> Interval | None:
    if atom.kind == "div":
        assert atom.arg is not None
        inner = interval_of(an, atom.arg, ranges)
        if inner is None:
            return None
        return an.floordiv(inner[0], atom.divisor), an.floordiv(inner[1], atom.divisor)
    if atom.kind == "mod":
        assert atom.arg is not None
        inner = interval_of(an, atom.arg, ranges)
        if inner is not None:
            first, last = (an.floordiv(end, atom.divisor) for end in inner)
            if first.key == last.key:
                return an.floormod(inner[0], atom.divisor), an.floormod(inner[1], atom.divisor)
    elif atom.kind in ("min", "max"):
        assert atom.arg is not None
        assert atom.other is not None
        a, b = interval_of(an, atom.arg, ranges), interval_of(an, atom.other, ranges)
        if a is not None and b is not None:
            pick = an.minimum if atom.kind == "min" else an.maximum
            return pick(a[0], b[0]), pick(a[1], b[1])
    elif atom.kind == "product":
        relaxed = [f for f in atom.factors if not f.variables.isdisjoint(ranges)]
        if len(relaxed) == 1:
            others = Linear({}, 1, dtype)
            for factor in atom.factors:
                if factor is not relaxed[0]:
                    others = an.multiply(others, Linear({factor: 1}, 0, dtype))
            inner = interval_of(an, Linear({relaxed[0]: 1}, 0, dtype), ranges)
            if inner is not None and others.low >= 0:
                return an.multiply(inner[0], others), an.multiply(inner[1], others)
    if atom.low > -INF and atom.high < INF:
        return an.constant(int(atom.low), dtype), an.constant(int(atom.high), dtype)
    return None


def union(an: Analyzer, a: Interval, b: Interval) -> Interval:
    """Return the smallest interval that holds both."""
    if a is b:
        return a
    return an.minimum(a[0], b[0]), an.maximum(a[1], b[1])
