"""The Analyzer: canonical simplification, constant bounds and proofs under bound variables.

`Analyzer.linear` turns an int32/int64 scalar expression into a `Linear`; `simplify` rewrites any
expression with it; `can_prove` decides comparisons by bounds.  Index arithmetic is assumed not
to overflow, as everywhere in the loop language.  Results are memoised by node identity: this is
the hottest Python of the compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from slipway.arith.dividends import recombined
from slipway.arith.linear import INDEX_TYPES, INF, Atom, Bound, Linear
from slipway.arith.opaque import bounds_of, identity_of, variables_in
from slipway.arith.rules import BUILDERS as _BUILDERS
from slipway.arith.rules import RULES as _RULES
from slipway.arith.verdicts import decide, of_dividend
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.visit import map_children, substitute, walk

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.ir.node import Node


class Analyzer:
    """Facts about variables, and what follows from them.

    `bind(var, low, high)` states an inclusive range.  One variable should be bound before it is
    first used; binding it again to another range forgets every memoised result.
    """

    def __init__(self) -> None:
        self._atoms: dict[Any, Atom] = {}
        self._memo: dict[int, tuple[Any, Linear]] = {}
        self._simple: dict[int, tuple[Any, Any]] = {}
        self._quotients: dict[Any, Linear] = {}
        self._remainders: dict[Any, Linear] = {}
        self._ranges: dict[int, tuple[E.Var, Bound, Bound]] = {}
        self._values: dict[int, tuple[E.Var, Linear]] = {}
        self._lasts: dict[int, tuple[E.Var, Linear]] = {}
        self._count = 0

    # -- facts ---------------------------------------------------------------------------------

    def bind(self, var: E.Var, low: Bound, high: Bound) -> None:
        """State that `var` lies in [low, high]; equal ends make it that constant."""
        known = self._ranges.get(id(var))
        if known is not None and known[1] == low and known[2] == high:
            return
        if known is not None:
            self._forget(var)
            self._lasts.pop(id(var), None)
        self._ranges[id(var)] = (var, low, high)
        if low == high:
            self._values[id(var)] = (var, Linear({}, int(low), var.dtype))

    def bind_range(self, var: E.Var, dom: E.Range) -> None:
        """State that `var` runs over `dom`, whose ends may be symbolic."""
        first = self.linear(dom.min)
        extent = self.linear(dom.extent)
        if extent.is_const and extent.const == 1:
            self.bind_value(var, first)
            return
        last = first.plus(extent).shifted(-1)
        self.bind(var, first.low, max(last.high, first.low))
        self.bind_last(var, last)

    def bind_last(self, var: E.Var, last: Linear) -> None:
        """State that `var` is at most a sum, which counts where it has open sizes in it."""
        if not any(isinstance(v.expr, E.SizeVar) for a in last.terms for v in a.variables):
            return
        known = self._lasts.get(id(var))
        if known is None or known[1].key != last.key:
            self._forget(var)
            self._lasts[id(var)] = (var, last)

    def bind_value(self, var: E.Var, value: Any) -> None:
        """State that `var` equals `value` (an expression or Linear): it is replaced by it."""
        linear = value if isinstance(value, Linear) else self.linear(value)
        if id(var) in self._ranges:
            self._forget(var)
            self._lasts.pop(id(var), None)
        self._ranges[id(var)] = (var, linear.low, linear.high)
        self._values[id(var)] = (var, linear)

    def _forget(self, var: E.Var) -> None:
        self._atoms.pop(("var", id(var)), None)
        self._values.pop(id(var), None)
        for key, atom in list(
            self._atoms.items()
        ):  # their variables and bounds were those of `var`
            if atom.kind == "other" and any(part is var for part in walk(atom.expr)):
                del self._atoms[key]
        self._memo.clear()
        self._simple.clear()

    # -- linear form ---------------------------------------------------------------------------

    def linear(self, expr: Node) -> Linear:
        """Return the canonical linear sum equal to `expr` (a scalar int32 or int64 expression)."""
        found = self._memo.get(id(expr))
        if found is not None:
            return found[1]
        build = _BUILDERS.get(type(expr))
        result = build(self, expr) if build is not None else self.opaque(self.rebuild(expr))
        return self.remember(expr, result)

    def known(self, expr: Node) -> Linear | None:
        """Return what `linear` has made of `expr` before, if it has."""
        found = self._memo.get(id(expr))
        return found[1] if found is not None else None

    def remember(self, expr: Node, linear: Linear) -> Linear:
        """Memoise that `expr` is `linear`."""
        self._memo[id(expr)] = (expr, linear)
        return linear

    def constant(self, value: int, dtype: str = "int32") -> Linear:
        """Return a constant sum."""
        return Linear({}, value, dtype)

    def to_expr(self, linear: Linear) -> Any:
        """Return `linear` as an expression, and remember it."""
        expr = linear.to_expr()
        if id(expr) not in self._memo:
            self._memo[id(expr)] = (expr, linear)
        return expr

    def _next(self) -> int:
        self._count += 1
        return self._count

    def var_atom(self, var: E.Var) -> Atom:
        """Return the atom of a variable."""
        key = ("var", id(var))
        atom = self._atoms.get(key)
        if atom is None:
            known = self._ranges.get(id(var))
            if known is not None:
                low, high = known[1], known[2]
            else:
                low, high = -INF, INF
                if isinstance(var, E.SizeVar):
                    low, high = var.low, var.high if var.high >= 0 else INF
                self._ranges[id(var)] = (var, low, high)  # keeps the id alive
            atom = self._atoms[key] = Atom("var", self._next(), var, low, high)
            if id(var) in self._lasts:
                atom.arg = self._lasts[id(var)][1]
        return atom

    def _from_var(self, expr: Any) -> Linear:
        value = self._values.get(id(expr))
        if value is not None:
            return value[1]
        return Linear({self.var_atom(expr): 1}, 0, expr.dtype)

    def opaque(self, expr: PrimExpr) -> Linear:
        """Return an atom for an expression that arithmetic does not look into."""
        if isinstance(expr, E.IntImm):
            return Linear({}, expr.value, expr.dtype)
        key = ("other", identity_of(self, expr))
        atom = self._atoms.get(key)
        if atom is None:
            low, high = bounds_of(self, expr)
            atom = self._atoms[key] = Atom("other", self._next(), expr, low, high)
            atom.variables = variables_in(self, expr, atom)
            if isinstance(expr, (E.FloorDiv, E.FloorMod)):
                atom.arg, atom.other = self.linear(expr.a), self.linear(expr.b)
                atom.pure = all(a.pure for a in (*atom.arg.terms, *atom.other.terms))
        return Linear({atom: 1}, 0, expr.dtype)

    # -- arithmetic on sums --------------------------------------------------------------------

    def multiply(self, x: Linear, y: Linear) -> Linear:
        """Return x * y: scaled, or distributed over products of atoms."""
        if not y.terms:
            return x.scaled(y.const)
        if not x.terms:
            return y.scaled(x.const)
        if len(x.terms) * len(y.terms) > 16:
            return self._product_of_sums(x, y)
        result = Linear({}, x.const * y.const, x.dtype)
        if y.const:
            result = result.plus(Linear(x.terms, 0, x.dtype), y.const)
        if x.const:
            result = result.plus(Linear(y.terms, 0, x.dtype), x.const)
        for a, ka in x.terms.items():
            for b, kb in y.terms.items():
                result = result.plus(Linear({self._product(a, b): ka * kb}, 0, x.dtype))
        return result

    def _product_of_sums(self, x: Linear, y: Linear) -> Linear:
        """Return a product as one atom: multiplied out it would be too long."""
        key = ("other", "product", frozenset((x.key, y.key)), x.dtype)
        atom = self._atoms.get(key)
        if atom is None:
            expr = E.Mul(self.to_expr(x), self.to_expr(y))
            atom = self._atoms[key] = Atom(
                "other", self._next(), expr, *_times(x.bounds(), y.bounds())
            )
            atom.variables = frozenset().union(*(a.variables for a in (*x.terms, *y.terms)))
        return Linear({atom: 1}, 0, x.dtype)

    def _product(self, a: Atom, b: Atom) -> Atom:
        factors = tuple(sorted((a.factors or (a,)) + (b.factors or (b,)), key=lambda f: f.uid))
        key = ("product", factors)
        atom = self._atoms.get(key)
        if atom is None:
            expr = factors[0].expr
            low, high = factors[0].low, factors[0].high
            for factor in factors[1:]:
                expr = E.Mul(expr, factor.expr)
                low, high = _times((low, high), (factor.low, factor.high))
            atom = self._atoms[key] = Atom("product", self._next(), expr, low, high)
            atom.factors = factors
            atom.remainders = tuple(f for f in factors if f.remainders)
            atom.variables = frozenset().union(*(f.variables for f in factors))
            atom.pure = all(f.pure for f in factors)
        return atom

    def floordiv(self, x: Linear, divisor: int) -> Linear:
        """Return floor(x / divisor) for a constant divisor."""
        if divisor < 0:
            return self.floordiv(x.scaled(-1), -divisor)
        if not x.terms:
            return Linear({}, x.const // divisor, x.dtype)
        key = (x.key, divisor, x.dtype)
        found = self._quotients.get(key)
        if found is None:
            found = self._quotients[key] = self._floordiv(x, divisor)
        return found

    def _floordiv(self, x: Linear, c: int) -> Linear:
        whole = {a: k // c for a, k in x.terms.items() if k % c == 0}
        remainder_terms = {a: k for a, k in x.terms.items() if k % c}
        q0, r0 = divmod(x.const, c)
        base = Linear(whole, q0, x.dtype)
        remainder = Linear(remainder_terms, r0, x.dtype)
        low, high = remainder.bounds()
        if low // c == high // c:  # infinity // c is no number, and equals nothing
            return base.shifted(int(low // c))
        shrunk = self._common_factor(remainder, c)
        if shrunk is not None:
            big, g, _ = shrunk
            return base.plus(self.floordiv(big, c // g))
        if len(remainder_terms) == 1:
            ((atom, k),) = remainder_terms.items()
            if k == 1 and atom.kind == "div":
                assert atom.arg is not None
                inner = atom.arg.shifted(r0 * atom.divisor)
                return base.plus(self.floordiv(inner, atom.divisor * c))
            if k == 1 and r0 == 0 and atom.kind == "mod" and atom.divisor % c == 0:
                assert atom.arg is not None
                return base.plus(self.floormod(self.floordiv(atom.arg, c), atom.divisor // c))
        return base.plus(Linear({self._quotient_atom("div", remainder, c): 1}, 0, x.dtype))

    def _common_factor(self, remainder: Linear, c: int) -> tuple[Linear, int, Linear] | None:
        """Split it in g * big + small with g | c, g > 1 and 0 <= small < g, if it can be."""
        candidates = sorted({math.gcd(k, c) for k in remainder.terms.values()}, reverse=True)
        for g in candidates:
            if g <= 1:
                break
            small = {a: k for a, k in remainder.terms.items() if k % g}
            small_sum = Linear(small, remainder.const % g, remainder.dtype)
            low, high = small_sum.bounds()
            if low >= 0 and high < g:
                big = {a: k // g for a, k in remainder.terms.items() if k % g == 0}
                return Linear(big, remainder.const // g, remainder.dtype), g, small_sum
        return None

    def floormod(self, x: Linear, divisor: int) -> Linear:
        """Return x - divisor * floor(x / divisor) for a constant positive divisor."""
        if not x.terms:
            return Linear({}, x.const % divisor, x.dtype)
        if divisor < 0:
            return x.minus(self.floordiv(x, divisor).scaled(divisor))
        key = (x.key, divisor, x.dtype)
        found = self._remainders.get(key)
        if found is None:
            found = self._remainders[key] = self._floormod(x, divisor)
        return found

    def _floormod(self, x: Linear, c: int) -> Linear:
        remainder = Linear({}, x.const % c, x.dtype)
        for atom, k in x.terms.items():
            if k % c == 0:
                continue
            coefficient = k % c if abs(k) >= c else k
            if atom.kind == "mod" and atom.divisor % c == 0:
                assert atom.arg is not None
                remainder = remainder.plus(atom.arg, coefficient)
            else:
                remainder = remainder.plus(Linear({atom: coefficient}, 0, x.dtype))
        if remainder.key != x.key:
            return self.floormod(remainder, c)
        low, high = remainder.bounds()
        if low // c == high // c:  # neither is infinite: see above
            return remainder.shifted(-int(low // c) * c)
        shrunk = self._common_factor(remainder, c)
        if shrunk is not None:
            big, g, small = shrunk
            return self.floormod(big, c // g).scaled(g).plus(small)
        return Linear({self._quotient_atom("mod", remainder, c): 1}, 0, x.dtype)

    def _quotient_atom(self, kind: str, arg: Linear, c: int) -> Atom:
        key = (kind, arg.key, c, arg.dtype)
        atom = self._atoms.get(key)
        if atom is None:
            node = E.FloorDiv if kind == "div" else E.FloorMod
            expr = node(self.to_expr(arg), ops.const(c, arg.dtype))
            low, high = arg.bounds()
            if kind == "div":
                low = low // c if low > -INF else low
                high = high // c if high < INF else high
            else:
                low, high = 0, c - 1
            atom = self._atoms[key] = Atom(kind, self._next(), expr, low, high)
            atom.arg, atom.divisor = arg, c
            atom.variables = frozenset().union(*(a.variables for a in arg.terms))
            atom.pure = all(a.pure for a in arg.terms)
        return atom

    def recombine(self, x: Linear) -> Linear:
        """Undo ``c * (y // c) + y % c`` to y, wherever both, or both times the same, are in x."""
        return recombined(self, x)

    def minimum(self, x: Linear, y: Linear) -> Linear:
        """Return min(x, y), decided when the difference has a sign."""
        return self._extreme("min", x, y)

    def maximum(self, x: Linear, y: Linear) -> Linear:
        """Return max(x, y), decided when the difference has a sign."""
        return self._extreme("max", x, y)

    def _extreme(self, kind: str, x: Linear, y: Linear) -> Linear:
        difference = self.recombine(x.minus(y))
        low, high = difference.bounds()
        if high <= 0 or (low < 0 and self.decide(E.LE, difference)):
            return x if kind == "min" else y
        if low >= 0 or self.decide(E.GE, difference):
            return y if kind == "min" else x
        key = (kind, frozenset((x.key, y.key)), x.dtype)
        atom = self._atoms.get(key)
        if atom is None:
            node = E.Min if kind == "min" else E.Max
            pick = min if kind == "min" else max
            low, high = pick(x.low, y.low), pick(x.high, y.high)
            atom = Atom(kind, self._next(), node(self.to_expr(x), self.to_expr(y)), low, high)
            self._atoms[key] = atom
            atom.arg, atom.other = x, y
            atom.variables = frozenset().union(*(a.variables for a in (*x.terms, *y.terms)))
            atom.pure = all(a.pure for a in (*x.terms, *y.terms))
        return Linear({atom: 1}, 0, x.dtype)

    def substitute(self, x: Linear, values: Mapping[Atom, Linear]) -> Linear:
        """Replace variable atoms in `x`, also inside quotients, by other sums."""
        result = Linear({}, x.const, x.dtype)
        for atom, k in x.terms.items():
            if atom in values:
                result = result.plus(values[atom], k)
            elif atom.variables.isdisjoint(values):
                result = result.plus(Linear({atom: 1}, 0, x.dtype), k)
            else:
                result = result.plus(self._substitute_atom(atom, values, x.dtype), k)
        return self.recombine(result)

    def _substitute_atom(self, atom: Atom, values: Mapping[Atom, Linear], dtype: str) -> Linear:
        if atom.kind in ("div", "mod"):
            assert atom.arg is not None
            arg = self.substitute(atom.arg, values)
            divide = self.floordiv if atom.kind == "div" else self.floormod
            return divide(arg, atom.divisor)
        if atom.kind in ("min", "max"):
            assert atom.arg is not None
            assert atom.other is not None
            first, second = (self.substitute(s, values) for s in (atom.arg, atom.other))
            return self._extreme(atom.kind, first, second)
        if atom.kind == "product":
            product = Linear({}, 1, dtype)
            for factor in atom.factors:
                piece = self.substitute(Linear({factor: 1}, 0, dtype), values)
                product = self.multiply(product, piece)
            return product
        mapping = {v.expr: self.to_expr(values[v]) for v in atom.variables if v in values}
        return self.linear(substitute(atom.expr, mapping))

    # -- proofs --------------------------------------------------------------------------------

    def bounds(self, expr: PrimExpr) -> tuple[Bound, Bound]:
        """Return constant inclusive bounds of an integer expression."""
        return self.linear(expr).bounds()

    def modular_set(self, expr: PrimExpr) -> tuple[int, int]:
        """Return (m, r): `expr` is always r modulo m; m is 0 for the constant r."""
        return self.linear(expr).modular()

    def can_prove(self, condition: PrimExpr) -> bool:
        """Return whether `condition` holds for all values of the variables."""
        result = self.simplify(condition)
        return isinstance(result, E.IntImm) and result.value == 1

    def can_prove_equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        """Return whether two integer expressions are always equal."""
        difference = self.recombine(self.linear(a).minus(self.linear(b)))
        return difference.is_const and difference.const == 0

    # -- simplification ------------------------------------------------------------------------

    def simplify(self, expr: PrimExpr) -> Any:
        """Return an equal expression in canonical form; the same object when already so."""
        if type(expr) is E.IntImm or type(expr) is E.FloatImm:
            return expr
        if expr.dtype in INDEX_TYPES:
            found = self._memo.get(id(expr))
            linear = found[1] if found is not None else self.linear(expr)
            return self.to_expr(linear)
        known = self._simple.get(id(expr))
        if known is not None:
            return known[1]
        result = self.rebuild(expr)
        self._simple[id(expr)] = (expr, result)
        if result is not expr:
            self._simple[id(result)] = (result, result)
        return result

    def rebuild(self, expr: Node) -> Any:
        """Simplify the operands of `expr` and apply the local rules of its class."""
        rule = _RULES.get(type(expr))
        return rule(self, expr) if rule is not None else self._map(expr)

    def _map(self, expr: Node) -> Any:
        return map_children(
            expr, lambda child: self.simplify(child) if isinstance(child, E.PrimExpr) else child
        )

    def _compare(self, expr: Any) -> Any:
        if expr.a.dtype not in INDEX_TYPES:
            a, b = self.simplify(expr.a), self.simplify(expr.b)
            if isinstance(a, (E.IntImm, E.FloatImm)) and isinstance(b, (E.IntImm, E.FloatImm)):
                return ops.TRUE if _COMPARE[type(expr)](a.value, b.value) else ops.FALSE
            return expr if a is expr.a and b is expr.b else type(expr)(a, b)
        x, y = self.linear(expr.a), self.linear(expr.b)
        verdict = decide(self, type(expr), self.recombine(x.minus(y)))
        if verdict is not None:
            return ops.TRUE if verdict else ops.FALSE
        kind, x, y = of_dividend(self, type(expr), x, y)
        a, b = self.to_expr(x), self.to_expr(y)
        same = kind is type(expr) and a is expr.a and b is expr.b
        return expr if same else kind(a, b)

    def decide(self, kind: Any, difference: Linear) -> bool | None:
        """Decide ``difference <kind> 0`` for all values of the variables; None when unknown."""
        return decide(self, kind, difference)


def _times(one: tuple[Bound, Bound], other: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    """Return the bounds of a product; zero times what has no end is zero."""
    ends = [0 if p == 0 or q == 0 else p * q for p in one for q in other]
    return min(ends), max(ends)


_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    E.LT: lambda x, y: x < y,
    E.LE: lambda x, y: x <= y,
    E.GT: lambda x, y: x > y,
    E.GE: lambda x, y: x >= y,
    E.EQ: lambda x, y: x == y,
    E.NE: lambda x, y: x != y,
}
