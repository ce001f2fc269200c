"""Division towards zero, scaling by fixed point, and moments: compositions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.relay.expr import Tuple, TupleWrapper
from slipway.relay.op_registry import as_expr
from slipway.relay.ops.build import call, typed
from slipway.relay.ops.tensor.reduce import mean, std, variance

if TYPE_CHECKING:
    from slipway.relay.expr import Axes, ExprLike


def trunc_divide(lhs: ExprLike, rhs: ExprLike) -> Any:
    """Divide towards zero, as C does."""
    (a, own), b = typed(lhs), as_expr(rhs)
    if not dtypes.is_integral(own.dtype):
        return call("trunc", call("divide", a, b))
    size = call("floor_divide", call("abs", a), call("abs", b))
    return call("multiply", size, call("multiply", call("sign", a), call("sign", b)))


def trunc_mod(lhs: ExprLike, rhs: ExprLike) -> Any:
    """Return the remainder of a division towards zero, which has the sign of `lhs`."""
    return call("subtract", lhs, call("multiply", rhs, trunc_divide(lhs, rhs)))


def fixed_point_multiply(data: ExprLike, multiplier: int, shift: int) -> Any:
    """Return data * multiplier * 2**(shift - 31) of int32 data, rounded once, halves upward."""
    return call("qnn.rescale", data, int(multiplier), int(shift), True)


def mean_variance(
    data: ExprLike, axis: Axes = None, keepdims: bool = False, exclude: bool = False,
    unbiased: bool = False,
) -> TupleWrapper:  # fmt: skip
    """Return mean and variance over axes."""
    both = (
        mean(data, axis, keepdims, exclude),
        variance(data, axis, keepdims, exclude, unbiased),
    )
    return TupleWrapper(Tuple(both), 2)


def mean_std(
    data: ExprLike, axis: Axes = None, keepdims: bool = False, exclude: bool = False
) -> TupleWrapper:
    """Return mean and standard deviation over axes."""
    both = (mean(data, axis, keepdims, exclude), std(data, axis, keepdims, exclude))
    return TupleWrapper(Tuple(both), 2)
