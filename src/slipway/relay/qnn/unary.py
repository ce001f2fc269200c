"""``relay.qnn.op``: functions of one 8-bit tensor, as tables of their 256 values.

The value of each entry is quantise(f(dequantise(q))): f in float32 of the real number that q
stands for, over the output's scale, to the nearest integer (halves to even), plus the output's
zero point, held inside the dtype.  Where f has no value there (the logarithm of a negative number)
the entry is the zero point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.op_registry import BadArgument, as_expr, const
from slipway.relay.ops.build import known

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

Array = np.ndarray[Any, Any]
_FLOAT = np.float32


def _scalar(argument: str, value: Any) -> Any:
    found = known(argument, value)
    if found.size != 1:
        raise BadArgument(argument, f"must be one number, got {found.size}: a table is one for all")
    return found.reshape(())[()]


def table_of(
    function: Callable[[Array], Array],
    dtype: str,
    scale: ExprLike,
    zero_point: ExprLike,
    out_scale: ExprLike,
    out_zero_point: ExprLike,
) -> Array:
    """Return the entries for all values of `dtype`, the lowest first."""
    info = np.iinfo(dtype)
    stored = np.arange(info.min, info.max + 1)
    real = (stored - int(_scalar("zero_point", zero_point))).astype(_FLOAT)
    real = real * _FLOAT(_scalar("scale", scale))
    with np.errstate(all="ignore"):
        value = function(real).astype(_FLOAT) / _FLOAT(_scalar("output_scale", out_scale))
    whole = np.rint(np.nan_to_num(value, nan=0.0, posinf=1e9, neginf=-1e9).astype(np.float64))
    whole = whole + int(_scalar("output_zero_point", out_zero_point))
    entries: Array = whole.clip(info.min, info.max).astype(dtype)
    return entries


def _lookup(function: Callable[[Array], Array], x: Any, *affine: Any) -> Any:
    given = as_expr(x)
    dtype = given.tensor_type.dtype
    if dtype not in ("int8", "uint8"):
        raise BadArgument("x", f"must be int8 or uint8, got {given.tensor_type}")
    return op_registry.make("qnn.lookup")(given, const(table_of(function, dtype, *affine)))


def _function(name: str, function: Callable[[Array], Array]) -> Any:
    def make(x: Any, scale: Any, zero_point: Any, output_scale: Any, output_zero_point: Any) -> Any:
        return _lookup(function, x, scale, zero_point, output_scale, output_zero_point)

    make.__name__, make.__doc__ = name, f"Return {name} of a quantised tensor, by a table."
    return make


tanh = _function("tanh", np.tanh)
exp = _function("exp", np.exp)
sqrt = _function("sqrt", np.sqrt)
rsqrt = _function("rsqrt", lambda x: 1 / np.sqrt(x))
erf = _function("erf", np.vectorize(math.erf, otypes=[_FLOAT]))
abs = _function("abs", np.abs)
sigmoid = _function("sigmoid", lambda x: 1 / (1 + np.exp(-x)))
hardswish = _function("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6)
log = _function("log", np.log)


def leaky_relu(
    x: ExprLike,
    alpha: float,
    input_scale: ExprLike,
    input_zero_point: ExprLike,
    output_scale: ExprLike,
    output_zero_point: ExprLike,
) -> Any:
    """Return x where it is positive, else alpha * x, of a quantised tensor."""
    slope = _FLOAT(alpha)
    return _lookup(
        lambda v: np.where(v > 0, v, slope * v), x, input_scale, input_zero_point, output_scale,
        output_zero_point,
    )  # fmt: skip
