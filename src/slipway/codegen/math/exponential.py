"""exp and its family: x = n log(2) + r, |r| <= log(2) / 2, exp(x) = 2^n exp(r).

n comes out of the low bits of x / log(2) + 1.5 * 2^mantissa, so that no conversion to an integer
(undefined for NaN) is needed.  2^n is applied in two halves: results overflow to infinity and
underflow through the denormals with one rounding; where an instruction does that (AVX-512) it is
one.  NaN passes through: Min and Max give their second operand where one is a NaN, and x is always
the second.
"""

from __future__ import annotations

from typing import NamedTuple

from slipway.codegen.math import coefficients as table
from slipway.codegen.math.build import (
    Bindings,
    as_bits,
    as_float,
    copysign,
    fabs,
    num,
    pick,
    poly,
    power_of_two,
    round_magic,
    select,
    shift_right,
)  # fmt: skip
from slipway.ir import expr as E

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
_SPARE = 64


class _Whole(NamedTuple):
    """A whole number, as a float and as an integer of the same width."""

    n: E.PrimExpr
    i: E.PrimExpr


def _reduced(b: Bindings, x: E.PrimExpr, per_n: float, high: E.PrimExpr, low: E.PrimExpr
             ) -> tuple[_Whole, E.PrimExpr]:  # fmt: skip
    """Return (n, x - n * (high + low)) with n = nearest(x * per_n)."""
    magic = num(round_magic(x), x)
    t = b.let(E.Add(E.Mul(x, num(per_n, x)), magic))
    n = b.let(E.Sub(t, magic), "n")
    r = b.let(E.Sub(E.Sub(x, E.Mul(n, high)), E.Mul(n, low)), "r")
    return _Whole(n, b.let(E.Sub(as_bits(t), as_bits(magic)), "i")), r


def _ln2_reduced(b: Bindings, x: E.PrimExpr) -> tuple[_Whole, E.PrimExpr]:
    high = pick(x, 0.693359375, 6.93147180369123816490e-01)  # few bits: n * high is exact
    low = pick(x, -2.12194440054690582e-4, 1.90821492927058770002e-10)
    return _reduced(b, x, LOG2_E, high, low)


def _of_remainder(r: E.PrimExpr) -> E.PrimExpr:
    """exp(r) for |r| <= log(2) / 2."""
    square = E.Mul(r, r)
    return E.Add(E.Add(E.Mul(square, poly(r, table.EXP)), r), num(1.0, r))


def _scaled(value: E.PrimExpr, whole: _Whole) -> E.PrimExpr:
    """Value * 2^n."""
    return E.Call(value.dtype, "scale_by_power", (value, *whole))


def scale_by_power(value: E.PrimExpr, n: E.PrimExpr, i: E.PrimExpr) -> E.PrimExpr:
    """Value * 2^i, in two halves."""
    b = Bindings()
    i = b.let(i, "i")
    half = b.let(shift_right(i, 1))
    scaled = E.Mul(value, power_of_two(half, value))
    return b.close(E.Mul(scaled, power_of_two(b.let(E.Sub(i, half)), value)))


def scale_down_by_power(value: E.PrimExpr, n: E.PrimExpr, i: E.PrimExpr) -> E.PrimExpr:
    """Value * 2^i for i <= 0 where 2^(i + 64) is no denormal: a fixed part in place of halves."""
    large = E.Mul(value, power_of_two(i + _SPARE, value))
    return E.Mul(large, num(2.0**-_SPARE, value))


def _clamped(x: E.PrimExpr, low: E.PrimExpr, high: E.PrimExpr) -> E.PrimExpr:
    return E.Min(high, E.Max(low, x))


def _exp_shifted(b: Bindings, x: E.PrimExpr, shift: int) -> E.PrimExpr:
    """exp(x) * 2^shift, without overflow in between."""
    x = b.let(_clamped(x, pick(x, -104.0, -746.0), pick(x, 90.0, 711.0)), "x")
    whole, r = _ln2_reduced(b, x)
    if shift:
        whole = _Whole(E.Add(whole.n, num(shift, x)), whole.i + shift)
    return b.let(_scaled(b.let(_of_remainder(r)), whole))


def exp(x: E.PrimExpr) -> E.PrimExpr:
    """e^x."""
    b = Bindings()
    return b.close(_exp_shifted(b, b.let(x, "x"), 0))


def exp2(x: E.PrimExpr) -> E.PrimExpr:
    """2^x."""
    b = Bindings()
    x = b.let(_clamped(x, pick(x, -151.0, -1076.0), pick(x, 129.0, 1025.0)), "x")
    whole, r = _reduced(b, x, 1.0, num(1.0, x), num(0.0, x))
    r = b.let(E.Mul(r, num(LN2, x)))
    return b.close(_scaled(b.let(_of_remainder(r)), whole))


def exp10(x: E.PrimExpr) -> E.PrimExpr:
    """10^x."""
    b = Bindings()
    x = b.let(_clamped(x, pick(x, -46.0, -324.5), pick(x, 39.0, 309.0)), "x")
    high = pick(x, 0.301025390625, 3.01029995663611771306e-01)
    low = pick(x, 4.6050389811952137e-06, 3.69423907715893078616e-13)
    whole, r = _reduced(b, x, 3.321928094887362, high, low)
    r = b.let(E.Mul(r, num(2.302585092994046, x)))
    return b.close(_scaled(b.let(_of_remainder(r)), whole))


def _exp_of_nonpositive(b: Bindings, x: E.PrimExpr) -> E.PrimExpr:
    """exp(x) for x <= 0."""
    x = b.let(E.Max(pick(x, -104.0, -746.0), x), "x")
    whole, r = _ln2_reduced(b, x)
    return b.let(E.Call(x.dtype, "scale_down_by_power", (_of_remainder(r), *whole)))


def _expm1_of_nonpositive(b: Bindings, x: E.PrimExpr) -> E.PrimExpr:
    """exp(x) - 1 for x <= 0, but for the sign of zero."""
    x = b.let(E.Max(pick(x, -40.0, -80.0), x), "x")
    (_, i), r = _ln2_reduced(b, x)
    p = E.Add(E.Mul(E.Mul(r, r), poly(r, table.EXP)), r)
    power = b.let(power_of_two(i, x))
    return b.let(E.Add(E.Mul(p, power), E.Sub(power, num(1.0, x))))


def _expm1(b: Bindings, x: E.PrimExpr) -> E.PrimExpr:
    given = b.let(x, "x")
    x = b.let(_clamped(given, pick(x, -40.0, -80.0), pick(x, 90.0, 711.0)), "x")
    whole, r = _ln2_reduced(b, x)
    i = whole.i
    p = b.let(E.Add(E.Mul(E.Mul(r, r), poly(r, table.EXP)), r), "p")  # exp(r) - 1
    one = num(1.0, x)
    back = power_of_two(E.Sub(num(0, i), E.Min(i, num(64, i))), x)
    large = _scaled(b.let(E.Add(p, E.Sub(one, back))), whole)
    power = b.let(power_of_two(E.Min(i, num(0, i)), x))
    small = E.Add(E.Mul(p, power), E.Sub(power, one))
    result = select(E.GT(i, num(0, i)), large, select(E.EQ(i, num(0, i)), p, small))
    return b.let(select(E.EQ(given, num(0.0, x)), given, result))


def expm1(x: E.PrimExpr) -> E.PrimExpr:
    """e^x - 1, exact near zero."""
    b = Bindings()
    return b.close(_expm1(b, x))


def tanh(x: E.PrimExpr) -> E.PrimExpr:
    """The hyperbolic tangent: -e / (2 + e) with e = expm1(-2 |x|)."""
    b = Bindings()
    x = b.let(x, "x")
    e = _expm1_of_nonpositive(b, b.let(E.Mul(fabs(x), num(-2.0, x))))
    return b.close(copysign(E.Div(e, E.Add(e, num(2.0, x))), x))


def sigmoid(x: E.PrimExpr) -> E.PrimExpr:
    """1 / (1 + exp(-x)), through exp(-|x|), which does not overflow."""
    b = Bindings()
    x = b.let(x, "x")
    z = _exp_of_nonpositive(b, b.let(E.Sub(num(-0.0, x), fabs(x))))
    one = num(1.0, x)
    return b.close(E.Div(select(E.LT(x, num(0.0, x)), z, one), E.Add(z, one)))


def sinh(x: E.PrimExpr) -> E.PrimExpr:
    """The hyperbolic sine."""
    b = Bindings()
    x = b.let(x, "x")
    a = b.let(fabs(x), "a")
    z = b.let(E.Mul(x, x), "z")
    half = _exp_shifted(b, a, -1)  # exp(|x|) / 2
    large = E.Sub(half, E.Div(num(0.25, x), half))
    small = E.Add(a, E.Mul(E.Mul(a, z), poly(z, table.SINH)))
    return b.close(copysign(select(E.LT(a, num(1.0, x)), small, large), x))


def cosh(x: E.PrimExpr) -> E.PrimExpr:
    """The hyperbolic cosine."""
    b = Bindings()
    half = _exp_shifted(b, b.let(fabs(x), "a"), -1)
    return b.close(E.Add(half, E.Div(num(0.25, x), half)))


def exp_of_sum(b: Bindings, high: E.PrimExpr, low: E.PrimExpr) -> E.PrimExpr:
    """exp(high + low) for a float64 `high` with a small correction `low`; used by pow."""
    x = b.let(_clamped(high, num(-746.0, high), num(711.0, high)), "x")
    low = select(E.EQ(x, high), low, num(0.0, high))  # beyond the range it says nothing
    whole, r = _ln2_reduced(b, x)
    return b.let(_scaled(b.let(_of_remainder(b.let(E.Add(r, low)))), whole))


__all__ = [
    "as_float",
    "cosh",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "scale_by_power",
    "scale_down_by_power",
    "sigmoid",
    "sinh",
    "tanh",
]
