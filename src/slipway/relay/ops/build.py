"""For operators that are compositions: calls of others, constants, and values of arguments.

A composition is a function from expressions to an expression of registered operators.  It needs
no type rule, reference or te expression of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Constant, Expr, Var
from slipway.relay.op_registry import BadArgument, as_expr, const
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from slipway.relay.expr import ExprLike


def call(name: str, *args: Any, **options: Any) -> Any:
    """Return the expression that the function of operator `name` builds."""
    return op_registry.make(name)(*args, **options)


def typed(value: ExprLike) -> tuple[Any, TensorType]:
    """Return `value` as an expression, and its type, which must be known."""
    expr = as_expr(value)
    return expr, expr.tensor_type


def implied(value: ExprLike, shape: Sequence[Any], dtype: str) -> Any:
    """Return `value` as an expression; a variable without a type is of this one from then on."""
    expr = as_expr(value)
    if isinstance(expr, Var):
        expr.take_type(TensorType(tuple(shape), dtype))
    return expr


def known(argument: str, value: ExprLike) -> np.ndarray[Any, Any]:
    """Return the value of an argument that must be a constant.  Raises BadArgument."""
    if isinstance(value, Constant):
        return value.array
    if isinstance(value, Expr):
        raise BadArgument(
            argument, "must be a constant: the shape of the result, or what is computed, follows "
            "from it. Bind it with relay.build_module.bind_params_by_name",
        )  # fmt: skip
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def known_ints(argument: str, value: ExprLike) -> tuple[int, ...]:
    """Return a constant argument as integers.  Raises BadArgument."""
    found = np.ravel(known(argument, value))
    try:
        return tuple(int(v) for v in found)
    except (TypeError, ValueError, OverflowError):
        raise BadArgument(argument, f"is {value!r}; write whole numbers") from None


def where(mask: np.ndarray[Any, Any], chosen: ExprLike, other: ExprLike) -> Any:
    """Return `chosen` where a mask known now holds, else `other`."""
    if mask.all():
        return chosen
    return call("where", const(mask), chosen, other)


def take(data: ExprLike, positions: np.ndarray[Any, Any], axis: int) -> Any:
    """Return the slices of `data` along `axis` at positions known now."""
    return call("take", data, const(positions.astype(np.int32)), axis)


def scalar(value: float, dtype: str) -> Constant:
    """Return a rank-0 constant."""
    return const(np.asarray(value).astype(dtype))


def counted(extent: Any, dtype: str) -> Any:
    """Return 0, 1, ... below an extent, which may be open."""
    if is_open(extent):
        return call("arange", 0, extent, 1, dtype)
    return const(np.arange(extent).astype(dtype))


def length(data: ExprLike, axis: int, dtype: str) -> Any:
    """Return how many elements an axis has, as a number that broadcasts."""
    x, own = typed(data)
    axis %= own.rank
    if not is_open(own.shape[axis]):
        return scalar(own.shape[axis], dtype)
    sizes = call("strided_slice", call("shape_of", x, "int32"), [axis], [axis + 1])
    return call("cast", sizes, dtype)
