"""qnn.simulated_quantize and simulated_dequantize: what quantising does to real numbers.

They compute in the dtype of the data, so that a scale can be searched for without integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.errors import TypeInferenceError
from slipway.relay.dims import is_open
from slipway.relay.op_registry import as_expr, const
from slipway.relay.ops.build import call

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

# The dtypes by their numbers in run-time arguments: classic TVM's SQNN_DTYPE_TO_CODE.
CODES = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}


def simulated_quantize(
    data: ExprLike,
    output_scale: ExprLike,
    output_zero_point: ExprLike,
    axis: int = -1,
    out_dtype: str | ExprLike = "int8",
) -> Any:
    """Return round(data / scale) + zero point, within what `out_dtype` holds, as real numbers.

    `out_dtype` "disable" gives the data as it is.  An expression, of which `CODES` says what its
    value means, chooses when the model runs; scales may then be one or many as well, by relay.Any.
    """
    x, code = as_expr(data), _code(out_dtype)
    if code == 0:
        return x
    scale, zero = (_along(x, v, axis) for v in (output_scale, output_zero_point))
    steps = call("add", call("round", call("divide", x, scale)), zero)
    bounds = [(i.min, i.max) for i in (np.iinfo(k) for k in list(CODES)[1:])]
    if isinstance(code, int):
        low, high = bounds[code - 1]
        return call("clip", steps, float(low), float(high))
    own = np.dtype(x.tensor_type.dtype)
    ends = [
        call("take", const(np.array([side[0], *side], own)), code, axis=0, mode="clip")
        for side in zip(*bounds, strict=True)
    ]
    within = call("maximum", call("minimum", steps, ends[1]), ends[0])
    return _unless_disabled(code, within, x)


def simulated_dequantize(
    data: ExprLike,
    input_scale: ExprLike,
    input_zero_point: ExprLike,
    axis: int = -1,
    in_dtype: str | ExprLike = "int8",
) -> Any:
    """Return (data - zero point) * scale; with `in_dtype` "disable" the data as it is."""
    x, code = as_expr(data), _code(in_dtype)
    if code == 0:
        return x
    scale, zero = (_along(x, v, axis) for v in (input_scale, input_zero_point))
    found = call("multiply", call("subtract", x, zero), scale)
    return found if isinstance(code, int) else _unless_disabled(code, found, x)


def _code(dtype: str | ExprLike) -> Any:
    """Return the number of a dtype, or the expression that gives it."""
    if not isinstance(dtype, str):
        expr = as_expr(dtype)
        if expr.tensor_type.size != 1 or not dtypes.is_integral(expr.tensor_type.dtype):
            raise TypeInferenceError(
                f"simulated: a dtype is a name or one integer, got {expr.tensor_type}"
            )
        return call("reshape", expr, ())
    if dtype not in CODES:
        raise TypeInferenceError(f"simulated: {dtype!r} is not one of {', '.join(CODES)}")
    return CODES[dtype]


def _unless_disabled(code: Any, value: Any, data: Any) -> Any:
    return call("where", call("equal", code, const(0, code.tensor_type.dtype)), data, value)


def _along(x: Any, value: ExprLike, axis: int) -> Any:
    """Return one number, or one for each index of an axis, as it meets `x` in its dtype."""
    own = x.tensor_type
    given: Any = as_expr(value) if hasattr(value, "type") else const(np.asarray(value))
    given = call("cast", given, own.dtype)
    shape = given.tensor_type.shape
    extent = own.shape[axis % own.rank]
    if len(shape) == 1 and is_open(shape[0]):  # one for all or one for each, known when it runs
        count = call("take", call("shape_of", given, "int32"), const(0), axis=0)
        index = call("floor_mod", call("arange", 0, extent, 1, "int32"), count)
        given = call("take", given, index, axis=0)
    elif given.tensor_type.size == 1:
        return call("reshape", given, ())
    along = [1] * own.rank
    along[axis % own.rank] = extent
    return call("reshape", given, tuple(along))
