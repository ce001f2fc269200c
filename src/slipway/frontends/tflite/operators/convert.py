"""QUANTIZE, DEQUANTIZE, CAST, FAKE_QUANT: between representations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.quantized import out_range, stored
from slipway.relay.op_registry import const
from slipway.relay.ops.qnn.rescale import rescale_by

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


def rounded(value: Expr) -> Any:
    """Round to the nearest integer, halves away from zero, as C's round()."""
    dtype = value.tensor_type.dtype
    below = relay.trunc(value)
    fraction = relay.abs(relay.subtract(value, below))
    step = relay.where(relay.less(fraction, const(0.5, dtype)), const(0, dtype), relay.sign(value))
    return relay.add(below, step)


@converter("QUANTIZE")
def quantize(node: NodeView) -> Any:
    """Real numbers to integers, or integers of one scale to another."""
    target = node.out_quantization()
    dtype = node.out().dtype
    # Of 32 bits there is nothing to clamp, and no peer makes them from real numbers.
    wide_out = dtype == "int32" and not node.is_float
    low, high = (0, 0) if wide_out else out_range(node)
    if node.is_float:
        scaled = rounded(relay.divide(node[0], const(target.scale, "float32")))
        # The zero point is added as an integer; 2**24 keeps the conversion defined.
        whole = relay.cast(relay.clip(scaled, -(2.0**24), 2.0**24), "int32")
        return stored(whole, target.zero_point, low, high, dtype)
    source = node.quantization()
    wide = relay.cast(node[0], "int32")
    if source.zero_point:
        wide = relay.subtract(wide, const(source.zero_point, "int32"))
    scaled = rescale_by(wide, source.scale / target.scale)
    if wide_out:
        zero = const(target.zero_point, "int32")
        return relay.add(scaled, zero) if target.zero_point else scaled
    return stored(scaled, target.zero_point, low, high, dtype)


@converter("DEQUANTIZE")
def dequantize(node: NodeView) -> Any:
    """Integers (or halves) to real numbers."""
    if node.is_float:
        return relay.cast(node[0], "float32")
    quantization = node.tensor(0).quantization
    if quantization is None:
        raise node.unsupported("its input has no scale")
    view = [1] * len(node.shape())
    if quantization.scales.size > 1:
        view[quantization.axis] = -1
    zeros = quantization.zero_points.reshape(view if quantization.zero_points.size > 1 else ())
    scales = quantization.scales.reshape(view if quantization.scales.size > 1 else ())
    wide = relay.cast(node[0], "int32")
    if np.any(zeros):
        wide = relay.subtract(wide, array_constant(zeros, "int32"))
    return relay.multiply(relay.cast(wide, "float32"), array_constant(scales, "float32"))


@converter("CAST")
def cast(node: NodeView) -> Any:
    """Plain conversion of the stored numbers."""
    return relay.cast(node[0], node.out().dtype)
