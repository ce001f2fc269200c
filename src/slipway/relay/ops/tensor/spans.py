"""The positions that a slice reads along an axis, where sizes may be open."""

from __future__ import annotations

from typing import Any, NamedTuple

from slipway.arith.analyzer import Analyzer
from slipway.ir import ops
from slipway.ir.expr import PrimExpr
from slipway.relay.dims import SymbolDim, dim_of, is_open

_BEYOND = 1 << 31  # a slice's end that means: to the end


class Span(NamedTuple):
    """start, start + step, ...: `count` positions; start and count may be dimensions."""

    start: Any
    count: Any
    step: int


def span(begin: int, end: int, step: int, extent: int) -> Span:
    """Return the positions of ``[begin:end:step]`` on an axis, in Python's meaning."""
    if not any(map(is_open, (begin, end, extent))):
        found = range(*slice(begin, end, step).indices(extent))
        return Span(found.start, len(found), step)
    an = Analyzer()
    size = _expr(extent)
    last = ops.sub(size, 1) if step < 0 else size
    lowest = -1 if step < 0 else 0

    def inside(position: int) -> PrimExpr:
        """Return a place that counts from the start, and lies on the axis or just outside."""
        if not is_open(position) and not -_BEYOND < position < _BEYOND:
            return last if position > 0 else _expr(lowest)
        offset = _expr(position)
        if an.can_prove(ops.greater_equal(offset, 0)):
            return _smaller(an, offset, last)
        if an.can_prove(ops.less(offset, 0)):
            return _larger(an, ops.add(size, offset), _expr(lowest))
        # 1 where it is negative, and counts from the end
        later = ops.minimum(ops.maximum(ops.sub(0, offset), 0), 1)
        offset = ops.add(offset, ops.mul(size, later))
        return _smaller(an, _larger(an, offset, _expr(lowest)), last)

    first, after = inside(begin), inside(end)
    reach = ops.sub(after, first) if step > 0 else ops.sub(first, after)
    count = ops.floordiv(ops.add(reach, abs(step) - 1), abs(step))
    return Span(dim_of(first), dim_of(_larger(an, count, _expr(0))), step)


def _expr(value: int) -> PrimExpr:
    return value.formula if isinstance(value, SymbolDim) else ops.as_expr(value, "int32")


def _smaller(an: Analyzer, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if an.can_prove(ops.less_equal(a, b)):
        return a
    return b if an.can_prove(ops.less_equal(b, a)) else ops.minimum(a, b)


def _larger(an: Analyzer, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if an.can_prove(ops.less_equal(b, a)):
        return a
    return b if an.can_prove(ops.less_equal(a, b)) else ops.maximum(a, b)
