"""log and its family, by the scheme of fdlibm.

x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f), and
log(x) = k log(2) + f - f^2 / 2 + s (f^2 / 2 + R(s^2)).
"""

from __future__ import annotations

from dataclasses import dataclass

from slipway.codegen.math import coefficients as table
from slipway.codegen.math.build import (
    Bindings,
    as_bits,
    as_float,
    bias,
    bit_and,
    bits_of,
    copysign,
    fabs,
    int_to_float,
    mantissa_bits,
    num,
    pick,
    poly,
    select,
    shift_right,
    sqrt,
)  # fmt: skip
from slipway.ir import expr as E

_LN2 = (
    (6.9313812256e-01, 9.0580006145e-06),
    (6.93147180369123816490e-01, 1.90821492927058770002e-10),
)


@dataclass
class Parts:
    """x taken apart: k as a float, f = m - 1, and the pieces of log(1 + f)."""

    k: E.PrimExpr
    f: E.PrimExpr
    s: E.PrimExpr
    half_square: E.PrimExpr
    tail: E.PrimExpr  # s * (f^2 / 2 + R)


def split(b: Bindings, x: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
    """Return (k as a float, f) for a positive x, denormal or not."""
    lift = 25 if bits_of(x) == 32 else 54
    minimum = num(2.0 ** (1 - bias(x)), x)
    denormal = b.let(E.LT(x, minimum))
    i = b.let(as_bits(select(denormal, E.Mul(x, num(2.0**lift, x)), x)), "i")
    root = 0x3F3504F3 if bits_of(x) == 32 else 0x3FE6A09E667F3BCD  # sqrt(1/2)
    one = bias(x) << mantissa_bits(x)
    moved = b.let(i + (one - root), "i")
    down = select(denormal, num(-lift - bias(x), i), num(-bias(x), i))
    k = b.let(int_to_float(E.Add(shift_right(moved, mantissa_bits(x)), down), x), "k")
    m = as_float(E.Add(bit_and(moved, (1 << mantissa_bits(x)) - 1), num(root, i)))
    return k, b.let(E.Sub(m, num(1.0, x)), "f")


def parts(b: Bindings, x: E.PrimExpr) -> Parts:
    """Return the pieces of log(x) for a positive x."""
    k, f = split(b, x)
    s = b.let(E.Div(f, E.Add(f, num(2.0, x))), "s")
    z = b.let(E.Mul(s, s), "z")
    half_square = b.let(E.Mul(E.Mul(f, num(0.5, x)), f), "h")
    tail = b.let(E.Mul(s, E.Add(half_square, E.Mul(z, poly(z, table.LOG)))), "u")
    return Parts(k, f, s, half_square, tail)


def _specials(x: E.PrimExpr, result: E.PrimExpr) -> E.PrimExpr:
    """Put in the values at 0, infinity and below zero; NaN passes through."""
    zero, infinity = num(0.0, x), num(float("inf"), x)
    inside = E.And(E.GT(x, zero), E.LT(x, infinity))
    nan = num(float("nan"), x)
    special = select(E.EQ(x, zero), num(-float("inf"), x), select(E.LT(x, zero), nan, x))
    return select(inside, result, special)


def _sum(p: Parts, correction: E.PrimExpr | None = None) -> E.PrimExpr:
    high, low = (pick(p.f, _LN2[0][i], _LN2[1][i]) for i in (0, 1))
    small: E.PrimExpr = E.Mul(p.k, low)
    if correction is not None:
        small = E.Add(small, correction)
    inner = E.Sub(E.Add(p.tail, small), p.half_square)
    return E.Add(E.Add(inner, p.f), E.Mul(p.k, high))


def log(x: E.PrimExpr) -> E.PrimExpr:
    """The natural logarithm."""
    b = Bindings()
    x = b.let(x, "x")
    return b.close(_specials(x, _sum(parts(b, x))))


def log1p(x: E.PrimExpr) -> E.PrimExpr:
    """log(1 + x), exact near zero: the rounding error of 1 + x is added back."""
    b = Bindings()
    x = b.let(x, "x")
    one = num(1.0, x)
    u = b.let(E.Add(x, one), "u")
    lost = select(E.GT(u, num(2.0, x)), E.Sub(one, E.Sub(u, x)), E.Sub(x, E.Sub(u, one)))
    result = _specials(u, _sum(parts(b, u), b.let(E.Div(lost, u), "c")))
    tiny = E.LT(fabs(x), num(2.0 ** (-2 - mantissa_bits(x)), x))
    return b.close(select(tiny, x, result))


def _in_base(x: E.PrimExpr, inverse: tuple[E.PrimExpr, E.PrimExpr],
             per_k: tuple[E.PrimExpr, E.PrimExpr]) -> E.PrimExpr:  # fmt: skip
    """log(x) / log(base): `inverse` is 1 / log(base) and `per_k` log(2) / log(base), in parts."""
    b = Bindings()
    x = b.let(x, "x")
    p = parts(b, x)
    mask = -(1 << 12) if bits_of(x) == 32 else -(1 << 32)
    high = b.let(as_float(bit_and(as_bits(E.Sub(p.f, p.half_square)), mask)), "hi")
    low = b.let(E.Add(E.Sub(E.Sub(p.f, high), p.half_square), p.tail), "lo")
    total = E.Add(E.Mul(E.Add(low, high), inverse[1]), E.Mul(p.k, per_k[1]))
    total = E.Add(total, E.Mul(low, inverse[0]))
    main = b.let(E.Mul(high, inverse[0]), "v")
    whole = b.let(E.Mul(p.k, per_k[0]), "y")
    # Add the larger of the two exactly: whole dominates unless k is 0.
    head = b.let(E.Add(whole, main), "w")
    total = E.Add(total, E.Add(E.Sub(whole, head), main))
    return b.close(_specials(x, E.Add(total, head)))


def log2(x: E.PrimExpr) -> E.PrimExpr:
    """The logarithm to base 2."""
    inverse = (pick(x, 1.4428710938e00, 1.44269504072144627571e00),
               pick(x, -1.7605285393e-04, 1.67517131648865118353e-10))  # fmt: skip
    return _in_base(x, inverse, (num(1.0, x), num(0.0, x)))


def log10(x: E.PrimExpr) -> E.PrimExpr:
    """The logarithm to base 10."""
    inverse = (pick(x, 4.3432617188e-01, 4.34294481878168880939e-01),
               pick(x, -3.1689971365e-05, 2.50829467116452752298e-11))  # fmt: skip
    per_k = (pick(x, 3.0102920532e-01, 3.01029995663611771306e-01),
             pick(x, 7.9034151668e-07, 3.69423907715893078616e-13))  # fmt: skip
    return _in_base(x, inverse, per_k)


def asinh(x: E.PrimExpr) -> E.PrimExpr:
    """The inverse hyperbolic sine: log1p(a + a^2 / (1 + sqrt(1 + a^2))), a = |x|."""
    b = Bindings()
    x = b.let(x, "x")
    a = b.let(fabs(x), "a")
    one = num(1.0, x)
    huge = b.let(E.GT(a, pick(x, 1e9, 1e18)))
    bounded = b.let(select(huge, one, a), "m")
    square = b.let(E.Mul(bounded, bounded))
    inner = E.Add(bounded, E.Div(square, E.Add(one, sqrt(E.Add(one, square)))))
    small = b.let(log1p(b.let(inner)))
    large = E.Add(b.let(log(a)), num(0.6931471805599453, x))
    return b.close(copysign(select(huge, large, small), x))


def acosh(x: E.PrimExpr) -> E.PrimExpr:
    """The inverse hyperbolic cosine: log1p(t + sqrt(2 t + t^2)), t = x - 1."""
    b = Bindings()
    x = b.let(x, "x")
    huge = b.let(E.GT(x, pick(x, 1e9, 1e18)))
    t = b.let(E.Sub(select(huge, num(2.0, x), x), num(1.0, x)), "t")
    inner = E.Add(t, sqrt(E.Mul(t, E.Add(t, num(2.0, x)))))
    large = E.Add(b.let(log(x)), num(0.6931471805599453, x))
    result = select(huge, large, b.let(log1p(b.let(inner))))
    return b.close(select(E.LT(x, num(1.0, x)), num(float("nan"), x), result))


def atanh(x: E.PrimExpr) -> E.PrimExpr:
    """The inverse hyperbolic tangent: log1p(2 a / (1 - a)) / 2, a = |x|."""
    b = Bindings()
    x = b.let(x, "x")
    a = b.let(fabs(x), "a")
    ratio = E.Div(E.Add(a, a), E.Sub(num(1.0, x), a))
    return b.close(copysign(E.Mul(b.let(log1p(b.let(ratio))), num(0.5, x)), x))
