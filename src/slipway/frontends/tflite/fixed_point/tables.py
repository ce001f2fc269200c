"""Functions of one 8-bit tensor as tables of 256 values, computed as TFLite's kernels compute them.

Each function takes the stored values, -128 ... 127 or 0 ... 255, with both quantisations, and gives
the stored results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.frontends.tflite.file_model import Array, Quantization
from slipway.relay import quantization as rule

if TYPE_CHECKING:
    pass

INPUT_BITS = 4  # integer bits of the fixed-point argument of logistic and tanh


def _saturated(values: Array, dtype: str) -> Array:
    info = np.iinfo(dtype)
    return np.clip(np.asarray(values, np.int64), info.min, info.max).astype(dtype)


def all_values(dtype: str) -> Array:
    """Return every stored value of an 8-bit dtype, lowest first, as int64."""
    info = np.iinfo(dtype)
    return np.arange(info.min, info.max + 1, dtype=np.int64)


def float_table(
    function: Callable[[Any], Any], source: Quantization, target: Quantization, dtype: str
) -> Array:
    """Tabulate a real function: dequantise, apply, quantise, in float32, halves away from zero."""
    values = (all_values(dtype) - source.zero_point).astype(np.float32)
    with np.errstate(all="ignore"):
        found = function(np.float32(source.scale) * values).astype(np.float32)
        scaled = found * (np.float32(1) / np.float32(target.scale))
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    rounded = np.nan_to_num(rounded, nan=-(2.0**31), posinf=2.0**31, neginf=-(2.0**31))
    return _saturated(rounded.astype(np.int64) + target.zero_point, dtype)


def _fixed_argument(source: Quantization, dtype: str) -> tuple[Array, Array, Array]:
    """Return the centred values, their fixed-point form in Q4.27, and where that saturates."""
    centered = all_values(dtype) - source.zero_point
    multiplier, shift = rule.quantize_multiplier(source.scale * (1 << (31 - INPUT_BITS)))
    radius = int(((1 << INPUT_BITS) - 1) * (1 << (31 - INPUT_BITS)) / 2.0**shift)
    inside = np.abs(centered) < radius
    kept = np.where(inside, centered, 0).astype(np.int32)
    return centered, rule.multiply_by_quantized_multiplier(kept, multiplier, shift), inside


def logistic_table(source: Quantization, target: Quantization, dtype: str) -> Array:
    """1 / (1 + exp(-x)) with scale 1/256 from the lowest value."""
    centered, fixed, inside = _fixed_argument(source, dtype)
    positive = rule.one_over_one_plus_x(
        rule.exp_on_negative_values(-np.abs(fixed), INPUT_BITS)
    ).astype(np.int64)
    result = np.where(fixed > 0, positive, rule.INT32_MAX - positive)
    result = np.where(fixed == 0, 1 << 30, result)
    low = int(np.iinfo(dtype).min)
    scaled = rule.rounding_divide_by_power_of_two(result, 23).astype(np.int64) + low
    beyond = np.where(centered > 0, low + 255, low)
    return _saturated(np.where(inside, scaled, beyond), dtype)


def tanh_table(source: Quantization, target: Quantization, dtype: str) -> Array:
    """tanh(x) with scale 1/128 about the middle."""
    centered, fixed, inside = _fixed_argument(source, dtype)
    found = rule.exp_on_negative_values(-np.abs(fixed), INPUT_BITS + 1)
    magnitude = rule.one_minus_x_over_one_plus_x(found).astype(np.int64)
    result = np.where(fixed == 0, 0, np.where(fixed < 0, -magnitude, magnitude))
    middle = 0 if dtype == "int8" else 128
    scaled = rule.rounding_divide_by_power_of_two(result, 24).astype(np.int64)
    beyond = np.where(centered > 0, 127, -128)
    return _saturated(np.where(inside, scaled, beyond) + middle, dtype)


def _rescale(values: Array, real: float) -> Any:
    multiplier, shift = rule.quantize_multiplier(real)
    return rule.multiply_by_quantized_multiplier(
        np.asarray(values, np.int32), multiplier, shift
    ).astype(np.int64)


def leaky_relu_table(alpha: float, source: Quantization, target: Quantization, dtype: str) -> Array:
    """x, or alpha * x where negative; both factors are float32."""
    values = all_values(dtype) - source.zero_point
    scale, out = np.float32(source.scale), np.float32(target.scale)
    slope = float(scale * np.float32(alpha) / out)
    negative = _rescale(values, abs(slope)) * (-1 if slope < 0 else 1)
    positive = _rescale(values, float(scale / out))
    return _saturated(np.where(values >= 0, positive, negative) + target.zero_point, dtype)


def abs_table(source: Quantization, target: Quantization, dtype: str) -> Array:
    """The absolute value."""
    values = np.abs(all_values(dtype) - source.zero_point)
    if source.scale != target.scale:
        values = _rescale(values, float(np.float32(source.scale) / np.float32(target.scale)))
    return _saturated(values + target.zero_point, dtype)


RSQRT_BITS = 20  # behind the point of 1 / sqrt(x), an integer


def rsqrt_factor(source: Quantization, target: Quantization) -> tuple[int, int]:
    """Return what 1 / sqrt of a stored value times 2**RSQRT_BITS is multiplied by."""
    real = 1.0 / float(np.sqrt(np.float32(source.scale)) * np.float32(target.scale))
    return rule.quantize_multiplier(real)


def rsqrt_table(source: Quantization, target: Quantization, dtype: str) -> Array:
    """1 / sqrt(x); zero gives the largest value, and so does what is negative."""
    shift = RSQRT_BITS
    values = all_values(dtype) - source.zero_point
    multiplier, exponent = rsqrt_factor(source, target)
    out = np.full(256, np.iinfo(dtype).max, np.int64)
    for position, value in enumerate(values):
        if value <= 0:
            continue
        inverse, inverse_shift = rule.inverse_square_root(int(value))
        data = rule.multiply_by_quantized_multiplier(np.int32(1), inverse, inverse_shift + shift)
        scaled = rule.multiply_by_quantized_multiplier(data, multiplier, exponent - shift)
        out[position] = int(scaled) + target.zero_point
    return _saturated(out, dtype)


def _high16(a: Any, b: Any) -> Any:
    """round(a * b / 2**15) of 16-bit values, halves away from zero; saturating."""
    product = a.astype(np.int64) * b
    nudged = product + np.where(product >= 0, 1 << 14, 1 - (1 << 14))
    quotient = np.sign(nudged) * (np.abs(nudged) >> 15)
    return np.clip(quotient, -32768, 32767)


def _left16(a: Any, amount: int) -> Any:
    return np.clip(a.astype(np.int64) << amount, -32768, 32767)


def _multiplier16(real: float) -> tuple[int, int]:
    multiplier, shift = rule.quantize_multiplier(real)
    rounded = 0x7FFF if multiplier >= rule.INT32_MAX - (1 << 15) else (multiplier + (1 << 15)) >> 16
    return rounded, shift


def hard_swish_table(source: Quantization, target: Quantization, dtype: str) -> Array:
    """X * relu6(x + 3) / 6 in 16-bit fixed point."""
    high = (np.float32(1 / 128)) * np.float32(source.scale)
    out, out_shift = _multiplier16(float(high / np.float32(target.scale)))
    relu, relu_shift = _multiplier16(float(high / np.float32(3.0 / 32768.0)))
    values = (all_values(dtype) - source.zero_point) * 128
    values = (values + 32768) % 65536 - 32768  # an int16
    outward = _high16(values, out)
    gate = values
    if relu_shift > 0:
        gate = _left16(gate, relu_shift - 1)
    gate = _high16(gate, relu)
    if relu_shift > 0:
        gate = _left16(gate, 1)
    if relu_shift < 0:
        gate = rule.rounding_divide_by_power_of_two(gate, -relu_shift).astype(np.int64)
    gate = (gate + 32768) >> 1
    product = gate * outward
    product = np.sign(product) * (np.abs(product) >> 15)  # toward zero
    shifted = rule.rounding_divide_by_power_of_two(product, max(-out_shift, 0)).astype(np.int64)
    return _saturated(shifted + target.zero_point, dtype)
