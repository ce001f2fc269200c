"""Whether a comparison holds for all values: bounds, divisibility, and what atoms are at most.

    min(6 * i, w - 6) + 5 < w   holds: the minimum is at most w - 6
    k % w < w                   holds: a remainder is at most w - 1, where w is positive
    k // w < h                  holds where k < h * w does, which the loop of k may say

A sum with sizes in it bounds an atom more closely than any constant where the atom is compared
with these sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import TYPE_CHECKING, Any

from slipway.arith.linear import INF, Atom, Linear
from slipway.ir import expr as E

if TYPE_CHECKING:
    from slipway.arith.analyzer import Analyzer

_LEAST = -(2**31)  # of 32-bit integers
_STEPS = 4  # atoms that are replaced, one after the other


# What was decided on the way to one verdict: the order in which atoms are replaced leads to the
# same sums again and again.
Seen = dict[tuple[Any, ...], bool | None]


def decide(an: Analyzer, kind: Any, difference: Linear) -> bool | None:
    """Decide ``difference <kind> 0``; None when unknown."""
    return _decide(an, kind, difference, _STEPS, {})


def _decide(an: Analyzer, kind: Any, difference: Linear, steps: int, seen: Seen) -> bool | None:
    found = _decided_by_bounds(kind, difference)
    if found is not None or kind is E.EQ or kind is E.NE or not steps:
        return found
    if not any(atom.kind in ("min", "max") or _is_open(atom) for atom in difference.terms):
        return None
    key = kind, difference.key, difference.dtype, steps
    if key not in seen:
        seen[key] = _by_atoms(an, kind, difference, steps, seen)
    return seen[key]


def _by_atoms(an: Analyzer, kind: Any, difference: Linear, steps: int, seen: Seen) -> bool | None:
    """Decide with something closer in place of some atoms."""
    found = _by_bounded(an, kind, difference, steps, seen)
    if found is not None:
        return found
    difference = _reduced(kind, difference)
    for atom, factor in difference.terms.items():
        found = _without(an, kind, difference, atom, factor, steps, seen)
        if found is not None:
            return found
    return None


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


def _by_bounded(an: Analyzer, kind: Any, difference: Linear, steps: int, seen: Seen) -> bool | None:
    """Decide with the ends of all variables that have constant ones, and nothing closer."""
    ends = {
        atom: factor
        for atom, factor in difference.terms.items()
        if atom.kind == "var" and atom.arg is None and not isinstance(atom.expr, E.SizeVar)
    }
    low, high = Linear(ends, 0, difference.dtype).bounds()
    if not ends or low == -INF or high == INF:
        return None
    others = {a: f for a, f in difference.terms.items() if a not in ends}
    for end, wanted in ((high, kind in (E.LT, E.LE)), (low, kind in (E.GT, E.GE))):
        moved = Linear(others, difference.const + int(end), difference.dtype)
        if _decide(an, kind, moved, steps, seen) is wanted:
            return wanted
    return None


def _reduced(kind: Any, difference: Linear) -> Linear:
    """Return the same comparison without a common factor: 2 a - 2 b + 1 < 0 where a - b < 0."""
    common = gcd(*difference.terms.values())
    if common < 2:
        return difference
    terms = {atom: factor // common for atom, factor in difference.terms.items()}
    # Of integers, g y + c < 0 where y < ceil(-c / g), and g y + c <= 0 where y <= floor(-c / g).
    up = kind is E.LT or kind is E.GE
    const = -(-difference.const // common) if not up else difference.const // common
    return Linear(terms, const, difference.dtype)


def _without(
    an: Analyzer, kind: Any, difference: Linear, atom: Atom, factor: int, steps: int, seen: Seen
) -> bool | None:
    """Decide with what one atom is at most, or at least, in its place."""
    divisor = _divisor(an, atom, difference.dtype, steps)
    if divisor is not None and abs(factor) == 1:
        return _by_dividend(an, kind, difference, atom, divisor, steps, seen)
    if atom.kind == "div" and _is_open(atom):  # so many times the difference has it times c
        more = atom.divisor // gcd(factor, atom.divisor)
        difference, factor = difference.scaled(more), factor * more
    for end, is_upper in _ends(atom):
        # What comes is at least the difference where both agree, and at most it elsewhere.
        above = (factor > 0) == is_upper
        others = difference.plus(Linear({atom: 1}, 0, difference.dtype), -factor)
        times = factor // atom.divisor if atom.kind == "div" else factor
        holds = _decide(an, kind, an.recombine(others.plus(end, times)), steps - 1, seen)
        if holds is not None and holds == (above == (kind in (E.LT, E.LE))):
            return holds
    return None


def _ends(atom: Atom) -> Iterator[tuple[Linear, bool]]:
    """Yield sums that an atom never exceeds (True), or never falls below (False).

    Of an open quotient y // c, what c of it do: y - c + 1 to y.
    """
    if atom.kind == "div" and _is_open(atom):
        assert atom.arg is not None
        yield atom.arg, True
        yield atom.arg.shifted(1 - atom.divisor), False
    if atom.kind == "var" and atom.arg is not None:
        yield atom.arg, True
    if atom.arg is None or atom.other is None:
        return
    if atom.kind in ("min", "max"):
        yield atom.arg, atom.kind == "min"
        yield atom.other, atom.kind == "min"
    elif atom.remainders and atom.other.low > 0:
        yield atom.other.shifted(-1), True


def _is_open(atom: Atom) -> bool:
    """Return whether an atom depends on sizes, or on a loop whose end does."""
    return any(isinstance(v.expr, E.SizeVar) or v.arg is not None for v in atom.variables)


def _divisor(an: Analyzer, atom: Atom, dtype: str, steps: int) -> Linear | None:
    """Return what an atom is the floored quotient by, if that is positive.

    Quotients by numbers have constant bounds of their own: they are looked into only on the way
    from or to open sizes.
    """
    if atom.kind == "div" and (steps < _STEPS or not atom.pure or _is_open(atom)):
        return an.constant(atom.divisor, dtype)
    if atom.kind == "other" and type(atom.expr) is E.FloorDiv:
        return atom.other if atom.other is not None and atom.other.low > 0 else None
    return None


def _by_dividend(
    an: Analyzer, kind: Any, difference: Linear, atom: Atom, divisor: Linear, steps: int, seen: Seen
) -> bool | None:
    """Decide y // d + rest <kind> 0 by y: y // d < n where y < n * d, for integers and d > 0."""
    assert atom.arg is not None
    quotient = Linear({atom: 1}, 0, difference.dtype)
    factor = difference.terms[atom]
    if factor < 0:  # n <kind> y // d
        n = difference.plus(quotient)
        kind = _SWAPPED[kind]
    else:
        n = quotient.minus(difference)
    if kind in (E.LE, E.GT):  # y // d <= n where y // d < n + 1
        n = n.shifted(1)
    kind = E.LT if kind in (E.LT, E.LE) else E.GE
    n = an.recombine(atom.arg.minus(an.multiply(n, divisor)))
    return _decide(an, kind, n, steps - 1, seen)


def of_dividend(an: Analyzer, kind: Any, x: Linear, y: Linear) -> tuple[Any, Linear, Linear]:
    """Return a comparison of a quotient and a sum as that of its dividend.

    y // c < n as y < n * c, and 2 * i + j // 16 < 8 as 32 * i + j < 128.  Steps of a loop that was
    fused take the form that vectors and cuts understand: a sum.
    """
    difference, given = an.recombine(x.minus(y)), kind
    if kind not in _SWAPPED or not difference.terms:
        return kind, x, y
    difference = _reduced(kind, difference)
    quotients = [atom for atom in difference.terms if atom.kind == "div"]
    others = [atom for atom in difference.terms if atom.kind != "div"]
    if len(quotients) != 1 or any(atom.kind != "var" for atom in others):
        return kind, x, y
    (atom,) = quotients
    factor = difference.terms[atom]
    if abs(factor) != 1:
        return kind, x, y
    if factor < 0:
        difference, kind = difference.scaled(-1), _SWAPPED[kind]
    if kind in (E.LE, E.GT):  # of integers: < 1, >= 1
        difference = difference.shifted(-1)
    assert atom.arg is not None
    remainder = difference.minus(Linear({atom: 1}, 0, difference.dtype))
    moved = an.recombine(atom.arg.plus(remainder, atom.divisor))
    sides = moved.shifted(-moved.const), an.constant(-moved.const, x.dtype)
    grown = sides if others else sides[1:]  # what is multiplied by the divisor
    if any(side.low < _LEAST or side.high > -_LEAST - 1 for side in grown):
        return given, x, y
    return E.LT if kind in (E.LT, E.LE) else E.GE, *sides


_SWAPPED = {E.LT: E.GT, E.LE: E.GE, E.GT: E.LT, E.GE: E.LE}
