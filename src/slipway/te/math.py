"""Mathematical functions of expressions: te.exp, te.tanh, te.floor, ...

Integer arguments of the elementary functions are converted to float32 first, as classic TVM does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.ir import ops
from slipway.ir.expr import Let, PrimExpr, Var

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike


def _float(x: PrimExprLike) -> PrimExpr:
    value = ops.as_expr(x)
    if dtypes.is_float(value.dtype):
        return value
    return ops.cast(value, dtypes.with_lanes("float32", value.lanes))


def _unary(op: str, doc: str) -> Callable[[Any], PrimExpr]:
    def function(x: PrimExprLike) -> PrimExpr:
        value = _float(x)
        return ops.call_intrin(value.dtype, op, value)

    function.__name__ = op
    function.__doc__ = doc
    return function


exp = _unary("exp", "e to the power x.")
exp2 = _unary("exp2", "2 to the power x.")
log = _unary("log", "Natural logarithm.")
log2 = _unary("log2", "Logarithm to base 2.")
sqrt = _unary("sqrt", "Square root.")
rsqrt = _unary("rsqrt", "1 / square root.")
sin = _unary("sin", "Sine of x radians.")
cos = _unary("cos", "Cosine of x radians.")
tan = _unary("tan", "Tangent of x radians.")
asin = _unary("asin", "Arcsine.")
acos = _unary("acos", "Arccosine.")
atan = _unary("atan", "Arctangent.")
sinh = _unary("sinh", "Hyperbolic sine.")
cosh = _unary("cosh", "Hyperbolic cosine.")
tanh = _unary("tanh", "Hyperbolic tangent.")
asinh = _unary("asinh", "Inverse hyperbolic sine.")
acosh = _unary("acosh", "Inverse hyperbolic cosine.")
atanh = _unary("atanh", "Inverse hyperbolic tangent.")
erf = _unary("erf", "Error function.")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)).")
log10 = _unary("log10", "Logarithm to base 10.")
log1p = _unary("log1p", "Logarithm of 1 + x.")


def exp10(x: PrimExprLike) -> PrimExpr:
    """10 to the power x."""
    value = _float(x)
    return pow(ops.const(10.0, value.dtype), value)


def _rounding(op: str, doc: str) -> Callable[[Any], PrimExpr]:
    def function(x: PrimExprLike, span: object = None) -> PrimExpr:
        value = ops.as_expr(x)
        if not dtypes.is_float(value.dtype):
            return value
        return ops.call_intrin(value.dtype, op, value)

    function.__name__ = op
    function.__doc__ = doc
    return function


floor = _rounding("floor", "The largest whole number not above x.")
ceil = _rounding("ceil", "The smallest whole number not below x.")
trunc = _rounding("trunc", "x without its fraction.")
round = _rounding("round", "The nearest whole number, halves away from zero, as C round().")
nearbyint = _rounding("nearbyint", "The nearest whole number, halves to even.")


def abs(x: PrimExpr, span: object = None) -> PrimExpr:
    """The absolute value."""
    value = ops.as_expr(x)
    if dtypes.is_float(value.dtype):
        return ops.call_intrin(value.dtype, "fabs", value)
    if dtypes.is_uint(value.dtype):
        return value
    return ops.select(ops.greater_equal(value, 0), value, ops.neg(value))


def _test(op: str, doc: str) -> Callable[[Any], PrimExpr]:
    def function(x: PrimExprLike, span: object = None) -> PrimExpr:
        value = ops.as_expr(x)
        boolean = dtypes.with_lanes("bool", value.lanes)
        if not dtypes.is_float(value.dtype):
            return ops.const(op == "isfinite", boolean)
        return ops.call_intrin(boolean, op, value)

    function.__name__ = op
    function.__doc__ = doc
    return function


isnan = _test("isnan", "x is not a number.")
isinf = _test("isinf", "x is plus or minus infinity.")
isfinite = _test("isfinite", "x is a finite number.")


def _binary(op: str, doc: str) -> Callable[[Any, Any], PrimExpr]:
    def function(x: PrimExprLike, y: PrimExprLike, span: object = None) -> PrimExpr:
        a, b = ops.match(x, y)
        a, b = _float(a), _float(b)
        return ops.call_intrin(a.dtype, op, a, b)

    function.__name__ = op
    function.__doc__ = doc
    return function


pow = _binary("pow", "x to the power y.")
power = pow
atan2 = _binary("atan2", "The angle of the point (y, x).")
copysign = _binary("copysign", "x with the sign of y.")
fmod = _binary("fmod", "The remainder of x / y, with the sign of x.")


def ldexp(x: PrimExprLike, y: PrimExprLike) -> PrimExpr:
    """X times 2 to the power y."""
    value = _float(x)
    return ops.mul(value, exp2(ops.cast(y, value.dtype)))


def fma(x: PrimExprLike, y: PrimExprLike, z: PrimExprLike) -> PrimExpr:
    """X * y + z."""
    a, b = ops.match(x, y)
    return ops.call_intrin(a.dtype, "fma", a, b, z)


def popcount(x: PrimExprLike) -> PrimExpr:
    """The number of one bits."""
    value = ops.as_expr(x)
    return ops.call_intrin(value.dtype, "popcount", value)


def clz(x: PrimExprLike) -> PrimExpr:
    """The number of leading zero bits."""
    value = ops.as_expr(x)
    return ops.call_intrin(value.dtype, "clz", value)


def multiply_high(x: PrimExprLike, y: PrimExprLike) -> PrimExpr:
    """The upper 32 bits of the 64-bit product of two int32."""
    a, b = ops.match(x, y)
    return ops.call_intrin(a.dtype, "multiply_high", a, b)


def q_multiply_shift(
    x: PrimExprLike, y: PrimExprLike, q: PrimExprLike, s: PrimExprLike
) -> PrimExpr:
    """Round half up of x * y * 2^(s - q) in 64 bits, as int32."""
    return ops.call_intrin("int32", "q_multiply_shift", x, y, q, s)


def to_integer(x: PrimExprLike, dtype: str) -> PrimExpr:
    """A float as an integer, whatever it is: toward zero, NaN as 0, the low bits of narrow types.

    What is beyond int32 (int64 for `dtype` uint32 and those of 64 bits) is its nearest end.  A
    plain cast leaves such values open, which is cheaper.
    """
    value = ops.as_expr(x)
    if dtypes.bits_of(value.dtype) == 16:
        value = ops.cast(value, dtypes.with_lanes("float32", value.lanes))
    wide = dtypes.bits_of(dtype) == 64 or dtypes.scalar_of(dtype) == "uint32"
    if dtypes.scalar_of(dtype) == "uint64":
        half = ops.const(2.0**63, value.dtype)
        above = to_integer(ops.sub(value, half), dtypes.with_lanes("int64", value.lanes))
        over = ops.select(
            ops.greater_equal(value, ops.const(2.0**64, value.dtype)),
            ops.max_value(dtype),
            ops.add(ops.cast(above, dtype), ops.const(2**63, dtype)),
        )
        below = ops.cast(to_integer(value, dtypes.with_lanes("int64", value.lanes)), dtype)
        return ops.select(ops.greater_equal(value, half), over, below)
    middle = dtypes.with_lanes("int64" if wide else "int32", value.lanes)
    whole = Var("whole", value.dtype)  # what is inlined into a tensor's place is computed once
    return ops.cast(Let(whole, value, _held(whole, middle)), dtype)


def _held(value: PrimExpr, middle: str) -> PrimExpr:
    """A float as an integer of type `middle`, or its nearest end; NaN as 0."""
    low, high = ops.min_value(middle), ops.max_value(middle)
    limit = ops.const(2.0 ** (dtypes.bits_of(middle) - 1), value.dtype)
    held = ops.select(ops.less(value, ops.neg(limit)), low, ops.cast(value, middle))
    held = ops.select(ops.greater_equal(value, limit), high, held)
    return ops.select(isnan(value), ops.const(0, middle), held)


def div(a: PrimExprLike, b: PrimExprLike, span: object = None) -> PrimExpr:
    """A / b; integers truncate toward zero."""
    return ops.div(a, b)


indexdiv = ops.floordiv
indexmod = ops.floormod

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "clz",
    "copysign",
    "cos",
    "cosh",
    "div",
    "erf",
    "exp",
    "exp2",
    "exp10",
    "floor",
    "fma",
    "fmod",
    "indexdiv",
    "indexmod",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "log",
    "log1p",
    "log2",
    "log10",
    "multiply_high",
    "nearbyint",
    "popcount",
    "pow",
    "power",
    "q_multiply_shift",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "to_integer",
    "trunc",
]  # fmt: skip
