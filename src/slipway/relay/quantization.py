"""The compiler's one rule of requantisation, integer-exact, in NumPy.

A real factor between two scales is a multiplier m, 0 <= m < 2**31, and a shift s: the factor is
m * 2**(s - 31).  What `multiply_by_quantized_multiplier` gives is the law for every backend;
docs/quantization.md derives it.  It is what TensorFlow Lite's reference kernels and TensorFlow
Lite Micro compute (gemmlowp's fixed point with two roundings), so integer models agree with them
bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import TypeInferenceError

Array = np.ndarray[Any, Any]
Numbers = Array | np.integer[Any] | int

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1


def round_half_away(value: float) -> int:
    """Round to the nearest integer, halves away from zero: C's round()."""
    floor = math.floor(abs(value))
    rounded = floor + (abs(value) - floor >= 0.5)
    return -rounded if value < 0 else rounded


def quantize_multiplier(real: float) -> tuple[int, int]:
    """Return (multiplier, shift) of a real factor; a factor below 2**-32 becomes (0, 0)."""
    if real == 0.0:
        return 0, 0
    if not math.isfinite(real):
        raise TypeInferenceError(f"the ratio of two scales is {real}")
    fraction, shift = math.frexp(real)
    multiplier = round_half_away(fraction * (1 << 31))
    if multiplier == 1 << 31:
        multiplier //= 2
        shift += 1
    if shift < -31:
        return 0, 0
    return multiplier, shift


def quantize_multipliers(reals: Any) -> tuple[Array, Array]:
    """Return the int32 multipliers and shifts of many factors, in the shape of `reals`."""
    flat = [quantize_multiplier(float(r)) for r in np.ravel(reals)]
    shape = np.shape(reals)
    multipliers = np.array([m for m, _ in flat], np.int32).reshape(shape)
    return multipliers, np.array([s for _, s in flat], np.int32).reshape(shape)


def doubling_high_multiply(a: Numbers, b: Numbers) -> Any:
    """Return round(a * b / 2**31) of int32 values, halves up; -2**31 times itself saturates."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.minimum((product + (1 << 30)) >> 31, INT32_MAX).astype(np.int32)


def rounding_divide_by_power_of_two(x: Numbers, exponent: Numbers) -> Any:
    """Return round(x / 2**exponent) of int32 values, halves away from zero."""
    wide, shift = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    mask = (np.int64(1) << shift) - 1
    threshold = (mask >> 1) + (wide < 0)
    return ((wide >> shift) + ((wide & mask) > threshold)).astype(np.int32)


def multiply_by_quantized_multiplier(x: Numbers, multiplier: Numbers, shift: Numbers) -> Any:
    """Scale int32 or int64 accumulators to int32: the rule of requantisation.

    int32: ``divide(high_multiply(x << max(s, 0), m), max(-s, 0))``.  int64 (16-bit activations):
    m is first rounded to 16 bits, then one rounding, halves up.
    """
    x, shift = np.asarray(x), np.asarray(shift)
    if x.dtype == np.int64:
        multiplier = np.asarray(multiplier, np.int64)
        reduced = np.where(multiplier < 0x7FFF0000, (multiplier + (1 << 15)) >> 16, 0x7FFF)
        total = (15 - shift).astype(np.int64)
        return ((x * reduced + (np.int64(1) << (total - 1))) >> total).astype(np.int32)
    left = np.maximum(shift, 0).astype(np.int64)
    widened = (x.astype(np.int64) << left).astype(np.int32)
    high = doubling_high_multiply(widened, multiplier)
    return rounding_divide_by_power_of_two(high, np.maximum(-shift, 0))


def multiply_with_one_rounding(x: Array, multiplier: Array, shift: Array) -> Any:
    """Scale accumulators with a single rounding, halves up: LiteRT's matrix products.

    int64 accumulators below 2**46, and shifts up to 16, multiply in two parts that fit 64 bits.
    """
    total = 31 - np.asarray(shift, np.int64)
    if np.asarray(x).dtype == np.int64:
        m, half = np.asarray(multiplier, np.int64), np.int64(1) << (total - 1)
        low = ((x & 0x7FFF) * m + half) >> 15
        return (((x >> 15) * m + low) >> (total - 15)).astype(np.int32)
    product = np.asarray(x, np.int64) * np.asarray(multiplier, np.int64)
    return ((product + (np.int64(1) << (total - 1))) >> total).astype(np.int32)


def shift_left_saturating(x: Numbers, amount: int) -> Any:
    """Return x * 2**amount of int32 values, held inside int32."""
    wide = np.asarray(x, np.int64) << amount
    return np.clip(wide, INT32_MIN, INT32_MAX).astype(np.int32)


# exp(-2**k) in Q0.31 for k = -2 ... 4: the binary digits of the argument select among them.
_EXP_FACTORS = (
    (-2, 1672461947), (-1, 1302514674), (0, 790015084), (1, 290630308), (2, 39332535),
    (3, 720401), (4, 242),
)  # fmt: skip
_EXP_MINUS_EIGHTH = 1895147668
_ONE_THIRD = 715827883


def exp_on_negative_values(a: Array, integer_bits: int) -> Any:
    """Return exp(a) in Q0.31 for a <= 0 in Q(integer_bits).(31 - integer_bits)."""
    a = np.asarray(a, np.int32)
    fractional = 31 - integer_bits
    quarter = 1 << (fractional - 2)
    low = (a & (quarter - 1)) - quarter  # in [-1/4, 0)
    x = (low.astype(np.int64) << integer_bits).astype(np.int32) + (1 << 28)
    square = doubling_high_multiply(x, x)
    cube = doubling_high_multiply(square, x)
    fourth = rounding_divide_by_power_of_two(doubling_high_multiply(square, square), 2)
    tail = rounding_divide_by_power_of_two(
        doubling_high_multiply(fourth + cube, _ONE_THIRD) + square, 1
    )
    result = _EXP_MINUS_EIGHTH + doubling_high_multiply(_EXP_MINUS_EIGHTH, x + tail)
    remainder = low - a
    for exponent, factor in _EXP_FACTORS:
        if integer_bits > exponent:
            bit = (remainder >> (fractional + exponent)) & 1
            result = np.where(bit, doubling_high_multiply(result, factor), result)
    return np.where(a == 0, INT32_MAX, result).astype(np.int32)


# The start of Newton's iteration for 1 / d on [1/2, 1], in Q2.29: 48/17 - 32/17 d.
NEWTON_CONSTANT, NEWTON_SLOPE = 1515870810, -1010580540


def _half_reciprocal(a: Array) -> Any:
    """Return 2 / (1 + a) in Q2.29 for a in [0, 1) in Q0.31."""
    total = np.asarray(a, np.int64) + INT32_MAX
    half = ((total + 1) >> 1).astype(np.int32)
    x = NEWTON_CONSTANT + doubling_high_multiply(half, NEWTON_SLOPE)
    for _ in range(3):
        error = (1 << 29) - doubling_high_multiply(half, x)
        x = x + shift_left_saturating(doubling_high_multiply(x, error), 2)
    return x


def one_over_one_plus_x(a: Array) -> Any:
    """Return 1 / (1 + a) in Q0.31 for a in [0, 1) in Q0.31."""
    return shift_left_saturating(_half_reciprocal(a), 1)


def one_minus_x_over_one_plus_x(a: Array) -> Any:
    """Return (1 - a) / (1 + a) in Q0.31 for a in [0, 1) in Q0.31."""
    return shift_left_saturating(_half_reciprocal(a) - (1 << 29), 2)


def inverse_square_root(value: int) -> tuple[int, int]:
    """Return (multiplier, shift) of 1 / sqrt(value), as `quantize_multiplier` does for a factor."""
    if value <= 1:
        return INT32_MAX, 0
    shift = 11
    while value >= 1 << 29:
        value //= 4
        shift += 1
    pairs = (31 - value.bit_length()) // 2 - 1
    shift -= pairs
    value <<= 2 * pairs

    def high(a: int, b: int) -> int:
        return int(doubling_high_multiply(a, b))

    def rescaled(a: int, bits: int) -> int:
        return int(shift_left_saturating(a, bits))

    half = int(rounding_divide_by_power_of_two(value >> 1, 1))
    x = 1 << 28
    for _ in range(5):
        cube = rescaled(high(high(x, x), x), 6)
        x = rescaled(high((1 << 28) + (1 << 27), x) - high(half, cube), 3)
    x = high(x, 1518500250)
    if shift < 0:
        x, shift = x << -shift, 0
    return x, -shift


def leading_zeros(x: Array) -> Any:
    """Count the leading zero bits of positive int32 values."""
    return 31 - np.floor(np.log2(np.asarray(x, np.float64))).astype(np.int32)


def activation_range(activation: str, scale: float, zero_point: int, dtype: str) -> tuple[int, int]:
    """Return what a fused activation ("none", "relu", "relu6", "relu_n1_to_1") leaves of `dtype`.

    The bounds are in quantised units.  The real bound over the scale is taken in float32.
    """
    if not dtypes.is_integral(dtype):
        raise TypeInferenceError(f"{dtype} data has a scale, which only integers have")
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)

    def quantized(real: float) -> int:
        return zero_point + round_half_away(float(np.float32(real) / np.float32(scale)))

    if activation in ("relu", "relu6"):
        low = max(low, quantized(0.0))
    if activation == "relu6":
        high = min(high, quantized(6.0))
    if activation == "relu_n1_to_1":
        low, high = max(low, quantized(-1.0)), min(high, quantized(1.0))
    return low, high
