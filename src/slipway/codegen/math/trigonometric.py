"""sin, cos, tan and their inverses.

The argument is reduced by multiples of pi / 2 (Cody and Waite).  float32 reduces in float64, good
for |x| < 4e8; float64 takes three parts of pi / 2, good for |x| < 1.6e6.  Beyond that
results stay within [-1, 1] but lose their accuracy.
"""

from __future__ import annotations

from slipway import dtypes
from slipway.codegen.math import coefficients as table
from slipway.codegen.math.build import (
    Bindings,
    as_bits,
    bit_and,
    bits_of,
    copysign,
    fabs,
    num,
    pick,
    poly,
    round_magic,
    select,
    sqrt,
)  # fmt: skip
from slipway.ir import expr as E

_TWO_OVER_PI = 0.63661977236758134308
_PI_2 = (
    (1.57079637050628662109375, -4.37113900018624283e-8),
    (1.57079632679489655800e00, 6.12323399573676603587e-17),
)


def _reduced(b: Bindings, x: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
    """Return (quadrant as an integer of x's width, remainder in [-pi / 4, pi / 4])."""
    single = bits_of(x) == 32
    wide = E.Cast(dtypes.with_lanes("float64", x.lanes), x) if single else x
    wide = b.let(wide, "w")
    magic = num(round_magic(wide), wide)
    t = b.let(E.Add(E.Mul(wide, num(_TWO_OVER_PI, wide)), magic))
    n = b.let(E.Sub(t, magic), "n")
    steps = (
        (1.57079631090164184570e00, 1.58932547735281966916e-08)
        if single
        else (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
    )
    r = wide
    for step in steps:
        r = b.let(E.Sub(r, E.Mul(n, num(step, wide))), "r")
    if not single:  # the second step cancels: add back what its rounding lost
        r = _carefully(b, wide, n)
    limit = num(0.7854, wide)
    r = b.let(E.Min(limit, E.Max(num(-0.7854, wide), r)), "r")
    quadrant = E.Sub(as_bits(t), as_bits(magic))
    if single:
        return (
            b.let(E.Cast(dtypes.with_lanes("int32", x.lanes), quadrant), "q"),
            b.let(E.Cast(x.dtype, r), "r"),
        )
    return b.let(quadrant, "q"), r


def _carefully(b: Bindings, x: E.PrimExpr, n: E.PrimExpr) -> E.PrimExpr:
    """X - n pi / 2 to a relative 2^-53, in parts of 33 bits whose products with n are exact."""
    parts = (1.57079632673412561417e00, 6.07710050630396597660e-11,
             2.02226624871116645580e-21, 8.47842766036889956997e-32)  # fmt: skip
    r = b.let(E.Sub(x, E.Mul(n, num(parts[0], x))), "r")
    w1 = b.let(E.Mul(n, num(parts[1], x)), "w")
    r1 = b.let(E.Sub(r, w1), "r")
    e1 = E.Sub(E.Sub(r, r1), w1)
    low = E.Add(E.Mul(n, num(parts[2], x)), E.Mul(n, num(parts[3], x)))
    return b.let(E.Add(r1, E.Sub(e1, low)), "r")


def _kernels(b: Bindings, r: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
    """Return (sin(r), cos(r)) for |r| <= pi / 4."""
    z = b.let(E.Mul(r, r), "z")
    sine = b.let(E.Add(r, E.Mul(E.Mul(r, z), poly(z, table.SIN))), "s")
    half = E.Mul(z, num(0.5, r))
    cosine = E.Add(E.Sub(num(1.0, r), half), E.Mul(E.Mul(z, z), poly(z, table.COS)))
    return sine, b.let(cosine, "c")


def _negated_if(condition: E.PrimExpr, x: E.PrimExpr) -> E.PrimExpr:
    return select(condition, E.Sub(num(-0.0, x), x), x)


def _signed_zero(x: E.PrimExpr, sine: E.PrimExpr) -> E.PrimExpr:
    """The sine of x; of a zero it is that zero."""
    return select(E.EQ(x, num(0.0, x)), x, sine)


def _wave(x: E.PrimExpr, quarter: int) -> E.PrimExpr:
    b = Bindings()
    x = b.let(x, "x")
    q, r = _reduced(b, x)
    sine, cosine = _kernels(b, r)
    if not quarter:
        sine = _signed_zero(x, sine)
    q = b.let(q + quarter if quarter else q, "q")
    value = b.let(select(E.EQ(bit_and(q, 1), num(0, q)), sine, cosine))
    return b.close(_negated_if(E.NE(bit_and(q, 2), num(0, q)), value))


def sin(x: E.PrimExpr) -> E.PrimExpr:
    """The sine."""
    return _wave(x, 0)


def cos(x: E.PrimExpr) -> E.PrimExpr:
    """The cosine."""
    return _wave(x, 1)


def tan(x: E.PrimExpr) -> E.PrimExpr:
    """The tangent: sin / cos, or -cos / sin in odd quadrants."""
    b = Bindings()
    x = b.let(x, "x")
    q, r = _reduced(b, x)
    sine, cosine = _kernels(b, r)
    sine = b.let(_signed_zero(x, sine), "s")
    odd = b.let(E.NE(bit_and(q, 1), num(0, q)))
    top = select(odd, cosine, sine)
    bottom = select(odd, E.Sub(num(-0.0, x), sine), cosine)
    return b.close(E.Div(top, bottom))


def _asin_pieces(b: Bindings, x: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr, E.PrimExpr]:
    """Return (|x| <= 1/2, t, t^3 P(t^2)) with t = |x|, or sqrt((1 - |x|) / 2)."""
    a = b.let(fabs(x), "a")
    small = b.let(E.LE(a, num(0.5, x)))
    square = E.Mul(E.Sub(num(1.0, x), a), num(0.5, x))
    z = b.let(select(small, E.Mul(x, x), square), "z")
    t = b.let(select(small, a, sqrt(z)), "t")
    return small, t, b.let(E.Mul(E.Mul(t, z), poly(z, table.ASIN)), "p")


def asin(x: E.PrimExpr) -> E.PrimExpr:
    """The arc sine."""
    b = Bindings()
    x = b.let(x, "x")
    small, t, p = _asin_pieces(b, x)
    high, low = (pick(x, _PI_2[0][i], _PI_2[1][i]) for i in (0, 1))
    two = num(2.0, x)
    large = E.Sub(high, E.Sub(E.Add(E.Mul(t, two), E.Mul(p, two)), low))
    return b.close(copysign(select(small, E.Add(t, p), large), x))


def acos(x: E.PrimExpr) -> E.PrimExpr:
    """The arc cosine."""
    b = Bindings()
    x = b.let(x, "x")
    small, t, p = _asin_pieces(b, x)
    high, low = (pick(x, _PI_2[0][i], _PI_2[1][i]) for i in (0, 1))
    two = num(2.0, x)
    negative = b.let(E.LT(x, num(0.0, x)))
    signed_p = _negated_if(negative, p)
    middle = E.Sub(high, E.Sub(x, E.Sub(low, signed_p)))
    outer = b.let(E.Mul(E.Add(t, p), two))
    far = E.Mul(E.Sub(high, E.Sub(E.Add(t, p), low)), two)
    return b.close(select(small, middle, select(negative, far, outer)))


def _atan_positive(b: Bindings, a: E.PrimExpr) -> E.PrimExpr:
    """atan(a) for a >= 0 (or NaN), through the ranges below and above tan(pi/8), tan(3 pi/8)."""
    one = num(1.0, a)
    big, middle = (b.let(E.GT(a, num(v, a))) for v in (2.414213562373095, 0.4142135623730950))
    top = select(big, num(-1.0, a), select(middle, E.Sub(a, one), a))
    bottom = select(big, a, select(middle, E.Add(a, one), one))
    t = b.let(E.Div(top, bottom), "t")
    z = b.let(E.Mul(t, t), "z")
    high, low = (pick(a, _PI_2[0][i], _PI_2[1][i]) for i in (0, 1))
    half, zero = num(0.5, a), num(0.0, a)
    base = select(big, high, select(middle, E.Mul(high, half), zero))
    base_low = select(big, low, select(middle, E.Mul(low, half), zero))
    tail = E.Add(E.Mul(E.Mul(t, z), poly(z, table.ATAN)), base_low)
    return b.let(E.Add(base, E.Add(t, tail)))


def atan(x: E.PrimExpr) -> E.PrimExpr:
    """The arc tangent."""
    b = Bindings()
    x = b.let(x, "x")
    return b.close(copysign(_atan_positive(b, b.let(fabs(x), "a")), x))


def atan2(y: E.PrimExpr, x: E.PrimExpr) -> E.PrimExpr:
    """The angle of the point (x, y), in [-pi, pi]."""
    b = Bindings()
    y, x = b.let(y, "y"), b.let(x, "x")
    ay, ax = b.let(fabs(y), "a"), b.let(fabs(x), "b")
    steep = b.let(E.GT(ay, ax))
    low, high = b.let(select(steep, ax, ay)), b.let(select(steep, ay, ax))
    zero, one = num(0.0, x), num(1.0, x)
    # 0 / 0 counts as 0, infinity / infinity as 1.
    ratio = select(E.EQ(high, zero), zero, select(E.EQ(low, num(float("inf"), x)), one,
                                                  E.Div(low, high)))  # fmt: skip
    angle = _atan_positive(b, b.let(ratio, "t"))
    pi_2, pi_2_low = (pick(x, _PI_2[0][i], _PI_2[1][i]) for i in (0, 1))
    angle = b.let(select(steep, E.Sub(pi_2, E.Sub(angle, pi_2_low)), angle))
    two = num(2.0, x)
    reflected = E.Sub(E.Mul(pi_2, two), E.Sub(angle, E.Mul(pi_2_low, two)))
    bits = as_bits(x)
    angle = select(E.LT(bits, num(0, bits)), reflected, angle)
    broken = E.Or(E.NE(x, x), E.NE(y, y))
    return b.close(select(broken, E.Add(x, y), copysign(b.let(angle), y)))
