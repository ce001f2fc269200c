"""Functions that build expressions: conversion of Python values, dtype matching, constant folding.

``a + b`` on expressions calls `add` here.  A Python number takes the dtype of the expression
beside it; two expressions of different dtypes meet at the wider one (float over int, more bits
over fewer, as classic TVM does); a scalar beside a vector is broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from typing import cast as typed

import numpy as np

from slipway import dtypes
from slipway.errors import ArgumentTypeError, LoweringError
from slipway.ir import expr as E
from slipway.ir.custom import datatype_minimum
from slipway.ir.expr import FloatImm, IntImm, IterVar, PrimExpr

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExprLike

TRUE = IntImm("bool", 1)
FALSE = IntImm("bool", 0)


@lru_cache(maxsize=4096)
def _int_imm(dtype: str, value: int) -> IntImm:
    return IntImm(dtype, value)


def const(value: Any, dtype: str | None = None) -> PrimExpr:
    """Return the constant `value`; without a dtype: int32, float32 or bool by its Python type.

    Integers wrap into the dtype's range, as a C conversion does.  A dtype with lanes broadcasts.
    """
    if dtype is None:
        if isinstance(value, (bool, np.bool_)):
            dtype = "bool"
        elif isinstance(value, (int, np.integer)):
            dtype = "int32" if -(2**31) <= value < 2**31 else "int64"
            if isinstance(value, np.integer):
                dtype = value.dtype.name
        elif isinstance(value, (float, np.floating)):
            dtype = value.dtype.name if isinstance(value, np.floating) else "float32"
            if isinstance(value, float) and not isinstance(value, np.floating):
                dtype = "float32"
        else:
            raise ArgumentTypeError(
                f"cannot make an expression of {value!r} ({type(value).__name__})"
            )
    if isinstance(value, (str, bytes)):
        raise ArgumentTypeError(f"a constant of {dtype} is a number, got {value!r}")
    code, bits, lanes = dtypes.parse(dtype)
    if lanes > 1:
        return E.Broadcast(const(value, dtypes.scalar_of(dtype)), lanes)
    if code in ("float", "bfloat") or code.startswith("custom"):
        return FloatImm(dtype, float(value))
    if code == "bool":
        return TRUE if value else FALSE
    if code == "handle":
        return IntImm("handle", int(value))
    number = int(value)
    low, high = dtypes.int_range(dtype)
    if not low <= number <= high:
        number &= (1 << bits) - 1
        if code == "int" and number > high:
            number -= 1 << bits
    return _int_imm(dtype, number)


def as_expr(value: PrimExprLike, dtype: str | None = None) -> PrimExpr:
    """Return `value` as an expression: numbers become constants, an IterVar its variable."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, IterVar):
        return value.var
    if isinstance(value, str):
        return E.StringImm(value)
    converter = getattr(value, "as_prim_expr", None)
    if converter is not None:
        return typed(PrimExpr, converter())
    return const(value, dtype)


def as_extent(value: PrimExprLike) -> PrimExpr:
    """Return a size as an expression; a float without fraction, such as 32 / 4, as an integer."""
    number = getattr(value, "value", value)
    if isinstance(number, float) and number.is_integer():
        return const(int(number))
    return as_expr(value)


def const_value(value: PrimExprLike) -> int | float | None:
    """Return the Python number of a constant expression (or number), else None."""
    if isinstance(value, (IntImm, FloatImm)):
        return value.value
    if isinstance(value, E.Broadcast):
        return const_value(value.value)
    if isinstance(value, (int, float)):
        return value
    return None


def as_int(value: Any) -> int | None:
    """Return the Python int of an integer constant expression (or int), else None."""
    if type(value) is IntImm:
        return value.value
    if isinstance(value, (int, np.integer)):
        return int(value)
    return None


def broadcast_to(value: PrimExpr, lanes: int) -> PrimExpr:
    """Return a scalar repeated to `lanes` lanes; a vector of that many lanes as it is."""
    have = dtypes.lanes_of(value.dtype)
    if have == lanes:
        return value
    if have == 1:
        return E.Broadcast(value, lanes)
    raise LoweringError(f"cannot widen {value.dtype} to {lanes} lanes: {value}")


def _wider(a: str, b: str) -> str:
    """The scalar dtype at which two scalar dtypes meet."""
    (code_a, bits_a, _), (code_b, bits_b, _) = dtypes.parse(a), dtypes.parse(b)
    if code_a == "bool":
        return b
    if code_b == "bool":
        return a
    float_a, float_b = code_a in ("float", "bfloat"), code_b in ("float", "bfloat")
    if float_a != float_b:
        return a if float_a else b
    if float_a and code_a != code_b and bits_a == bits_b:
        return "float32"  # float16 with bfloat16: neither holds the other
    if bits_a != bits_b:
        return a if bits_a > bits_b else b
    return a if code_a == "int" or code_a == code_b else b


def match(lhs: Any, rhs: Any) -> tuple[PrimExpr, PrimExpr]:
    """Return both operands as expressions of one dtype and one number of lanes."""
    if isinstance(lhs, IterVar):
        lhs = lhs.var
    if isinstance(rhs, IterVar):
        rhs = rhs.var
    left_is, right_is = isinstance(lhs, PrimExpr), isinstance(rhs, PrimExpr)
    if left_is and not right_is:
        rhs = _number_beside(rhs, lhs)
    elif right_is and not left_is:
        lhs = _number_beside(lhs, rhs)
    elif not left_is:
        lhs, rhs = as_expr(lhs), as_expr(rhs)
    if lhs.dtype == rhs.dtype:
        return lhs, rhs
    lanes = max(lhs.lanes, rhs.lanes)
    meet = _wider(dtypes.scalar_of(lhs.dtype), dtypes.scalar_of(rhs.dtype))
    lhs = cast(lhs, dtypes.with_lanes(meet, lhs.lanes))
    rhs = cast(rhs, dtypes.with_lanes(meet, rhs.lanes))
    return broadcast_to(lhs, lanes), broadcast_to(rhs, lanes)


def _number_beside(number: PrimExprLike, other: PrimExpr) -> PrimExpr:
    if isinstance(number, (bool, int, float)):
        scalar = dtypes.scalar_of(other.dtype)
        if isinstance(number, float) and not dtypes.is_float(scalar):
            return const(number, "float32")
        if scalar == "bool" and not isinstance(number, bool):
            return const(number)
        return const(number, scalar)
    return as_expr(number)


def _fold(node: Any, a: PrimExpr, b: PrimExpr, function: Callable[[Any, Any], Any]) -> PrimExpr:
    """Build node(a, b), or the constant when both sides are constants."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return const(function(a.value, b.value), a.dtype)
    if isinstance(a, FloatImm) and isinstance(b, FloatImm) and a.dtype in ("float32", "float64"):
        scalar = np.float32 if a.dtype == "float32" else np.float64
        with np.errstate(all="ignore"):
            return const(float(function(scalar(a.value), scalar(b.value))), a.dtype)
    return typed(PrimExpr, node(a, b))


def _is_zero(value: PrimExpr) -> bool:
    return isinstance(value, IntImm) and value.value == 0


def _is_one(value: PrimExpr) -> bool:
    return isinstance(value, IntImm) and value.value == 1


def add(lhs: PrimExprLike, rhs: Any) -> PrimExpr:
    """Lhs + rhs."""
    a, b = match(lhs, rhs)
    if _is_zero(a):
        return b
    if _is_zero(b):
        return a
    return _fold(E.Add, a, b, lambda x, y: x + y)


def sub(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """Lhs - rhs."""
    a, b = match(lhs, rhs)
    if _is_zero(b):
        return a
    return _fold(E.Sub, a, b, lambda x, y: x - y)


def mul(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """Lhs * rhs."""
    a, b = match(lhs, rhs)
    if _is_one(a) or _is_zero(b):
        return b
    if _is_one(b) or _is_zero(a):
        return a
    return _fold(E.Mul, a, b, lambda x, y: x * y)


def div(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """Lhs / rhs: true division of floats; integers truncate toward zero (classic TVM's ``/``)."""
    a, b = match(lhs, rhs)
    if dtypes.is_float(a.dtype):
        return _fold(E.Div, a, b, lambda x, y: x / y)
    return truncdiv(a, b)


def truncdiv(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """Integer division rounded toward zero."""
    a, b = match(lhs, rhs)
    _reject_zero(a, b, "divide")
    if _is_one(b):
        return a
    return _fold(E.Div, a, b, lambda x, y: abs(x) // abs(y) * (1 if (x >= 0) == (y >= 0) else -1))


def truncmod(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """The remainder of `truncdiv`: it has the sign of lhs."""
    a, b = match(lhs, rhs)
    if dtypes.is_float(a.dtype):
        return _fold(E.Mod, a, b, math.fmod)
    _reject_zero(a, b, "take a remainder")
    if _is_one(b):
        return const(0, a.dtype)
    return _fold(E.Mod, a, b, lambda x, y: abs(x) % abs(y) * (1 if x >= 0 else -1))


def floordiv(lhs: Any, rhs: PrimExprLike) -> PrimExpr:
    """Division rounded toward minus infinity."""
    a, b = match(lhs, rhs)
    if dtypes.is_float(a.dtype):
        return call_intrin(a.dtype, "floor", div(a, b))
    _reject_zero(a, b, "divide")
    if _is_one(b):
        return a
    return _fold(E.FloorDiv, a, b, lambda x, y: x // y)


def floormod(lhs: Any, rhs: PrimExprLike) -> PrimExpr:
    """The remainder of `floordiv`: it has the sign of rhs."""
    a, b = match(lhs, rhs)
    if dtypes.is_float(a.dtype):
        return sub(a, mul(b, floordiv(a, b)))
    _reject_zero(a, b, "take a remainder")
    if _is_one(b):
        return const(0, a.dtype)
    return _fold(E.FloorMod, a, b, lambda x, y: x % y)


def _reject_zero(a: PrimExpr, b: PrimExpr, verb: str) -> None:
    if _is_zero(b):
        raise LoweringError(f"cannot {verb} by the constant zero: {a} by 0")


def neg(value: PrimExprLike) -> PrimExpr:
    """Minus value."""
    operand = as_expr(value)
    if isinstance(operand, (IntImm, FloatImm)):
        return const(-operand.value, operand.dtype)
    return sub(const(-0.0, operand.dtype), operand)  # of a zero the sign changes too


def minimum(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """The smaller of the two (te.min of two values); of floats, a NaN if one is."""
    a, b = match(lhs, rhs)
    return a if a is b else _fold(E.Min, a, b, np.minimum)


def maximum(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """The greater of the two (te.max of two values); of floats, a NaN if one is."""
    a, b = match(lhs, rhs)
    return a if a is b else _fold(E.Max, a, b, np.maximum)


def max_of_numbers(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """The greater of the two, neither of them a NaN: else either of them."""
    a, b = match(lhs, rhs)
    if not dtypes.is_float(a.dtype):
        return maximum(a, b)
    return E.Call(a.dtype, "max_of_numbers", (a, b))


def _compare(node: Any, lhs: Any, rhs: Any, function: Callable[[Any, Any], bool]) -> PrimExpr:
    a, b = match(lhs, rhs)
    if isinstance(a, (IntImm, FloatImm)) and isinstance(b, (IntImm, FloatImm)):
        return TRUE if function(a.value, b.value) else FALSE
    return typed(PrimExpr, node(a, b))


def equal(lhs: Any, rhs: PrimExprLike) -> PrimExpr:
    """Lhs == rhs as an expression."""
    return _compare(E.EQ, lhs, rhs, lambda x, y: x == y)


def not_equal(lhs: Any, rhs: PrimExprLike) -> PrimExpr:
    """Lhs != rhs as an expression."""
    return _compare(E.NE, lhs, rhs, lambda x, y: x != y)


def less(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """Lhs < rhs."""
    return _compare(E.LT, lhs, rhs, lambda x, y: x < y)


def less_equal(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """Lhs <= rhs."""
    return _compare(E.LE, lhs, rhs, lambda x, y: x <= y)


def greater(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """Lhs > rhs."""
    return _compare(E.GT, lhs, rhs, lambda x, y: x > y)


def greater_equal(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """Lhs >= rhs."""
    return _compare(E.GE, lhs, rhs, lambda x, y: x >= y)


def logical_and(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """Both hold."""
    a, b = as_expr(lhs), as_expr(rhs)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, IntImm):
            return other if one.value else FALSE
    return E.And(a, b)


def logical_or(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
    """At least one holds."""
    a, b = as_expr(lhs), as_expr(rhs)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, IntImm):
            return TRUE if one.value else other
    return E.Or(a, b)


def logical_not(value: PrimExprLike) -> PrimExpr:
    """The condition does not hold."""
    operand = as_expr(value)
    if isinstance(operand, IntImm):
        return FALSE if operand.value else TRUE
    return operand.a if isinstance(operand, E.Not) else E.Not(operand)


def all_of(conditions: Sequence[Any]) -> PrimExpr:
    """All of the conditions hold; true when there are none."""
    result: PrimExpr = TRUE
    for condition in conditions:
        result = logical_and(result, condition)
    return result


def any_of(conditions: Sequence[Any]) -> PrimExpr:
    """At least one of the conditions holds; false when there are none."""
    result: PrimExpr = FALSE
    for condition in conditions:
        result = logical_or(result, condition)
    return result


def cast(value: PrimExprLike, dtype: str) -> PrimExpr:
    """Convert `value` to `dtype`; constants are converted at once."""
    dtype = dtypes.canonical(dtype)
    operand = as_expr(value)
    if operand.dtype == dtype:
        return operand
    want = dtypes.lanes_of(dtype)
    if operand.lanes == 1 and want > 1:
        return E.Broadcast(cast(operand, dtypes.scalar_of(dtype)), want)
    if isinstance(operand, IntImm) and dtypes.code_of(dtype) != "handle":
        return const(operand.value, dtype)
    if isinstance(operand, FloatImm):
        if dtypes.is_float(dtype):
            return FloatImm(dtype, operand.value)
        if math.isfinite(operand.value):
            return const(math.trunc(operand.value), dtype)
    return E.Cast(dtype, operand)


def select(
    condition: PrimExprLike, true_value: PrimExprLike, false_value: PrimExprLike
) -> PrimExpr:
    """`true_value` where the condition holds, else `false_value`; both may be evaluated."""
    a, b = match(true_value, false_value)
    test = as_expr(condition)
    if isinstance(test, IntImm):
        return a if test.value else b
    return E.Select(test, a, b)


def if_then_else(
    condition: PrimExprLike, true_value: PrimExprLike, false_value: PrimExprLike
) -> PrimExpr:
    """Like `select`, but only the chosen side is evaluated: safe for guarded loads."""
    a, b = match(true_value, false_value)
    test = as_expr(condition)
    if isinstance(test, IntImm):
        return a if test.value else b
    return E.Call(a.dtype, "if_then_else", (test, a, b))


def call_intrin(dtype: str, op: str, *args: Any) -> PrimExpr:
    """Call the intrinsic `op` of ir.intrin, or of the user's, with the given result dtype.

    The classic prefixes ("tir.exp", "tir.tvm_storage_sync") are taken off.
    """
    name = op.removeprefix("tir.").removeprefix("tvm_")
    return E.Call(dtype, name, tuple(as_expr(a) for a in args))


def _bitwise(op: str, function: Callable[[int, int], int]) -> Callable[[Any, Any], PrimExpr]:
    def build(lhs: PrimExprLike, rhs: PrimExprLike) -> PrimExpr:
        a, b = match(lhs, rhs)
        if op == "bitwise_and" and a.dtype == "bool":
            return logical_and(a, b)
        if op == "bitwise_or" and a.dtype == "bool":
            return logical_or(a, b)
        if dtypes.is_float(a.dtype):
            raise LoweringError(f"{op} needs integers, got {a.dtype}: {a}, {b}")
        if isinstance(a, IntImm) and isinstance(b, IntImm):
            return const(function(a.value, b.value), a.dtype)
        return E.Call(a.dtype, op, (a, b))

    build.__name__ = op
    build.__doc__ = f"Integer {op.replace('_', ' ')}; on bool, the logical operator."
    return build


bitwise_and = _bitwise("bitwise_and", lambda x, y: x & y)
bitwise_or = _bitwise("bitwise_or", lambda x, y: x | y)
bitwise_xor = _bitwise("bitwise_xor", lambda x, y: x ^ y)
shift_left = _bitwise("shift_left", lambda x, y: x << y)
shift_right = _bitwise("shift_right", lambda x, y: x >> y)


def bitwise_not(value: PrimExprLike) -> PrimExpr:
    """All bits flipped; on bool, logical not."""
    operand = as_expr(value)
    if operand.dtype == "bool":
        return logical_not(operand)
    return E.Call(operand.dtype, "bitwise_not", (operand,))


def min_value(dtype: str) -> PrimExpr:
    """The minimum of `dtype`; minus infinity is not used: float32 gives -FLT_MAX."""
    if dtypes.is_custom(dtype):
        return datatype_minimum(dtype)
    if dtypes.is_float(dtype):
        return const(-_FLOAT_MAX[dtypes.scalar_of(dtype)], dtype)
    return const(dtypes.int_range(dtypes.scalar_of(dtype))[0], dtype)


def max_value(dtype: str) -> PrimExpr:
    """The largest finite value of `dtype`."""
    if dtypes.is_custom(dtype):  # whose range is the same on both sides of zero
        return neg(datatype_minimum(dtype))
    if dtypes.is_float(dtype):
        return const(_FLOAT_MAX[dtypes.scalar_of(dtype)], dtype)
    return const(dtypes.int_range(dtypes.scalar_of(dtype))[1], dtype)


def lowest(dtype: str) -> PrimExpr:
    """What no value of `dtype` is below: minus infinity of floats."""
    has_infinity = dtypes.is_float(dtype) and not dtypes.is_custom(dtype)
    return const(-math.inf, dtype) if has_infinity else min_value(dtype)


def highest(dtype: str) -> PrimExpr:
    """What no value of `dtype` is above: infinity of floats."""
    has_infinity = dtypes.is_float(dtype) and not dtypes.is_custom(dtype)
    return infinity(dtype) if has_infinity else max_value(dtype)


def infinity(dtype: str) -> PrimExpr:
    """Positive infinity of a float `dtype`."""
    return const(math.inf, dtype)


_FLOAT_MAX = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}
