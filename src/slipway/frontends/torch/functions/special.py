"""Special functions: the error function's complement and inverse, the gamma function's logarithm.

Each is arithmetic of elementwise operators.  Integers become floats where torch says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.torch.converters import NodeView, cast, converter, like, number

# B(2k) / (2k (2k - 1)) and B(2k) / (2k): Stirling's series of log(gamma) and of its derivative
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
STIRLING_SLOPE = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)
SHIFT = 8  # from here on the series has the precision of float64
TAIL = 60  # steps of the continued fraction of erfcx; enough for float64 from 2 on


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Return the sum of coefficients[k] * x ** k."""
    made: Any = like(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        made = relay.add(relay.multiply(made, x), like(coefficient, x))
    return made


def _below(x: Any, bound: float) -> Any:
    return relay.less(x, like(bound, x))


def _scaled_tail(x: Any) -> Any:
    """Return exp(x * x) erfc(x) for x from 2 on: Laplace's continued fraction."""
    steps = TAIL if x.tensor_type.dtype == "float64" else TAIL // 3
    below: Any = x
    for step in range(steps, 0, -1):
        below = relay.add(x, relay.divide(like(step / 2, x), below))
    return relay.divide(like(1 / math.sqrt(math.pi), x), below)


def complement_of_erf(x: Any) -> Any:
    """Return 1 - erf(x), with its own precision where it is small."""
    far = relay.maximum(x, like(2, x))
    tail = relay.multiply(_exp_of_square(far, -1), _scaled_tail(far))
    return relay.where(_below(x, 2), relay.subtract(like(1, x), relay.erf(x)), tail)


def _exp_of_square(x: Any, sign: int) -> Any:
    """Return exp(x * x) or exp(-x * x); what rounding the square loses is put back."""
    # x is a multiple of 1/16 whose square is exact, and a small rest.
    coarse = relay.divide(relay.round(relay.multiply(x, like(16, x))), like(16, x))
    rest = relay.multiply(relay.subtract(x, coarse), relay.add(x, coarse))
    grown = relay.exp(relay.multiply(relay.multiply(coarse, coarse), like(sign, x)))
    return relay.multiply(grown, relay.exp(relay.multiply(rest, like(sign, x))))


@converter("erfc", "special_erfc")
def erfc(node: NodeView) -> Any:
    """1 - erf(x)."""
    return complement_of_erf(cast(node.input(), node.out.dtype))


@converter("special_erfcx")
def erfcx(node: NodeView) -> Any:
    """exp(x * x) (1 - erf(x))."""
    x = cast(node.input(), node.out.dtype)
    inner = relay.minimum(x, like(2, x))
    grown = relay.multiply(_exp_of_square(inner, 1), complement_of_erf(inner))
    return relay.where(_below(x, 2), grown, _scaled_tail(relay.maximum(x, like(2, x))))


@converter("erfinv", "special_erfinv")
def erfinv(node: NodeView) -> Any:
    """The number whose error function this is: a first guess, and three of Newton's steps."""
    y = cast(node.input(), node.out.dtype)
    size, one = relay.abs(y), like(1, y)
    rest = relay.subtract(one, size)
    known = relay.logical_and(relay.greater(rest, like(0, y)), relay.greater(size, like(0, y)))
    size = relay.where(known, size, like(0.5, y))
    rest = relay.where(known, rest, like(0.5, y))
    # Winitzki's formula, within 2e-3
    log = relay.log(relay.multiply(rest, relay.add(one, size)))
    a = 0.147
    middle = relay.add(like(2 / (math.pi * a), y), relay.multiply(log, like(0.5, y)))
    square = relay.subtract(relay.multiply(middle, middle), relay.multiply(log, like(1 / a, y)))
    x: Any = relay.sqrt(relay.subtract(relay.sqrt(square), middle))
    for _ in range(3):
        # from 1 - |y| in the tails, where erf(x) - |y| would have no digits left
        error = relay.where(
            _below(size, 0.5),
            relay.subtract(relay.erf(x), size),
            relay.subtract(rest, complement_of_erf(x)),
        )
        slope = relay.multiply(_exp_of_square(x, -1), like(2 / math.sqrt(math.pi), y))
        step = relay.divide(error, slope)
        # Halley's correction: the second derivative is -2 x times the first
        x = relay.subtract(x, relay.divide(step, relay.add(one, relay.multiply(x, step))))
    x = relay.where(_below(y, 0), relay.negative(x), x)
    ends = relay.where(relay.equal(relay.abs(y), one), relay.divide(y, like(0, y)), like(np.nan, y))
    ends = relay.where(relay.equal(y, like(0, y)), y, ends)
    return relay.where(known, x, ends)


def _shifted(x: Any) -> tuple[Any, Any, Any]:
    """Return x raised to SHIFT or more, the product of what it passed, and their inverses' sum."""
    passed: Any = like(1, x)
    inverses: Any = like(0, x)
    for _ in range(SHIFT):
        small = _below(x, SHIFT)
        passed = relay.where(small, relay.multiply(passed, x), passed)
        inverse = relay.divide(like(1, x), x)
        inverses = relay.where(small, relay.add(inverses, inverse), inverses)
        x = relay.where(small, relay.add(x, like(1, x)), x)
    return x, passed, inverses


def _series(x: Any, coefficients: Sequence[float]) -> Any:
    inverse = relay.divide(like(1, x), relay.multiply(x, x))
    return _polynomial(inverse, coefficients)


@converter("lgamma", "special_gammaln")
def lgamma(node: NodeView) -> Any:
    """log(|gamma(x)|): Stirling's series above, its reflection below one half."""
    given = cast(node.input(), node.out.dtype)
    mirrored = _below(given, 0.5)
    x = relay.where(mirrored, relay.subtract(like(1, given), given), given)
    high, passed, _ = _shifted(x)
    found = relay.multiply(relay.subtract(high, like(0.5, x)), relay.log(high))
    found = relay.add(relay.subtract(found, high), like(0.5 * math.log(2 * math.pi), x))
    found = relay.add(found, relay.divide(_series(high, STIRLING), high))
    found = relay.subtract(found, relay.log(passed))
    found = relay.where(relay.isinf(x), relay.abs(x), found)
    wave = relay.abs(relay.sin(relay.multiply(_beside_integer(given), like(math.pi, x))))
    reflected = relay.subtract(relay.log(relay.divide(like(math.pi, x), wave)), found)
    reflected = relay.where(relay.isinf(given), relay.abs(given), reflected)
    return relay.where(mirrored, reflected, found)


def _beside_integer(x: Any) -> Any:
    """Return x less the integer beside it, which is exact."""
    return relay.subtract(x, relay.round(x))


@converter("digamma", "special_digamma", "special_psi")
def digamma(node: NodeView) -> Any:
    """The derivative of log(gamma(x))."""
    given = cast(node.input(), node.out.dtype)
    mirrored = _below(given, 0.5)
    x = relay.where(mirrored, relay.subtract(like(1, given), given), given)
    high, _, inverses = _shifted(x)
    found = relay.subtract(relay.log(high), relay.divide(like(0.5, x), high))
    square = relay.multiply(high, high)
    found = relay.subtract(found, relay.divide(_series(high, STIRLING_SLOPE), square))
    found = relay.subtract(found, inverses)
    found = relay.where(relay.isinf(x), x, found)
    tangent = relay.tan(relay.multiply(_beside_integer(given), like(math.pi, x)))
    reflected = relay.subtract(found, relay.divide(like(math.pi, x), tangent))
    whole = relay.equal(relay.round(given), given)
    poles = relay.where(
        relay.equal(given, like(0, given)), relay.divide(like(-1, given), given), like(np.nan, x)
    )
    return relay.where(mirrored, relay.where(whole, poles, reflected), found)


@converter("gcd")
def gcd(node: NodeView) -> Any:
    """The largest common divisor: Euclid's remainders, as often as the widest numbers need."""
    dtype = node.out.dtype
    a, b = node.pair(dtype)
    if dtype in ("int64", "uint64"):
        raise node.unsupported(f"of {dtype}, whose remainders take 90 steps: use int32")
    steps = {"uint8": 13, "int8": 12, "int16": 24, "int32": 46}[dtype]
    a, b = (relay.abs(relay.broadcast_to(v, node.out.shape)) for v in (a, b))
    for _ in range(steps):
        done = relay.equal(b, number(0, dtype))
        left = relay.mod(a, relay.where(done, number(1, dtype), b))
        a, b = relay.where(done, a, b), relay.where(done, b, left)
    return relay.abs(a)
