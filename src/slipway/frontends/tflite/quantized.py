"""What quantised converters share: the epilogue behind sums, zero points, fused activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant
from slipway.frontends.tflite.file_model import Array
from slipway.relay.expr import Constant, Expr
from slipway.relay.op_registry import const
from slipway.relay.ops.qnn.rescale import rescale_by
from slipway.relay.quantization import activation_range

QUANTIZED = ("int8", "uint8", "int16")


def out_range(node: NodeView, activation: str = "none") -> tuple[int, int]:
    """Return the smallest and largest stored value of the output under a fused activation."""
    quantization = node.out_quantization()
    if activation not in ("none", "relu", "relu6", "relu_n1_to_1"):
        raise node.unsupported(f"the fused activation {activation!r} on integers is not supported")
    if node.out().dtype not in QUANTIZED:
        raise node.unsupported(f"its result is of type {node.out().dtype}")
    return activation_range(
        activation, quantization.scale, quantization.zero_point, node.out().dtype
    )


def stored(value: Expr, zero_point: int, low: int, high: int, dtype: str) -> Any:
    """Turn int32 results into the stored form: add the zero point, clamp, narrow."""
    shifted = relay.add(value, const(zero_point, "int32")) if zero_point else value
    return relay.cast(relay.clip(shifted, low, high), dtype)


def requantized(node: NodeView, total: Expr, real: Any, activation: str = "none") -> Any:
    """Scale sums by `real` (a number or one per channel) into the output's stored form."""
    low, high = out_range(node, activation)
    once = node.rounds_once and node.kind == "FULLY_CONNECTED"
    scaled = rescale_by(total, real, once)
    return stored(scaled, node.out_quantization().zero_point, low, high, node.out().dtype)


def scales_over_out(node: NodeView, *positions: int) -> float:
    """Return the product of inputs' scales over the output's, as a factor of elementwise kernels.

    TensorFlow Lite Micro forms it in doubles, LiteRT in float32, which is seen in 16-bit results.
    """
    scales = [node.quantization(p).scale for p in positions]
    out = node.out_quantization().scale
    if not node.rounds_once:
        return float(np.prod(np.array(scales, np.float64)) / out)
    return float(np.prod(np.array(scales, np.float32)) / np.float32(out))


def centered(node: NodeView, position: int) -> Any:
    """Return an input as int32 less its zero point."""
    wide = relay.cast(node[position], "int32")
    zero = node.quantization(position).zero_point
    return relay.subtract(wide, const(zero, "int32")) if zero else wide


def plain_weights(node: NodeView, position: int) -> Array:
    """Return constant weights less their zero points: int8 if they fit, else int16."""
    weights = node.constant(position)
    quantization = node.tensor(position).quantization
    if quantization is None or not quantization.zero_points.any():
        return weights
    shape = [1] * weights.ndim
    if quantization.zero_points.size > 1:
        shape[quantization.axis] = -1
    shifted = weights.astype(np.int32) - quantization.zero_points.reshape(shape).astype(np.int32)
    fits = shifted.size == 0 or (shifted.min() >= -128 and shifted.max() <= 127)
    return shifted.astype(np.int8 if fits else np.int16)


def product_scales(node: NodeView, weight: int) -> Any:
    """Return input scale * weight scale / output scale as TFLite forms it, in double.

    One number, or one per output channel.  With one scale for all the weights of an operator that
    never has more, the product of the scales is rounded to float32 first.
    """
    source, out = node.quantization(0).scale, node.out_quantization().scale
    quantization = node.tensor(weight).quantization
    if quantization is None:
        raise node.unsupported(f"the weights {node.tensor(weight).name!r} have no scale")
    scales = quantization.scales.astype(np.float64)
    rounds_first = node.tensor(0).dtype == "uint8" or node.kind == "FULLY_CONNECTED"
    if rounds_first and scales.size == 1:
        product = np.float32(source) * np.float32(scales[0])
        return float(product) / out
    return source * scales / out if scales.size > 1 else source * float(scales[0]) / out


def bias_of(node: NodeView, position: int, weights: Array, axes: tuple[int, ...]) -> Any:
    """Return the bias with the constant part of the data's zero point folded in; None if zero.

    `axes` are those of `weights` that are summed over.
    """
    zero = node.quantization(0).zero_point
    correction = -zero * weights.astype(np.int64).sum(axis=axes) if zero else np.int64(0)
    given: Array | None = node.constant(position) if node.has(position) else None
    if given is None and not zero:
        return None
    if given is not None:
        kept = tuple(d for a, d in enumerate(weights.shape) if a not in axes)
        if given.size != np.prod(kept):
            raise node.unsupported(f"a bias of shape {given.shape} does not fit {kept} channels")
        given = given.reshape(kept)
    total = correction + (given.astype(np.int64) if given is not None else 0)
    dtype = "int64" if given is not None and given.dtype == np.int64 else "int32"
    total = np.asarray(total)
    if not total.any():
        return None
    return array_constant(total.astype(np.int64).astype(dtype), dtype)


def sum_dtype(node: NodeView, bias: int) -> str:
    """Return the accumulator's dtype: int64 for 16-bit data, unless the bias has 32 bits."""
    if node.tensor(0).dtype != "int16":
        return "int32"
    return "int32" if node.has(bias) and node.tensor(bias).dtype == "int32" else "int64"


def is_constant(value: Expr) -> bool:
    """Return whether an expression is a constant."""
    return isinstance(value, Constant)
