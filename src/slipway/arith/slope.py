"""How far a sum goes when one of its variables takes a step: a number, or a product of sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slipway.arith.linear import Atom, Linear
from slipway.ir import expr as E

if TYPE_CHECKING:
    from slipway.arith.analyzer import Analyzer


def slope(an: Analyzer, x: Linear, variable: Atom) -> Linear | None:
    """Return what `x` grows by with a step of `variable`; None where that depends on the place.

    c * h * w + 3 * c + i has the slope h * w + 3 in c, where h and w are sizes.
    """
    found = an.constant(x.terms.get(variable, 0), x.dtype)
    for atom, times in x.terms.items():
        if atom is variable or variable not in atom.variables:
            continue
        others = [factor for factor in atom.factors if factor is not variable]
        if len(others) != len(atom.factors) - 1 or not all(map(_is_size, others)):
            return None
        product = an.constant(times, x.dtype)
        for factor in others:
            product = an.multiply(product, Linear({factor: 1}, 0, x.dtype))
        found = found.plus(product)
    return found


def _is_size(atom: Atom) -> bool:
    """Return whether an atom is a size, or computed of sizes alone."""
    return atom.pure and all(isinstance(v.expr, E.SizeVar) for v in atom.variables)
