"""WidenProducts: products of bfloat16 are summed in float32.

    nn.dense(%x, %w)  ->  cast(nn.dense(cast(%x, float32), cast(%w, float32)), bfloat16)

and the same for convolutions and matrix products.  Sums that were rounded to eight bits at each
step lose most of what they add; in float32 they are rounded once, and the kernels are those of
float32 models.  Constant weights are widened when the model is compiled.
"""

from __future__ import annotations

from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite

NARROW = "bfloat16"
PRODUCTS = (
    "nn.dense", "nn.batch_matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose",
    "nn.conv2d_transpose", "nn.conv3d_transpose",
)  # fmt: skip


def widen_products(function: Function) -> Function:
    """Return `function` with its products of bfloat16 computed in float32."""
    return rewrite(function, _rule)  # type: ignore[no-any-return]


def _rule(expr: Any) -> Expr | None:
    if not is_call_of(expr, *PRODUCTS) or expr.type is None:
        return None
    types = [argument.tensor_type.dtype for argument in expr.args]
    if set(types) != {NARROW} or expr.tensor_type.dtype != NARROW:
        return None
    cast = op_registry.face("cast")
    definition = op_registry.get(expr.op.name)
    attrs = expr.attrs
    if getattr(attrs, "out_dtype", ""):
        attrs = attrs.replace(out_dtype="float32")
    wide = [cast(argument, "float32") for argument in expr.args]
    made = definition(*wide, attrs=attrs, span=expr.span)
    return cast(made, NARROW)  # type: ignore[no-any-return]
