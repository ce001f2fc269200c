"""erf and pow."""

from __future__ import annotations

from collections.abc import Callable

from slipway import dtypes
from slipway.codegen.math import coefficients as table
from slipway.codegen.math.build import (
    Bindings,
    as_bits,
    as_float,
    bit_and,
    bits_of,
    call,
    copysign,
    fabs,
    num,
    poly,
    power_of_two,
    round_magic,
    select,
    sqrt,
)  # fmt: skip
from slipway.codegen.math.exponential import exp, exp2, exp_of_sum
from slipway.codegen.math.logarithm import log2, split
from slipway.ir import expr as E


def erf(x: E.PrimExpr) -> E.PrimExpr:
    """The error function: x + x P(x^2) up to 1.5, then 1 - exp(log(erfc(|x|)))."""
    b = Bindings()
    x = b.let(x, "x")
    if bits_of(x) == 32:
        return b.close(_erf_single(b, x))
    a = b.let(E.Min(num(6.0, x), fabs(x)), "a")
    z = b.let(E.Mul(x, x), "z")
    small = E.Add(x, E.Mul(x, poly(z, table.ERF)))
    t = b.let(E.Mul(E.Sub(a, num(3.75, x)), num(1.0 / 2.25, x)), "t")
    tail = b.let(exp(b.let(poly(t, table.ERFC))))
    large = copysign(E.Sub(num(1.0, x), tail), x)
    return b.close(select(E.LT(a, num(1.5, x)), small, large))


# In float32: erf(x) / x - 1 in x^2 (N. Juffa's erff) up to 0.93; log2(erfc(a)) / a from there to 4,
# where erf rounds to 1, and (2^r - 1) / r for |r| <= 1/2.  The latter two are minimax in what their
# errors do to erf: 0.05 and 0.3 units in its last place.
_ERF_SINGLE = (1.28379166e-1, -3.76125336e-1, 1.12819925e-1, -2.67681349e-2, 4.99119423e-3,
               -5.96761703e-4)  # fmt: skip
_ERFC_LOG2 = (-1.6280968189239502, -0.9171658754348755, -0.15183590352535248,
              0.033006828278303146, -0.004632942844182253, 0.0003080616588704288)  # fmt: skip
_EXP2 = (0.6931472420692444, 0.24022234976291656, 0.055503085255622864, 0.009671875275671482,
         0.0013407259248197079)  # fmt: skip


def _erf_single(b: Bindings, x: E.PrimExpr) -> E.PrimExpr:
    """As above, with erfc(a) = 2^(n + r): n is small and negative, so one scaling is enough."""
    a = b.let(E.Min(num(4.0, x), fabs(x)), "a")
    small = E.Add(x, E.Mul(x, poly(b.let(E.Mul(x, x), "z"), _ERF_SINGLE)))
    exponent = b.let(E.Mul(a, poly(a, _ERFC_LOG2)))
    magic = num(round_magic(x), x)
    shifted = b.let(E.Add(exponent, magic))
    r = b.let(E.Sub(exponent, E.Sub(shifted, magic)), "r")
    power = power_of_two(b.let(E.Sub(as_bits(shifted), as_bits(magic))), x)
    tail = b.let(E.Mul(E.Add(E.Mul(r, poly(r, _EXP2)), num(1.0, x)), power))
    large = copysign(E.Sub(num(1.0, x), tail), x)
    return select(E.LT(a, num(0.927734375, x)), small, large)


# erfc(a) = (4 - a)^2 N(a) / Q(a) for 0 <= a <= 4.
_ERFC_NUMERATOR = (0.0625, -0.0686601028, 0.0287927296, -0.00545409042, 0.000393290946)
_ERFC_DENOMINATOR = (1.0, -0.470180541, 0.541883886, -0.150686935, 0.0847568437,
                     -0.00283255172, 0.000402293168, 0.0020432563)  # fmt: skip


def one_plus_erf(x: E.PrimExpr) -> E.PrimExpr:
    """1 + erf(x) of float32, to 2.5e-7, and exactly 0 and 2 beyond -4 and 4.

    erf needs no more digits than the sum keeps; one quotient is half the instructions, and half of
    those that wait for each other.
    """
    b = Bindings()
    x = b.let(x, "x")
    a = b.let(E.Min(num(4.0, x), fabs(x)), "a")
    left = b.let(E.Sub(num(4.0, x), a))
    numerator = E.Mul(E.Mul(left, left), poly(a, _ERFC_NUMERATOR))
    tail = b.let(E.Div(numerator, poly(a, _ERFC_DENOMINATOR)))
    return b.close(select(E.LT(x, num(0.0, x)), tail, E.Sub(num(2.0, x), tail)))


def _root(x: E.PrimExpr) -> E.PrimExpr:
    """x^0.5, which has no sign at zero and is infinite at -infinity, where sqrt keeps both."""
    ends = E.Or(E.EQ(x, num(0.0, x)), E.EQ(x, num(-float("inf"), x)))
    return sqrt(select(ends, fabs(x), x))


_PLAIN_POWERS: dict[float, Callable[[E.PrimExpr], E.PrimExpr]] = {
    2.0: lambda x: E.Mul(x, x),
    3.0: lambda x: E.Mul(E.Mul(x, x), x),
    0.5: _root,
    -0.5: lambda x: E.Div(num(1.0, x), _root(x)),
    -1.0: lambda x: E.Div(num(1.0, x), x),
}


def power(x: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
    """x^y with the special cases of IEEE 754 (C's pow); some constant powers need no logarithm."""
    b = Bindings()
    constant = y.value if isinstance(y, E.Broadcast) else y
    x = b.let(x, "x")
    if isinstance(constant, E.FloatImm) and constant.value in _PLAIN_POWERS:
        return b.close(_PLAIN_POWERS[constant.value](x))
    y = b.let(y, "y")
    a = b.let(fabs(x), "a")
    size = _single(b, a, y) if bits_of(x) == 32 else _double(b, a, y)
    return b.close(_pow_specials(b, x, y, a, size))


def _single(b: Bindings, a: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
    """a^y in float64, which leaves 29 bits more than the result needs."""
    wide = dtypes.with_lanes("float64", a.lanes)
    exponent = E.Mul(b.let(log2(b.let(E.Cast(wide, a)))), E.Cast(wide, y))
    return b.let(E.Cast(a.dtype, exp2(b.let(exponent))))


def _head(x: E.PrimExpr) -> E.PrimExpr:
    """The upper 26 bits of a float64: products of two such are exact."""
    return as_float(bit_and(as_bits(x), -(1 << 27)))


def _product(b: Bindings, x: E.PrimExpr, y: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
    """Return (x * y rounded, its rounding error) (Dekker)."""
    p = b.let(E.Mul(x, y), "p")
    xh, yh = b.let(_head(x), "h"), b.let(_head(y), "h")
    xl, yl = b.let(E.Sub(x, xh), "l"), b.let(E.Sub(y, yh), "l")
    error = E.Add(E.Add(E.Sub(E.Mul(xh, yh), p), E.Mul(xh, yl)), E.Mul(xl, yh))
    return p, b.let(E.Add(error, E.Mul(xl, yl)), "e")


def _joined(b: Bindings, big: E.PrimExpr, small: E.PrimExpr) -> tuple[E.PrimExpr, E.PrimExpr]:
    """Return (big + small rounded, its rounding error) for any two numbers (Knuth)."""
    total = b.let(E.Add(big, small), "s")
    part = b.let(E.Sub(total, big), "v")
    return total, b.let(E.Add(E.Sub(big, E.Sub(total, part)), E.Sub(small, part)), "e")


def _double(b: Bindings, a: E.PrimExpr, y: E.PrimExpr) -> E.PrimExpr:
    """a^y with log(a) to about 2^-66, as the sum of two float64."""
    limit = 2.0**70
    y = b.let(E.Min(num(limit, y), E.Max(num(-limit, y), y)), "y")
    k, f = split(b, a)
    v, v_low = _joined(b, num(2.0, a), f)
    s = b.let(E.Div(f, v), "s")
    back, back_low = _product(b, s, v)
    lost = E.Sub(E.Sub(E.Sub(f, back), back_low), E.Mul(s, v_low))
    s_low = b.let(E.Div(lost, v), "s_low")
    z, z_low = _product(b, s, s)
    z_low = b.let(E.Add(z_low, E.Mul(E.Mul(num(2.0, a), s), s_low)))
    # g = 2/3 + z (2/5 + ...): the head of the series in two parts.
    series = poly(z, table.LOG[64][1:])
    g, g_low = _joined(b, num(0.6666666666666666, a), b.let(E.Mul(z, series)))
    correction = table.LOG[64][0] - 0.6666666666666666 if table.LOG[64][0] != 2 / 3 else 0.0
    g_low = b.let(E.Add(g_low, num(3.700743415417188e-17 + correction, a)))
    p, p_low = _product(b, z, g)
    p_low = b.let(E.Add(p_low, E.Add(E.Mul(z, g_low), E.Mul(z_low, g))))
    q, q_low = _product(b, s, p)
    q_low = b.let(E.Add(q_low, E.Add(E.Mul(s, p_low), E.Mul(s_low, p))))
    high, low = num(6.93147180369123816490e-01, a), num(1.90821492927058770002e-10, a)
    whole = b.let(E.Mul(k, high), "k")  # exact: 32 bits times 11
    k_low, k_error = _product(b, k, low)
    log_high, e1 = _joined(b, whole, b.let(E.Mul(s, num(2.0, a))))
    log_high, e2 = _joined(b, log_high, q)
    log_high, e3 = _joined(b, log_high, k_low)
    errors = E.Add(E.Add(E.Add(e1, e2), e3), E.Add(q_low, k_error))
    small = b.let(E.Add(errors, E.Mul(s_low, num(2.0, a))))
    t, t_low = _product(b, y, log_high)
    t_low = b.let(E.Add(t_low, E.Mul(y, small)))
    return exp_of_sum(b, t, t_low)


def _pow_specials(b: Bindings, x: E.PrimExpr, y: E.PrimExpr, a: E.PrimExpr,
                  size: E.PrimExpr) -> E.PrimExpr:  # fmt: skip
    """Put in what arithmetic does not give: zeros, infinities, signs, NaN."""
    zero, one = num(0.0, x), num(1.0, x)
    infinity, nan = num(float("inf"), x), num(float("nan"), x)
    half = b.let(E.Mul(y, num(0.5, y)))
    whole = b.let(E.EQ(call("nearbyint", y), y))
    odd = b.let(E.And(whole, E.NE(call("nearbyint", half), half)))
    below = b.let(E.LT(y, zero))
    to_infinity = E.Or(E.And(E.EQ(a, zero), below), E.And(E.EQ(a, infinity), E.Not(below)))
    edge = select(to_infinity, infinity, zero)
    result = select(E.Or(E.EQ(a, zero), E.EQ(a, infinity)), edge, size)
    grows = E.Or(E.And(E.GT(a, one), E.GT(y, zero)), E.And(E.LT(a, one), below))
    endless = select(E.EQ(a, one), one, select(grows, infinity, zero))
    result = b.let(select(E.EQ(fabs(y), infinity), endless, result))
    bits = as_bits(x)
    negative = b.let(E.LT(bits, num(0, bits)))
    result = b.let(select(E.And(negative, odd), E.Sub(num(-0.0, x), result), result))
    outside = E.And(E.And(E.LT(x, zero), E.GT(x, num(-float("inf"), x))), E.Not(whole))
    broken = E.Or(E.NE(x, x), E.NE(y, y))
    result = select(E.Or(outside, broken), nan, result)
    return select(E.Or(E.EQ(y, zero), E.EQ(x, one)), one, result)
