"""SimplifyInference: training-time operators become what they are in inference.

``batch_norm(x, g, b, m, v)  ->  x * (g / sqrt(v + e)) + (b - m * g / sqrt(v + e))``;
``dropout(x) -> x``.  With constant statistics both factors fold to constants.
"""

from __future__ import annotations

from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Call, Expr, Function, TupleGetItem
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite


def simplify_inference(function: Function) -> Function:
    """Return `function` without batch_norm and dropout, where only their main result is used."""
    return rewrite(function, _rule)  # type: ignore[no-any-return]


def _rule(expr: Expr) -> Expr | None:
    if not isinstance(expr, TupleGetItem):
        return None
    call: Any = expr.tuple_value
    if is_call_of(call, "nn.dropout") and expr.index == 0:
        return call.args[0]
    if is_call_of(call, "nn.batch_norm"):
        if expr.index == 0:
            return batch_norm_as_affine(call)
        return call.args[2 + expr.index]
    return None


def batch_norm_as_affine(call: Call) -> Expr:
    """Return a batch_norm's first result as one multiplication and one addition."""
    data, gamma, beta, mean, var = call.args
    attrs = call.attrs
    make = op_registry.make
    dtype, rank = data.tensor_type.dtype, data.tensor_type.rank
    with op_registry.span(call.span):
        epsilon = op_registry.const(attrs.epsilon, dtype)
        factor: Expr = make("rsqrt")(make("add")(var, epsilon))
        if attrs.scale:
            factor = make("multiply")(gamma, factor)
        shift: Expr = make("negative")(make("multiply")(mean, factor))
        if attrs.center:
            shift = make("add")(beta, shift)
        trailing = rank - 1 - attrs.axis % rank
        if trailing:
            factor = make("expand_dims")(factor, 1, trailing)
            shift = make("expand_dims")(shift, 1, trailing)
        result: Expr = make("add")(make("multiply")(data, factor), shift)
    return result
