"""Whether a comparison holds for all values: bounds, divisibility, and what extremes are at most.

    min(6 * i, w - 6) + 5 < w   holds: the minimum is at most w - 6
    k % w < w                   holds: a remainder is at most w - 1, where w is positive

The second argument of a minimum bounds it more closely than any constant where it has the size
that the minimum is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slipway.arith.linear import Atom, Linear
from slipway.ir import expr as E


def decide(kind: Any, difference: Linear) -> bool | None:
    """Decide ``difference <kind> 0``; None when unknown."""
    found = _decided_by_bounds(kind, difference)
    if found is None and kind is not E.EQ and kind is not E.NE:
        found = _decided_by_extremes(kind, difference)
    return found


def _decided_by_bounds(kind: Any, difference: Linear) -> bool | None:
    low, high = difference.bounds()
    if kind is E.LT:
        return True if high < 0 else False if low >= 0 else None
    if kind is E.LE:
        return True if high <= 0 else False if low > 0 else None
    if kind is E.GT:
        return True if low > 0 else False if high <= 0 else None
    if kind is E.GE:
        return True if low >= 0 else False if high < 0 else None
    same: bool | None = None
    if low == 0 and high == 0:
        same = True
    elif low > 0 or high < 0:
        same = False
    else:
        m, r = difference.modular()
        if m and r:
            same = False
    if same is None:
        return None
    return same if kind is E.EQ else not same


def _decided_by_extremes(kind: Any, difference: Linear) -> bool | None:
    """Put in the place of one atom what it is at most, or at least, and decide by bounds."""
    for atom, factor in difference.terms.items():
        rest: Linear | None = None
        for end, is_upper in _ends(atom):
            if rest is None:
                terms = {a: f for a, f in difference.terms.items() if a is not atom}
                rest = Linear(terms, difference.const, difference.dtype)
            # What comes is at least the difference where both agree, and at most it elsewhere.
            above = (factor > 0) == is_upper
            holds = _decided_by_bounds(kind, rest.plus(end, factor))
            if holds is not None and holds == (above == (kind in (E.LT, E.LE))):
                return holds
    return None


def _ends(atom: Atom) -> Iterator[tuple[Linear, bool]]:
    """Yield sums that an atom never exceeds (True), or never falls below (False)."""
    if atom.arg is None or atom.other is None:
        return
    if atom.kind in ("min", "max"):
        yield atom.arg, atom.kind == "min"
        yield atom.other, atom.kind == "min"
    elif atom.remainders and atom.other.low > 0:
        yield atom.other.shifted(-1), True
