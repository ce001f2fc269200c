"""`ir.Range` as scripts write it: ``Range(begin, end)``, and ``Range(n)`` from zero."""

from __future__ import annotations

from slipway.ir import ops
from slipway.ir.expr import PrimExpr, Range


class _RangeOfScripts(type):
    """What is called makes a `slipway.ir.expr.Range`, and every one of those is an instance."""

    def __call__(cls, begin: PrimExpr | int, end: PrimExpr | int | None = None) -> Range:
        first = ops.const(0) if end is None else ops.as_expr(begin)
        last = ops.as_expr(begin if end is None else end)
        known = ops.as_int(first), ops.as_int(last)
        if known[0] is None or known[1] is None:
            return Range(first, last if known[0] == 0 else ops.sub(last, first))
        return Range(first, ops.const(known[1] - known[0], first.dtype))

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Range)


class ScriptRange(metaclass=_RangeOfScripts):
    """The half-open interval from `begin` to before `end`; of one number, from zero to it."""

    @staticmethod
    def from_min_extent(min_value: PrimExpr | int, extent: PrimExpr | int) -> Range:
        """Return the interval of `extent` numbers from `min_value` on."""
        return Range(ops.as_expr(min_value), ops.as_expr(extent))

    @staticmethod
    def make_by_min_extent(min_value: PrimExpr | int, extent: PrimExpr | int) -> Range:
        """Return the interval of `extent` numbers from `min_value` on."""
        return ScriptRange.from_min_extent(min_value, extent)
