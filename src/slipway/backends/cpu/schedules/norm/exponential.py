"""The exponentials of a softmax: e^x for x <= 0, in half the instructions of the general function.

x is a score less the maximum of its row.  So nothing overflows, and what would be a denormal
number can be 0: to round to one takes most processors thirty times as long, and masked scores are
many.
One scaling by 2^n is then enough, whose bits come straight out of the sum that rounds x / log(2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.codegen.math.build import as_bits, as_float, poly, round_magic, shift_left
from slipway.codegen.math.coefficients import EXP
from slipway.codegen.math.exponential import LOG2_E

if TYPE_CHECKING:
    from slipway.target import Target

EXPONENTIAL = 16  # instructions of `exponential`
_SMALLEST = -87.0  # e^-87 is the last that is a normal float32
_BIAS, _MANTISSA = 127, 23
_HIGH, _LOW = 0.693359375, -2.12194440054690582e-4  # log(2); n * _HIGH is exact


def exponential_of(target: Target) -> Callable[[Any], Any]:
    """Return `exponential`, or with strict numerics the general function, which keeps denormals."""
    return te.exp if target.is_strict else exponential


def exponential(x: Any) -> Any:
    """e^x for a float32 x <= 0, with 0 where it is below -87; NaN stays NaN.

    n = nearest(x / log(2)) and r = x - n log(2); e^x = 2^n e^r.
    """
    minimum = te.const(_SMALLEST, x.dtype)
    clamped = te.max(minimum, x)
    magic = te.const(round_magic(x) + _BIAS, x.dtype)
    rounded = clamped * te.const(LOG2_E, x.dtype) + magic
    n = rounded - magic
    r = clamped - n * te.const(_HIGH, x.dtype) - n * te.const(_LOW, x.dtype)
    fraction = poly(r, EXP) * (r * r) + (r + te.const(1.0, x.dtype))
    whole = as_float(shift_left(as_bits(rounded), _MANTISSA))
    return te.Select(x < minimum, te.const(0.0, x.dtype), fraction * whole)
