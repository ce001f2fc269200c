"""Reductions: te.sum, te.max, te.min and reducers of the user's own."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from slipway.arguments import function_of
from slipway.errors import ArgumentTypeError, ArgumentValueError
from slipway.ir import ops
from slipway.ir.expr import CommReducer, IterVar, PrimExpr, Range, Reduce, Var

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike, ShapeLike

    pass


def reduce_axis(
    dom: Range | ShapeLike, name: str = "rv", thread_tag: str = "", span: object = None
) -> IterVar:
    """Return a reduction axis over `dom`: a pair (begin, end), a Range, or an extent.

    Its variable is as wide as its bounds are.
    """
    given = as_range(dom)
    dtype = ops.add(given.min, given.extent).dtype
    bounds = Range(ops.cast(given.min, dtype), ops.cast(given.extent, dtype))
    return IterVar(bounds, Var(name, dtype), "reduce", thread_tag)


def as_range(dom: Range | ShapeLike) -> Range:
    """Return a Range from a Range, a pair (begin, end) or an extent."""
    if isinstance(dom, Range):
        return dom
    if isinstance(dom, (tuple, list)):
        if len(dom) != 2:
            raise ArgumentValueError(
                f"the range of an axis is {tuple(dom)}; write a pair, (begin, end)"
            )
        begin, end = (ops.as_extent(d) for d in dom)
        return Range(begin, ops.sub(end, begin))
    return Range.of(ops.as_extent(cast("PrimExprLike", dom)))


def _axes(axis: IterVar | Sequence[IterVar] | None) -> tuple[IterVar, ...]:
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for one in axes:
        if not isinstance(one, IterVar) or one.kind != "reduce":
            raise ArgumentTypeError(
                f"a reduction needs axes made by te.reduce_axis, got {one!r}; "
                "write for example k = te.reduce_axis((0, n), name='k')"
            )
    return axes


def comm_reducer(
    fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Make a reducer of a commutative function and its identity.

    ``fcombine(x, y)`` combines two values (tuples for a tuple reduction); ``fidentity(dtype)``
    (one dtype per value) returns the starting value.  The reducer is called as
    ``reducer(expr, axis=k, where=None, init=None)`` and returns the reduced value (or a tuple);
    called with values alone, ``reducer(a, b)``, it combines those.
    """
    function_of(fcombine, f"comm_reducer {name!r}: fcombine", "lambda x, y: x + y")
    function_of(fidentity, f"comm_reducer {name!r}: fidentity", "lambda dtype: te.const(0, dtype)")

    def reducer(
        expr: Any, axis: Any, where: Any = None, init: Any = None, *rest: Any
    ) -> PrimExpr | tuple[PrimExpr, ...]:
        along_data = type(axis) is Var and not isinstance(expr, Var)  # sum(a[i], axis=i): below
        if isinstance(axis, PrimExpr) and not along_data:  # mysum(a, b): of values
            given = [ops.as_expr(v) for v in (expr, axis, where, init, *rest) if v is not None]
            combined: PrimExpr = functools.reduce(fcombine, given)
            return combined
        many = isinstance(expr, (tuple, list))
        source = tuple(ops.as_expr(e) for e in (expr if many else (expr,)))
        lhs = tuple(Var(f"x{i}" if many else "x", s.dtype) for i, s in enumerate(source))
        rhs = tuple(Var(f"y{i}" if many else "y", s.dtype) for i, s in enumerate(source))
        types = [s.dtype for s in source]
        result = _as_tuple(fcombine(lhs, rhs) if many else fcombine(lhs[0], rhs[0]), types)
        identity = _as_tuple(fidentity(*types), types)
        if len(result) != len(source) or len(identity) != len(source):
            raise ArgumentValueError(
                f"reducer {name!r} takes {len(source)} values, but combines to {len(result)} "
                f"and starts from {len(identity)}"
            )
        condition = ops.TRUE if where is None else ops.as_expr(where)
        start = () if init is None else _as_tuple(init, types)
        combiner = CommReducer(lhs, rhs, result, identity)
        values = tuple(
            Reduce(combiner, source, _axes(axis), condition, i, start) for i in range(len(source))
        )
        return values if many else values[0]

    reducer.__name__ = name
    reducer.__doc__ = f"Reduce values with {name!r} over the given reduction axes."
    return reducer


def _as_tuple(values: object, types: Sequence[str]) -> tuple[PrimExpr, ...]:
    items = values if isinstance(values, (tuple, list)) else (values,)
    return tuple(
        ops.cast(ops.as_expr(v, t) if not isinstance(v, PrimExpr) else v, t)
        for v, t in zip(items, types, strict=False)
    )


_sum = comm_reducer(lambda x, y: ops.add(x, y), lambda t: ops.const(0, t), name="sum")
_prod = comm_reducer(lambda x, y: ops.mul(x, y), lambda t: ops.const(1, t), name="prod")
_max = comm_reducer(lambda x, y: ops.maximum(x, y), ops.lowest, name="max")
_min = comm_reducer(lambda x, y: ops.minimum(x, y), ops.highest, name="min")
_max_of_numbers = comm_reducer(
    lambda x, y: ops.max_of_numbers(x, y), ops.min_value, name="max_of_numbers"
)
_all = comm_reducer(ops.logical_and, lambda t: ops.TRUE, name="all")
_any = comm_reducer(ops.logical_or, lambda t: ops.FALSE, name="any")


def sum(
    expr: PrimExprLike | Sequence[PrimExprLike],
    axis: IterVar | Sequence[IterVar],
    where: PrimExprLike | None = None,
    init: PrimExprLike | Sequence[PrimExprLike] | None = None,
) -> Any:
    """The sum of `expr` over reduction axes `axis`, where the condition `where` holds."""
    return _sum(expr, axis, where, init)


def prod(
    expr: PrimExprLike | Sequence[PrimExprLike],
    axis: IterVar | Sequence[IterVar],
    where: PrimExprLike | None = None,
    init: PrimExprLike | Sequence[PrimExprLike] | None = None,
) -> Any:
    """The product of `expr` over reduction axes `axis`."""
    return _prod(expr, axis, where, init)


def max(
    *args: PrimExprLike | Sequence[PrimExprLike],
    axis: IterVar | Sequence[IterVar] | None = None,
    where: PrimExprLike | None = None,
    init: PrimExprLike | Sequence[PrimExprLike] | None = None,
) -> Any:
    """``te.max(e, axis=k)``: largest value over axes; ``te.max(a, b, ...)``: of the values."""
    return _extreme(args, axis, where, init, _max, ops.maximum)


def max_of_numbers(
    *args: PrimExprLike | Sequence[PrimExprLike],
    axis: IterVar | Sequence[IterVar] | None = None,
    where: PrimExprLike | None = None,
) -> Any:
    """Like `max`, where it does not matter if a NaN is passed over: one instruction on every CPU.

    Of a NaN and a number it gives either, and it is finite where all values are minus infinity.  A
    softmax is right with both: what it subtracts the maximum from is still a NaN.
    """
    return _extreme(args, axis, where, None, _max_of_numbers, ops.max_of_numbers)


def min(
    *args: PrimExprLike | Sequence[PrimExprLike],
    axis: IterVar | Sequence[IterVar] | None = None,
    where: PrimExprLike | None = None,
    init: PrimExprLike | Sequence[PrimExprLike] | None = None,
) -> Any:
    """``te.min(e, axis=k)``: minimum over axes; ``te.min(a, b, ...)``: of the values."""
    return _extreme(args, axis, where, init, _min, ops.minimum)


def _extreme(args: Any, axis: Any, where: Any, init: Any, reducer: Any, pairwise: Any) -> Any:
    if axis is not None:
        return reducer(args[0], axis, where, init)
    if len(args) == 2 and _is_axis(args[1]):
        return reducer(args[0], args[1], where, init)
    if len(args) < 2:
        raise ArgumentTypeError("te.max / te.min need two values, or one value and axis=")
    result = args[0]
    for value in args[1:]:
        result = pairwise(result, value)
    return result


def _is_axis(value: object) -> bool:
    items = value if isinstance(value, (tuple, list)) else (value,)
    return bool(items) and builtins.all(
        isinstance(i, IterVar) and i.kind == "reduce" for i in items
    )


def all(
    *args: PrimExprLike | Sequence[PrimExprLike], axis: IterVar | Sequence[IterVar] | None = None
) -> Any:
    """``te.all(a, b, ...)``: every condition holds; with ``axis=`` a reduction."""
    return _all(args[0], axis) if axis is not None else ops.all_of(args)


def any(
    *args: PrimExprLike | Sequence[PrimExprLike], axis: IterVar | Sequence[IterVar] | None = None
) -> Any:
    """``te.any(a, b, ...)``: some condition holds; with ``axis=`` a reduction."""
    return _any(args[0], axis) if axis is not None else ops.any_of(args)
