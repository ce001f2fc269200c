"""Sizes that an exported program leaves open, as dimensions of relay.

torch names them by sympy symbols and computes with them in nodes of their own.  What such a node
gives is read from torch's own formula for it, so that both sides agree on every size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import reduce
from math import prod
from typing import Any

from slipway.errors import ModelError, SlipwayError
from slipway.frontends.converter_table import UnsupportedNode
from slipway.ir import ops
from slipway.ir.expr import PrimExpr
from slipway.relay.dims import Dim, SymbolDim, dim_of, line_of, padding_of

LARGEST = (1 << 31) - 2  # above that torch's ranges mean: nothing is known


class ProgramDims:
    """Relay's dimensions for torch's symbols: with the ranges of the export, or as inputs say."""

    def __init__(self, ranges: Mapping[Any, Any]) -> None:
        self.ranges = {str(symbol): bounds for symbol, bounds in ranges.items()}
        self.known: dict[str, Any] = {}

    def bring(self, size: object, most: int | None) -> Any:
        """Return the dimension of a size that an operator's values decide, None for another one.

        It is at most `most` where torch knows no bound.
        """
        expr = getattr(getattr(size, "node", None), "expr", None)
        if expr is None or not expr.is_Symbol or not str(expr).startswith("u"):
            return None
        name = str(expr)
        if name in self.known:
            return None
        low, high = self._range(name)
        most = high if most is None or (high is not None and high < most) else most
        self.known[name] = Dim(name, low, most)
        return self.known[name]

    def state(self, expr: Any, extent: int) -> None:
        """Let a symbol be a number, or a dimension with a name and a range of the user's.

        Of a number of times a symbol, and a number more, the symbol is told; other formulas tell
        nothing.

        Raises ModelError where the program was exported for other sizes.
        """
        more, several = expr.as_coeff_Add()
        times, expr = several.as_coeff_Mul()
        if not (expr.is_Symbol and times.is_Integer and more.is_Integer and times > 0):
            return
        extent -= int(more)
        line, count = line_of(extent), int(times)
        if isinstance(extent, int) and extent % count == 0:
            extent //= count
        elif line is not None and line.times % count == line.more % count == 0:
            extent = SymbolDim(line.variable) * (line.times // count) + line.more // count
        else:
            return
        name = str(expr)
        before = self.known.setdefault(name, extent)
        if before != extent:
            raise ModelError(
                f"the program has one size ({name}) where input_infos says {before} and {extent}"
            )
        low, high = self._range(name)
        given = (extent.low, extent.high) if isinstance(extent, SymbolDim) else (extent, extent)
        outside = given[0] < low or (high is not None and (given[1] is None or given[1] > high))
        if outside:
            above = "" if high is None else str(high)
            raise ModelError(
                f"the program was exported for sizes {low}..{above} of {name}, and input_infos has "
                f"{extent}{_text(extent)}: give a size inside, or export it for more"
            )

    def most(self, shape: Iterable[Any]) -> int | None:
        """Return how many elements a shape has at most; None where nothing bounds it."""
        ends: list[Any] = [d.high if isinstance(d, SymbolDim) else d for d in map(self.of, shape)]
        return None if None in ends else prod(ends)

    def _range(self, name: str) -> tuple[int, int | None]:
        bounds = self.ranges.get(name)
        if bounds is None:
            return 0, None
        low = _number(bounds.lower, 0)
        high = _number(bounds.upper, LARGEST + 1)
        return max(low, 0), None if high > LARGEST else high

    def of(self, size: object) -> Any:
        """Return an extent: an int, or the dimension of a SymInt.  Raises UnsupportedNode."""
        if isinstance(size, int):
            return size
        node = getattr(size, "node", None)
        if node is None:
            raise UnsupportedNode(f"its size {size} depends on values")
        try:
            found = dim_of(self._formula(node.expr))
        except SlipwayError as error:
            raise UnsupportedNode(f"its size {node.expr}: {error}") from error
        return found

    def _formula(self, expr: Any) -> PrimExpr:
        if expr.is_Symbol:
            known = self._symbol(str(expr))
            return known.formula if isinstance(known, SymbolDim) else ops.const(known, "int32")
        if expr.is_Integer:
            return ops.const(int(expr), "int32")
        name = type(expr).__name__
        if name in _ROUNDED:
            return self._rounded(expr, _ROUNDED[name])
        parts = [self._formula(part) for part in expr.args]
        if name == "Pow" and 0 < (power := getattr(parts[1], "value", 0)) < 9:
            return reduce(ops.mul, [parts[0]] * power)
        if name not in _MAKERS:
            raise UnsupportedNode(f"the size {expr} is no formula of sums, products and quotients")
        made = reduce(_MAKERS[name], parts)
        return padding_of(made) if name in ("Mod", "PythonMod") else made

    def _rounded(self, expr: Any, up: bool) -> PrimExpr:
        """Return a size times a factor of floats, rounded: 1.5 * n, down, is 3 * n // 2."""
        parts = expr.args[0].args if expr.args[0].is_Mul else expr.args
        factor, sizes = Fraction(1), []
        for part in parts:
            if part.is_Float:
                factor *= Fraction(float(part))
            elif type(part).__name__ == "ToFloat":
                sizes.append(self._formula(part.args[0]))
            else:
                raise UnsupportedNode(f"the size {expr} is no size times a factor")
        if factor <= 0 or factor.denominator > _MOST_PARTS or len(sizes) != 1:
            raise UnsupportedNode(
                f"the size {expr} is no size times a fraction of at most {_MOST_PARTS} parts"
            )
        whole = ops.mul(sizes[0], ops.const(factor.numerator, "int32"))
        whole = ops.add(whole, ops.const(factor.denominator - 1, "int32")) if up else whole
        return ops.floordiv(whole, ops.const(factor.denominator, "int32"))

    def _symbol(self, name: str) -> Any:
        if name not in self.known:
            if name not in self.ranges or name.startswith("u"):
                raise UnsupportedNode(f"the size {name} depends on values")
            low, high = self._range(name)
            self.known[name] = Dim(re.sub(r"\W", "_", name), low, high)
        return self.known[name]


def _text(extent: int) -> str:
    return f" ({extent.low}..{extent.high})" if isinstance(extent, SymbolDim) else ""


def _number(bound: object, otherwise: int) -> int:
    """Return an end of a range; torch has several infinities, none of which is an integer."""
    is_number = isinstance(bound, int) or getattr(bound, "is_Integer", False)
    return int(bound) if is_number else otherwise  # type: ignore[call-overload]


_MOST_PARTS = 1 << 10  # of a factor that is a fraction; others are no fractions but roundings
_ROUNDED = {"TruncToInt": False, "FloorToInt": False, "CeilToInt": True}  # to the next above?
_MAKERS: Mapping[str, Callable[[Any, Any], PrimExpr]] = {
    "Add": ops.add, "Mul": ops.mul, "Max": ops.maximum, "Min": ops.minimum,
    "FloorDiv": ops.floordiv, "CleanDiv": ops.floordiv,
    "Mod": ops.floormod, "PythonMod": ops.floormod,
}  # fmt: skip
