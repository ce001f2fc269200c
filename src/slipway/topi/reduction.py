"""Reductions over some or all dimensions of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.ir import ops
from slipway.te import math
from slipway.te import reduction as R
from slipway.te.declare import compute, const
from slipway.te.tensor import Tensor
from slipway.topi.elementwise import divide
from slipway.topi.tag import COMM_REDUCE, COMM_REDUCE_IDX
from slipway.topi.utils import normalize_axis, ravel_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.ir.expr import PrimExpr


def _axes(x: Tensor, axis: int | Sequence[int] | None) -> tuple[int, ...]:
    given = range(x.ndim) if axis is None else axis if isinstance(axis, (list, tuple)) else (axis,)
    return tuple(sorted({normalize_axis(a, x.ndim) for a in given}))


def _reduced(
    x: Tensor,
    axis: Any,
    keepdims: bool,
    name: str,
    function: Callable[..., Any],
    tag: str = COMM_REDUCE,
) -> Any:
    axes = _axes(x, axis)
    over = [R.reduce_axis((0, x.shape[a]), f"k{a}") for a in axes]
    kept = [a for a in range(x.ndim) if keepdims or a not in axes]
    shape = tuple(ops.const(1) if a in axes else x.shape[a] for a in kept)

    def element(*i: PrimExpr) -> Any:
        indices: list[Any] = [None] * x.ndim
        for a, index in zip(kept, i, strict=False):
            indices[a] = index
        for a, k in zip(axes, over, strict=True):
            indices[a] = k.var
        return function(indices, over)

    return compute(shape, element, name, tag)


def _simple(name: str, reducer: Callable[..., Any]) -> Callable[..., Tensor]:
    def apply(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        function = lambda indices, over: reducer(data(*indices), axis=over)  # noqa: E731
        return _reduced(data, axis, keepdims, name, function)  # type: ignore[no-any-return]

    apply.__name__ = name
    apply.__doc__ = f"Return the {name} over `axis` (one, several, or None for all of them)."
    return apply


sum = _simple("sum", R.sum)
max = _simple("max", R.max)
min = _simple("min", R.min)
prod = _simple("prod", R.prod)


def _logical(name: str, reducer: Callable[..., Any]) -> Callable[..., Tensor]:
    def apply(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        def function(indices: Any, over: Any) -> Any:
            value = data(*indices)
            return reducer(
                value if value.dtype == "bool" else ops.not_equal(value, const(0, value.dtype)),
                axis=over,
            )

        return _reduced(data, axis, keepdims, name, function)  # type: ignore[no-any-return]

    apply.__name__ = name
    apply.__doc__ = f"Return whether {name} of the elements over `axis` are not 0."
    return apply


all = _logical("all", R.all)
any = _logical("any", R.any)


def mean(data: Tensor, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Any:
    """Return the mean over `axis` (one, several, or None for all of them)."""
    count: Any = const(1, "int32")
    for a in _axes(data, axis):
        count = ops.mul(count, data.shape[a])
    return divide(sum(data, axis, keepdims), ops.cast(count, data.dtype))


def _arg(name: str, better: Callable[..., Any], worst: Callable[..., Any]) -> Callable[..., Tensor]:
    def combine(a: Any, b: Any) -> Any:
        no_number = math.isnan(a[1]), math.isnan(b[1])  # the first NaN wins over every number
        ahead = R.any(better(a[1], b[1]), R.all(no_number[0], ops.logical_not(no_number[1])))
        tied = R.any(ops.equal(a[1], b[1]), R.all(*no_number))
        first = R.any(ahead, R.all(tied, ops.less(a[0], b[0])))
        return ops.select(first, a[0], b[0]), ops.select(first, a[1], b[1])

    def identity(index: str, value: str) -> Any:
        return const(dtypes.int_range(index)[1], index), worst(value)

    reducer = R.comm_reducer(combine, identity, name)

    def apply(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        axes = _axes(data, axis)

        def function(indices: Any, over: Any) -> Any:
            position = ravel_index([k.var for k in over], [data.shape[a] for a in axes])
            return reducer((position, data(*indices)), axis=over)

        found = _reduced(data, axis, keepdims, name, function, f"{COMM_REDUCE_IDX}_pairs")
        picked = found[0]
        return compute(picked.shape, lambda *i: picked(*i), name, COMM_REDUCE_IDX)  # type: ignore[no-any-return]

    apply.__name__ = name
    apply.__doc__ = f"Return the position of the {name[3:]}imum along `axis`; the first of equals."
    return apply


argmax = _arg("argmax", ops.greater, ops.lowest)
argmin = _arg("argmin", ops.less, ops.highest)
