"""WidenProducts: products of bfloat16 and float16 sum in float32.

    nn.dense(%x, %w)  ->  cast(nn.dense(cast(%x, float32), cast(%w, float32)), bfloat16)

and the same for convolutions and matrix products, those in blocks of channels too.  Sums that were
rounded to eight or eleven bits at each step lose most of what they add; in float32 they are rounded
once, and the kernels are those of float32 models.  Constant weights are widened when the model is
compiled.

With an instruction for pairs of bfloat16 their sums are float32 too, but operands stay narrow::

    nn.dense(%x, %w)  ->  cast(nn.dense(%x, %w, out_dtype=float32), bfloat16)

A function with the attribute `NARROW_SUMS` is left as it is: somebody has chosen such sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

from slipway.relay import op_registry
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import post_order, rebuild

NARROW_SUMS = "NarrowSums"
BFLOAT16, FLOAT16, WIDE = "bfloat16", "float16", "float32"
PRODUCTS = (
    "nn.dense", "nn.matmul", "nn.batch_matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d",
    "nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose",
    "nn.contrib_dense_pack", "nn.contrib_conv2d_winograd_nchwc", "nn.contrib_conv1d_nchwc",
    "nn.contrib_conv2d_nchwc", "nn.contrib_conv3d_nchwc", "nn.contrib_depthwise_conv1d_nchwc",
    "nn.contrib_depthwise_conv2d_nchwc", "nn.contrib_depthwise_conv3d_nchwc",
    "nn.contrib_conv2d_nchwc_by_size", "nn.contrib_conv3d_winograd_nchwc",
)  # fmt: skip


def has_known_weight(call: Call) -> bool:
    """Return whether the second operand is constant, or a cast of one that will be folded."""
    weight: Any = call.args[1]
    return isinstance(weight.args[0] if is_call_of(weight, "cast") else weight, Constant)


def widen_products(
    function: Function, in_pairs: Callable[[Call], bool] = lambda call: False
) -> Function:
    """Return `function` with its narrow products summed in float32.

    Those calls in it for which `in_pairs` is true keep their operands.
    """
    if dict(function.attrs).get(NARROW_SUMS):
        return function
    chosen = {id(e) for e in post_order(function) if _is_narrow(e) and in_pairs(e)}
    made: dict[int, Expr] = {}

    def new(child: Expr) -> Expr:
        return made[id(child)]

    for expr in post_order(function, into_functions=False):
        if isinstance(expr, Function) and expr is not function:
            made[id(expr)] = expr
            continue
        fresh = rebuild(expr, new)
        made[id(expr)] = _rule(fresh, id(expr) in chosen) or fresh
    return made[id(function)]  # type: ignore[return-value]


def _is_narrow(expr: Expr) -> TypeGuard[Call]:
    """Return whether `expr` is a product of bfloat16 or float16."""
    if not is_call_of(expr, *PRODUCTS) or expr.type is None:
        return False
    return {a.tensor_type.dtype for a in expr.args} in ({BFLOAT16}, {FLOAT16})


def _rule(expr: Expr, narrow: bool) -> Expr | None:
    if not _is_narrow(expr):
        return None
    low, given = expr.args[0].tensor_type.dtype, expr.tensor_type.dtype
    if given not in (low, WIDE):
        return None
    if narrow and given == WIDE:
        return None
    cast = op_registry.make("cast")
    definition = op_registry.get(expr.op.name)
    attrs: Any = expr.attrs
    if hasattr(attrs, "out_dtype"):
        attrs = attrs.replace(out_dtype=WIDE)
    args = expr.args if narrow else [cast(argument, WIDE) for argument in expr.args]
    made: Expr = definition(*args, attrs=attrs, span=expr.span)
    return made if given == WIDE else cast(made, low)
