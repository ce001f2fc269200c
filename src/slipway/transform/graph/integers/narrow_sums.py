"""NarrowSums: products of 16 by 8 bits are summed in 32 bits where their sums fit.

    qnn.conv2d_nhwc(x, w, out_dtype="int64")  ->  cast(qnn.conv2d_nhwc(x, w, out_dtype="int32"))

Files with 16-bit activations say 64, which a core of 32 bits takes two registers and several
instructions for.  The weights are known, and with them the largest sum there can be.
"""

from __future__ import annotations

import numpy as np

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite

_SUMS = ("qnn.conv2d_nhwc", "qnn.depthwise_conv2d_nhwc", "qnn.dense_packed")


def narrow_sums(function: Function) -> Function:
    """Return `function` with integer products in int32 that no input makes overflow."""
    return rewrite(function, _narrow)  # type: ignore[no-any-return]


def _narrow(expr: Expr) -> Expr | None:
    if not is_call_of(expr, *_SUMS) or expr.attrs.out_dtype != "int64":
        return None
    data, weight = expr.args
    if not isinstance(weight, Constant):
        return None
    low, high = dtypes.int_range(data.tensor_type.dtype)
    largest = max(abs(low), abs(high), abs(getattr(expr.attrs, "pad_value", 0)))
    values = np.abs(weight.array.astype(np.int64))
    sums = values.sum(axis=tuple(range(values.ndim - 1)))  # of each output's weights
    if int(sums.max(initial=0)) * largest > dtypes.int_range("int32")[1]:
        return None
    with op_registry.span(expr.span):
        made = Call(expr.op, expr.args, expr.attrs.replace(out_dtype="int32"), expr.span)
        return op_registry.make("cast")(made, "int64")  # type: ignore[no-any-return]
