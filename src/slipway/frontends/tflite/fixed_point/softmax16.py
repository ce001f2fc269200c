"""SOFTMAX of 16-bit integers: interpolated tables of exp and of 1 / (1 + x)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import array_constant
from slipway.frontends.tflite.file_model import Array
from slipway.relay.op_registry import const
from slipway.relay.ops.qnn.rescale import rescale_by

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

STEPS = 512


def _round(values: Any) -> Any:
    """Halves away from zero."""
    return np.trunc(values + np.copysign(values.dtype.type(0.5), values))


def interpolation_table(
    function: Callable[[Any], Any],
    scale: float,
    zero_point: int,
    out_scale: float,
    real: type[np.floating[Any]] = np.float32,
) -> Array:
    """Return 513 int16 samples of `function`, each moved to halve the error between two of them.

    They are computed in the type `real`.
    """
    low, high = (real(scale) * real(v - zero_point) for v in (-32768, 32767))
    out_low, out_high = (real(out_scale) * real(v) for v in (-32768, 32767))
    step = (high - low) / real(STEPS)
    inverse = real(65536) / (out_high - out_low)
    index = np.arange(STEPS, dtype=real)
    here = function(low + index * step) * inverse
    middle = function(low + index * step + step / real(2)) * inverse
    following = function(low + (index + real(1)) * step) * inverse
    samples = _round(here)
    error = _round((following + samples) / real(2)) - _round(middle)
    samples = samples - _round(error / real(2))
    last = _round(function(np.array([high], real)) * inverse)
    table: Array = np.clip(np.concatenate([samples, last]), -32768, 32767).astype(np.int16)
    return table


def _const(value: int) -> Any:
    return const(value, "int32")


def interpolated(value: Expr, table: Array) -> Any:
    """Look int32 values of the range of int16 up: 9 bits choose the sample, 7 interpolate."""
    position = relay.add(relay.right_shift(value, _const(7)), _const(256))
    part = relay.bitwise_and(value, _const(127))
    base = relay.take(array_constant(table, "int32"), position, mode="clip")
    slopes = np.append(np.diff(table.astype(np.int64)), 0).astype(np.int16)
    slope = relay.take(array_constant(slopes, "int32"), position, mode="clip")
    product = relay.add(relay.multiply(slope, part), _const(64))
    return relay.add(base, relay.right_shift(product, _const(7)))


def softmax16(
    data: Expr, scale: float, beta: float, real: type[np.floating[Any]] = np.float32
) -> Any:
    """Return the softmax over the last axis in Q0.15; its tables are computed in the type `real`.

    TensorFlow Lite Micro has floats, LiteRT doubles: two samples of 1 / (1 + x) differ by one.
    """
    span = np.float32(65535)
    exponential_table = interpolation_table(
        np.exp, float(np.float32(10) / span), 32767, float(np.float32(2) / span), real
    )
    reciprocals = interpolation_table(
        lambda x: real(1) / (real(1) + x),
        float(np.float32(1) / span), -32768, float(np.float32(2) / span), real,
    )  # fmt: skip
    wide = relay.cast(data, "int32")
    below = relay.subtract(wide, relay.max(wide, axis=-1, keepdims=True))
    argument = relay.add(rescale_by(below, scale * beta / (10.0 / 65535.0)), _const(32767))
    exponentials = interpolated(relay.clip(argument, -32768, 32767), exponential_table)
    total = relay.sum(exponentials, axis=-1, keepdims=True)

    # The total's leading digits as 1 + x in Q0.16, rounded; they fit 32 bits.
    zeros = relay.qnn.op.leading_zeros(total)
    leading = relay.left_shift(total, relay.subtract(zeros, _const(1)))
    fraction = relay.right_shift(relay.right_shift(leading, _const(13)) + _const(1), _const(1))
    centered = relay.clip(relay.subtract(fraction, _const((1 << 15) + (1 << 16))), -32768, 32767)
    # Once a row, not again for each of its elements.
    reciprocal = relay.annotation.stop_fusion(interpolated(centered, reciprocals))
    right = relay.subtract(_const(31), zeros)
    half = relay.left_shift(_const(1), relay.subtract(right, _const(1)))
    product = relay.add(relay.multiply(exponentials, reciprocal), half)
    return relay.cast(relay.clip(relay.right_shift(product, right), 0, 32767), "int16")
