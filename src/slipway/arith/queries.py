"""`arith.Analyzer` as scripts ask it: facts about variables, bounds and remainders as records."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from slipway.arith import analyzer
from slipway.errors import ArgumentTypeError
from slipway.ir import expr as E
from slipway.ir import ops


class ConstIntBound:
    """The least and the largest value of an expression, both included."""

    POS_INF: ClassVar[int] = (1 << 63) - 1
    NEG_INF: ClassVar[int] = -POS_INF

    def __init__(self, min_value: int, max_value: int) -> None:
        self.min_value, self.max_value = min_value, max_value

    def __repr__(self) -> str:
        return f"ConstIntBound[{self.min_value}, {self.max_value}]"


class ModularSet(NamedTuple):
    """What an expression always is: ``coeff * n + base`` for some n."""

    coeff: int
    base: int


class QueryAnalyzer(analyzer.Analyzer):
    """Proofs about integer expressions: ``bind(x, Range(0, 8))``, then ``simplify(x // 8)``."""

    def bind(self, var: E.Var, low: Any, high: Any = None) -> None:
        """State that a variable runs over a Range, equals an expression, or lies in [low, high]."""
        if high is not None:
            super().bind(var, low, high)
        elif isinstance(low, E.Range):
            self.bind_range(var, low)
        else:
            self.bind_value(var, ops.as_expr(low))

    def update(self, var: E.Var, info: ConstIntBound, override: bool = False) -> None:
        """State the bounds of a variable, in place of those known if `override`, else with them."""
        if not isinstance(info, ConstIntBound):
            raise ArgumentTypeError(
                f"Analyzer.update takes a ConstIntBound, not {type(info).__name__}: state what a "
                "variable is with bind(var, expression)"
            )
        low, high = info.min_value, info.max_value
        if not override:
            known = self.const_int_bound(var)
            low, high = max(low, known.min_value), min(high, known.max_value)
        super().bind(var, low, high)

    def const_int_bound(self, expr: E.PrimExpr) -> ConstIntBound:
        """Return constant bounds of an integer expression."""
        low, high = self.bounds(ops.as_expr(expr))
        limit = ConstIntBound.POS_INF
        return ConstIntBound(int(max(low, -limit)), int(high) if high < limit else limit)

    def modular_set(self, expr: E.PrimExpr) -> ModularSet:
        """Return (coeff, base): an integer expression is always ``coeff * n + base``."""
        return ModularSet(*super().modular_set(ops.as_expr(expr)))

    def simplify(self, expr: E.PrimExpr, steps: int = 2) -> Any:
        """Return an equal expression in canonical form; without `steps` the expression itself."""
        given = ops.as_expr(expr)
        return super().simplify(given) if steps else given

    def rewrite_simplify(self, expr: E.PrimExpr) -> Any:
        """Return an equal expression in canonical form."""
        return self.simplify(expr)

    def canonical_simplify(self, expr: E.PrimExpr) -> Any:
        """Return an equal expression in canonical form."""
        return self.simplify(expr)
