"""Softplus, log(1 + exp(x)), and what stands behind it.

TanhOfSoftplus: Mish, ``x * tanh(log(1 + exp(x)))``, takes one exponential and a division.

    tanh(log(1 + exp(x)))  ->  n / (n + 2)    with  n = e * (e + 2),  e = exp(min(x, 20))

since ``tanh(log t) = (t * t - 1) / (t * t + 1)`` and ``t = 1 + e``.  Nothing cancels there, while
the sum ``1 + exp(x)`` loses the digits of a small exponential: the result is nearer the true value.
Frameworks write softplus as ``max(x, 0) + log(1 + exp(-|x|))``, and PyTorch takes x itself above
20, where the quotient is 1 in any type.

ExactSoftplus: the logarithm of 1 + t keeps the digits of a small t.

    log(1 + t)  ->  log(u) + (t - (u - 1))    with  u = 1 + t,  t = exp(-|x|)

Frameworks write softplus as ``max(x, 0) + log(1 + exp(-|x|))``.  In float32 the sum is 1 from
x = -17 on, and softplus 0 where it is 3e-8 to 1e-38: a logarithm behind it is -infinity instead
of x.  What the sum has lost is known exactly, as t is at most 1, and the slope of the logarithm
is 1 where it matters.
"""

from __future__ import annotations

from typing import TypeGuard

from slipway import dtypes
from slipway.relay import op_registry
from slipway.relay.expr import Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite

# From where on the quotient is 1, and its numerator in range: float16 ends at 65504.
_ENDS = {"float16": 5.5}
_END = 20.0


def tanh_of_softplus(function: Function) -> Function:
    """Return `function` with the rule applied to every tanh of a softplus."""
    return rewrite(function, _quotient)  # type: ignore[no-any-return]


def _quotient(expr: Expr) -> Expr | None:
    if not is_call_of(expr, "tanh"):
        return None
    x = softplus_argument(expr.args[0])
    if x is None or x.type != expr.type:
        return None
    make, dtype = op_registry.make, expr.tensor_type.dtype
    end, two = (op_registry.const(v, dtype) for v in (_ENDS.get(dtype, _END), 2.0))
    with op_registry.span(expr.span):
        exponential = make("exp")(make("minimum")(x, end))
        numerator = make("multiply")(exponential, make("add")(exponential, two))
        return make("divide")(numerator, make("add")(numerator, two))  # type: ignore[no-any-return]


def softplus_argument(expr: Expr) -> Expr | None:
    """Return x where `expr` is log(1 + exp(x)), in any form that importers write; else None."""
    if is_call_of(expr, "where"):
        test, above, below = expr.args
        x = softplus_argument(below)
        if x is None or above is not x or not is_call_of(test, "greater") or test.args[0] is not x:
            return None
        return x if _value(test.args[1], at_least=_END) else None
    if is_call_of(expr, "log"):
        return _exponent(expr.args[0])
    if not is_call_of(expr, "add"):
        return None
    for high, low in (expr.args, expr.args[::-1]):
        x = _other(high, "maximum", 0.0)
        if x is None or not is_call_of(low, "log"):
            continue
        falling = _exponent(low.args[0])
        if is_call_of(falling, "negative") and is_call_of(falling.args[0], "abs"):
            return x if falling.args[0].args[0] is x else None
    return None


def _exponent(expr: Expr) -> Expr | None:
    """Return y of 1 + exp(y)."""
    exponential = _other(expr, "add", 1.0)
    return exponential.args[0] if is_call_of(exponential, "exp") else None


def _other(expr: Expr, name: str, value: float) -> Expr | None:
    """Return the operand that meets the constant `value` in a call of `name`; else None."""
    if not is_call_of(expr, name):
        return None
    for one, other in (expr.args, expr.args[::-1]):
        if _value(other, at_least=value, at_most=value):
            return one
    return None


def _value(expr: Expr, at_least: float, at_most: float = float("inf")) -> TypeGuard[Constant]:
    if not isinstance(expr, Constant) or not dtypes.is_float(expr.tensor_type.dtype):
        return False
    values = expr.array.astype("float64")
    return bool(values.size and (values >= at_least).all() and (values <= at_most).all())


def exact_softplus(function: Function) -> Function:
    """Return `function` with the rule applied to every log(1 + exp(-|x|))."""
    return rewrite(function, _exact)  # type: ignore[no-any-return]


def _exact(expr: Expr) -> Expr | None:
    if not is_call_of(expr, "log"):
        return None
    (total,) = expr.args
    exponential = _other(total, "add", 1.0)
    if exponential is None or exponential.type != total.type or not is_call_of(exponential, "exp"):
        return None
    falling = exponential.args[0]
    if not is_call_of(falling, "negative") or not is_call_of(falling.args[0], "abs"):
        return None
    make, one = op_registry.make, op_registry.const(1.0, total.tensor_type.dtype)
    with op_registry.span(expr.span):
        lost = make("subtract")(exponential, make("subtract")(total, one))
        return make("add")(expr, lost)  # type: ignore[no-any-return]
