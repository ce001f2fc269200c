"""Sums with a quotient and a remainder of one dividend: what both make up is the dividend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.arith.linear import Atom, Linear
from slipway.ir import expr as E

if TYPE_CHECKING:
    from slipway.arith.analyzer import Analyzer


def recombined(an: Analyzer, x: Linear) -> Linear:
    """Undo ``c * (y // c) + y % c`` to y, wherever both, or both times the same, are in x."""
    for atom, k in x.terms.items():
        for remainder in atom.remainders:
            if atom is remainder and atom.kind == "mod":
                found = _dividend_in(an, x, atom, k)
            else:
                found = _open_dividend_in(an, x, atom, remainder, k)
            if found is not None:
                whole, y = found
                parts = Linear({atom: 1}, 0, x.dtype).plus(whole)
                return recombined(an, x.minus(parts.scaled(k)).plus(y, k))
    return x


def _open_dividend_in(
    an: Analyzer, x: Linear, atom: Atom, mod: Atom, k: int
) -> tuple[Linear, Linear] | None:
    """Return (t * d * (y // d), t * y) for the atom t * (y % d) where x has k times the former.

    Here d, t or both are no numbers.  A floored quotient and remainder make the dividend up
    whatever the signs of y and d are, and no program divides by zero.
    """
    if mod.kind == "mod":
        assert mod.arg is not None
        y, whole = mod.arg, an.floordiv(mod.arg, mod.divisor).scaled(mod.divisor)
    else:
        assert mod.arg is not None
        assert mod.other is not None
        expr: Any = mod.expr
        quotient = an.opaque(E.FloorDiv(expr.a, expr.b))
        y, whole = mod.arg, an.multiply(quotient, mod.other)
    if atom is not mod:
        for factor in _without(atom.factors, mod):
            times = Linear({factor: 1}, 0, x.dtype)
            y, whole = an.multiply(y, times), an.multiply(whole, times)
    return (whole, y) if whole.scaled(k).terms.items() <= x.terms.items() else None


def _dividend_in(an: Analyzer, x: Linear, mod: Atom, k: int) -> tuple[Linear, Linear] | None:
    """Return (c * (y // c), y) for the atom y % c where x has k times the former.

    A remainder is kept with coefficients below c, so its y may differ from the quotient's.
    Where x has c * (y // c % e) it is that, and y % (c * e).
    """
    assert mod.arg is not None
    factor = k * mod.divisor
    quotient = an.floordiv(mod.arg, mod.divisor)
    if quotient.scaled(factor).terms.items() <= x.terms.items():
        return quotient.scaled(mod.divisor), mod.arg
    remainder = Linear({mod: 1}, 0, x.dtype)
    for div, n in x.terms.items():
        if div.kind == "div" and div.divisor == mod.divisor and n == factor:
            assert div.arg is not None
            if an.floormod(div.arg, div.divisor).key == remainder.key:
                return Linear({div: mod.divisor}, 0, x.dtype), div.arg
        if div.kind == "mod" and n == factor:
            assert div.arg is not None
            y = recombined(an, div.arg.scaled(mod.divisor).plus(remainder))
            if mod not in y.terms:
                whole = Linear({div: mod.divisor}, 0, x.dtype)
                return whole, an.floormod(y, mod.divisor * div.divisor)
    return None


def _without(factors: tuple[Atom, ...], one: Atom) -> tuple[Atom, ...]:
    """Return factors of a product but `one`, once."""
    at = factors.index(one)
    return factors[:at] + factors[at + 1 :]
