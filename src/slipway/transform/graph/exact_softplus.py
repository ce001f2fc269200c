"""ExactSoftplus: the logarithm of 1 + t keeps the digits of a small t.

    log(1 + t)  ->  log(u) + (t - (u - 1))    with  u = 1 + t,  t = exp(-|x|)

Frameworks write softplus as ``max(x, 0) + log(1 + exp(-|x|))``.  In float32 the sum is 1 from
x = -17 on, and softplus 0 where it is 3e-8 to 1e-38: a logarithm behind it is -infinity instead
of x.  What the sum has lost is known exactly, as t is at most 1, and the slope of the logarithm
is 1 where it matters.
"""

from __future__ import annotations

from slipway.relay import op_registry
from slipway.relay.expr import Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite
from slipway.transform.graph.tanh_of_softplus import other_operand


def exact_softplus(function: Function) -> Function:
    """Return `function` with the rule applied to every log(1 + exp(-|x|))."""
    return rewrite(function, _rule)  # type: ignore[no-any-return]


def _rule(expr: Expr) -> Expr | None:
    if not is_call_of(expr, "log"):
        return None
    (total,) = expr.args
    power = other_operand(total, "add", 1.0)
    if power is None or power.type != total.type or not is_call_of(power, "exp"):
        return None
    falling = power.args[0]
    if not is_call_of(falling, "negative") or not is_call_of(falling.args[0], "abs"):
        return None
    make, one = op_registry.make, op_registry.const(1.0, total.tensor_type.dtype)
    with op_registry.span(expr.span):
        lost = make("subtract")(power, make("subtract")(total, one))
        return make("add")(expr, lost)  # type: ignore[no-any-return]
