"""Linear sums of atoms: the canonical form of integer expressions.

Every index expression is kept as ``const + sum(coefficient * atom)``.  An atom is a variable, a
floor division or remainder that does not simplify further, a product of atoms, or an expression
that arithmetic cannot look into.  Atoms are interned by the `Analyzer` that made them, so equal
sums have equal keys.  The law of the form: a Linear is never changed after it is built.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from slipway.ir import expr as E
from slipway.ir.ops import const as make_const

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr

INF = math.inf
Bound = float | int
INDEX_TYPES = ("int32", "int64")
_constant = lru_cache(maxsize=4096)(make_const)  # of an int and a dtype of indices


class Atom:
    """An indivisible term of linear sums, with the constant bounds known of it.

    `kind` is "var", "div" (arg // divisor), "mod" (arg % divisor), "min", "max" (of arg and
    other), "product" (of `factors`) or "other".  `variables` are the "var" atoms inside; `pure`
    tells that no "other" is.  `remainders` are the floored remainders that it is, or is a product
    of: those by a number ("mod"), and by what is none ("other").
    """

    __slots__ = (
        "arg",
        "divisor",
        "expr",
        "factors",
        "high",
        "kind",
        "low",
        "other",
        "pure",
        "remainders",
        "uid",
        "variables",
    )
    divisor: int  # there is one in "div" and "mod" only

    def __init__(self, kind: str, uid: int, expr: PrimExpr, low: Bound, high: Bound) -> None:
        self.kind = kind
        self.uid = uid
        self.expr = expr
        self.low = low
        self.high = high
        self.arg: Linear | None = None
        self.other: Linear | None = None
        self.factors: tuple[Atom, ...] = ()
        self.pure: bool = kind != "other"
        is_remainder = kind == "mod" or (kind == "other" and type(expr) is E.FloorMod)
        self.remainders: tuple[Atom, ...] = (self,) if is_remainder else ()
        self.variables: frozenset[Atom] = frozenset((self,)) if kind == "var" else frozenset()


class Linear:
    """``const + sum(coefficient * atom)`` over integers of one dtype ("int32" or "int64")."""

    __slots__ = ("_bounds", "_expr", "_key", "const", "dtype", "terms")

    def __init__(self, terms: dict[Atom, int], const: int, dtype: str) -> None:
        self.terms = terms
        self.const = const
        self.dtype = dtype
        self._bounds: tuple[Bound, Bound] | None = None
        self._expr: Any = None
        self._key: Any = None

    @property
    def key(self) -> Any:
        """Equal for equal sums of one Analyzer."""
        key = self._key
        if key is None:
            key = self._key = (frozenset(self.terms.items()), self.const)
        return key

    @property
    def is_const(self) -> bool:
        """Return whether the sum has no terms."""
        return not self.terms

    def bounds(self) -> tuple[Bound, Bound]:
        """Return constant bounds (low, high); infinite where nothing is known."""
        found = self._bounds
        if found is None:
            low: Bound = self.const
            high: Bound = self.const
            for atom, k in self.terms.items():
                if k > 0:
                    low += k * atom.low
                    high += k * atom.high
                else:
                    low += k * atom.high
                    high += k * atom.low
            found = self._bounds = (low, high)
        return found

    @property
    def low(self) -> Bound:
        """The minimum it can take."""
        return self.bounds()[0]

    @property
    def high(self) -> Bound:
        """The largest value it can take."""
        return self.bounds()[1]

    def shifted(self, amount: int) -> Linear:
        """Return the sum plus a constant."""
        return self if amount == 0 else Linear(self.terms, self.const + amount, self.dtype)

    def scaled(self, factor: int) -> Linear:
        """Return the sum times a constant."""
        if factor == 1:
            return self
        if factor == 0:
            return Linear({}, 0, self.dtype)
        return Linear(
            {a: k * factor for a, k in self.terms.items()}, self.const * factor, self.dtype
        )

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Return ``self + factor * other``."""
        if not other.terms:
            return self.shifted(other.const * factor)
        if not self.terms and factor == 1:
            return other.shifted(self.const)
        terms = dict(self.terms)
        for atom, k in other.terms.items():
            total = terms.get(atom, 0) + k * factor
            if total:
                terms[atom] = total
            else:
                del terms[atom]
        return Linear(terms, self.const + factor * other.const, self.dtype)

    def minus(self, other: Linear) -> Linear:
        """Return ``self - other``."""
        return self.plus(other, -1)

    def modular(self) -> tuple[int, int]:
        """Return (m, r): the value is r modulo m for every value of the atoms; m 0: constant r."""
        m = 0
        for k in self.terms.values():
            m = math.gcd(m, k)
        return (m, self.const) if m == 0 else (m, self.const % m)

    def to_expr(self) -> Any:
        """Return the sum as an IR expression: positive terms first, largest strides first."""
        result = self._expr
        if result is None:
            result = self._expr = self._build()
        return result

    def _build(self) -> Any:
        dtype = self.dtype
        if not self.terms:
            return _constant(self.const, dtype)
        ordered = sorted(self.terms.items(), key=_term_order)
        is_added = ordered[0][1] > 0
        result: Any = None if is_added else _constant(self.const, dtype)
        for atom, k in ordered:
            term = atom.expr if abs(k) == 1 else E.Mul(atom.expr, _constant(abs(k), dtype))
            if result is None:
                result = term
            elif k > 0:
                result = E.Add(result, term)
            else:
                result = E.Sub(result, term)
        if is_added and self.const:
            more = E.Add if self.const > 0 else E.Sub
            result = more(result, _constant(abs(self.const), dtype))
        return result


def _term_order(item: tuple[Atom, int]) -> tuple[bool, int, int]:
    atom, k = item
    return k < 0, -abs(k), atom.uid
