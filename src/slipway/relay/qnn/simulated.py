"""qnn.simulated_quantize and simulated_dequantize: what quantising does to real numbers.

They compute in the dtype of the data, so that a scale can be searched for without integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import TypeInferenceError
from slipway.relay.op_registry import as_expr, const
from slipway.relay.ops.build import call

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike

KINDS = ("int8", "uint8", "int32")


def simulated_quantize(
    data: ExprLike,
    output_scale: ExprLike,
    output_zero_point: ExprLike,
    axis: int = -1,
    out_dtype: str = "int8",
) -> Any:
    """Return round(data / scale) + zero point, within what `out_dtype` holds, as real numbers.

    `out_dtype` "disable" gives the data as it is.
    """
    x = as_expr(data)
    if out_dtype == "disable":
        return x
    info = np.iinfo(_kind(out_dtype))
    scale, zero = (_along(x, v, axis) for v in (output_scale, output_zero_point))
    steps = call("add", call("round", call("divide", x, scale)), zero)
    return call("clip", steps, float(info.min), float(info.max))


def simulated_dequantize(
    data: ExprLike,
    input_scale: ExprLike,
    input_zero_point: ExprLike,
    axis: int = -1,
    in_dtype: str = "int8",
) -> Any:
    """Return (data - zero point) * scale; with `in_dtype` "disable" the data as it is."""
    x = as_expr(data)
    if in_dtype == "disable":
        return x
    _kind(in_dtype)
    scale, zero = (_along(x, v, axis) for v in (input_scale, input_zero_point))
    return call("multiply", call("subtract", x, zero), scale)


def _kind(dtype: str) -> str:
    if dtype not in KINDS:
        raise TypeInferenceError(f"simulated: {dtype!r} is not one of {', '.join(KINDS)}, disable")
    return dtype


def _along(x: Any, value: ExprLike, axis: int) -> Any:
    """Return one number, or one for each place of an axis, as it meets `x` in its dtype."""
    own = x.tensor_type
    given: Any = as_expr(value) if hasattr(value, "type") else const(np.asarray(value))
    given = call("cast", given, own.dtype)
    count = given.tensor_type.size
    if count == 1:
        return call("reshape", given, ())
    shape = [1] * own.rank
    shape[axis % own.rank] = count
    return call("reshape", given, tuple(shape))
