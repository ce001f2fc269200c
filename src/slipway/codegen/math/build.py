"""Helpers to write a function of an expression as straight-line code with named values."""

from __future__ import annotations

from collections.abc import Sequence

from slipway import dtypes
from slipway.codegen.math.coefficients import Table
from slipway.ir import expr as E
from slipway.ir.ops import const


class Bindings:
    """Collects ``name = value`` bindings; `close` wraps a result in them."""

    def __init__(self) -> None:
        self._bindings: list[tuple[E.Var, E.PrimExpr]] = []

    def let(self, value: E.PrimExpr, name: str = "t") -> E.PrimExpr:
        """Return a variable that holds `value`."""
        if isinstance(value, (E.Var, E.IntImm, E.FloatImm)):
            return value
        var = E.Var(name, value.dtype)
        self._bindings.append((var, value))
        return var

    def close(self, result: E.PrimExpr) -> E.PrimExpr:
        """Return `result` inside all the bindings."""
        for var, value in reversed(self._bindings):
            result = E.Let(var, value, result)
        return result


def bits_of(x: E.PrimExpr) -> int:
    """Return the width of a float expression: 32 or 64."""
    return dtypes.bits_of(x.dtype)


def num(value: float, like: E.PrimExpr) -> E.PrimExpr:
    """Return a constant in the dtype and lanes of `like`."""
    return const(value, like.dtype)


def pick(x: E.PrimExpr, single: float, double: float) -> E.PrimExpr:
    """Return the constant for float32 or for float64, whichever `x` is."""
    return num(single if bits_of(x) == 32 else double, x)


def call(op: str, *args: E.PrimExpr) -> E.PrimExpr:
    """Return an intrinsic of the first argument's dtype."""
    return E.Call(args[0].dtype, op, args)


def fabs(x: E.PrimExpr) -> E.PrimExpr:
    """|x|."""
    return call("fabs", x)


def sqrt(x: E.PrimExpr) -> E.PrimExpr:
    """The square root."""
    return call("sqrt", x)


def copysign(x: E.PrimExpr, sign: E.PrimExpr) -> E.PrimExpr:
    """|x| with the sign of `sign`."""
    return call("copysign", x, sign)


def as_bits(x: E.PrimExpr) -> E.PrimExpr:
    """The bits of a float as a signed integer of the same width."""
    return E.Call(dtypes.with_lanes(f"int{bits_of(x)}", x.lanes), "reinterpret", (x,))


def as_float(i: E.PrimExpr) -> E.PrimExpr:
    """The float whose bits are the integer `i`."""
    return E.Call(
        dtypes.with_lanes(f"float{dtypes.bits_of(i.dtype)}", i.lanes), "reinterpret", (i,)
    )


def shift_left(i: E.PrimExpr, count: int) -> E.PrimExpr:
    """I << count."""
    return call("shift_left", i, num(count, i))


def shift_right(i: E.PrimExpr, count: int) -> E.PrimExpr:
    """I >> count, arithmetic."""
    return call("shift_right", i, num(count, i))


def bit_and(i: E.PrimExpr, mask: int) -> E.PrimExpr:
    """I & mask."""
    return call("bitwise_and", i, num(mask, i))


def int_to_float(i: E.PrimExpr, x: E.PrimExpr) -> E.PrimExpr:
    """Convert a small integer to the dtype of `x`, through 32 bits, which every CPU converts."""
    narrow = E.Cast(dtypes.with_lanes("int32", i.lanes), i) if bits_of(x) == 64 else i
    return E.Cast(x.dtype, narrow)


def poly(x: E.PrimExpr, table: Table | Sequence[float]) -> E.PrimExpr:
    """Evaluate a polynomial by Horner's rule; coefficients lowest first."""
    coefficients = table[bits_of(x)] if isinstance(table, dict) else table
    total = num(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        total = E.Add(E.Mul(total, x), num(coefficient, x))
    return total


def select(condition: E.PrimExpr, yes: E.PrimExpr, no: E.PrimExpr) -> E.PrimExpr:
    """`yes` where the condition holds, else `no`."""
    return E.Select(condition, yes, no)


def mantissa_bits(x: E.PrimExpr) -> int:
    """Bits of the fraction of a float: 23 or 52."""
    return 23 if bits_of(x) == 32 else 52


def bias(x: E.PrimExpr) -> int:
    """The exponent bias: 127 or 1023."""
    return 127 if bits_of(x) == 32 else 1023


def power_of_two(i: E.PrimExpr, x: E.PrimExpr) -> E.PrimExpr:
    """2^i as a float of the type of `x`, for an integer i in the normal range."""
    return as_float(shift_left(i + bias(x), mantissa_bits(x)))


def round_magic(x: E.PrimExpr) -> float:
    """1.5 * 2^mantissa: adding it leaves the nearest integer in the low bits of the sum."""
    return 1.5 * 2.0 ** mantissa_bits(x)
