"""Elementwise operators that later versions of TFLite added, on plain numbers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.angle import angle_of
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.relay import op_registry


@converter("ATAN2")
def atan2(node: NodeView) -> Any:
    """The angle of a point, y first."""
    node.need_dtype("float32", "float64")
    return angle_of(node[0], node[1])


@converter("BITWISE_XOR")
def bitwise_xor(node: NodeView) -> Any:
    """Exclusive or, bit by bit."""
    return relay.bitwise_xor(node[0], node[1])


@converter("RIGHT_SHIFT")
def right_shift(node: NodeView) -> Any:
    """Shift right, signed numbers with their sign; the amount is brought to the bits there are."""
    dtype = node[0].tensor_type.dtype
    most = np.iinfo(dtype).bits - 1
    return relay.right_shift(node[0], relay.clip(node[1], 0, most))


@converter("BITCAST")
def bitcast(node: NodeView) -> Any:
    """The same bytes under another type of the same width."""
    given, wanted = node[0].tensor_type.dtype, node.out().dtype
    if "bool" in (given, wanted) or np.dtype(given).itemsize != np.dtype(wanted).itemsize:
        raise node.unsupported(f"it reads {given} as {wanted}, whose elements have another width")
    return relay.reinterpret(node[0], wanted)


@converter("BUCKETIZE")
def bucketize(node: NodeView) -> Any:
    """How many of the sorted boundaries are not above each element."""
    limits = np.asarray(node.option("boundaries", None) or (), np.float32)
    wide = "float64" if node[0].tensor_type.dtype == "float64" else "float32"
    value = node[0] if node[0].tensor_type.dtype == wide else relay.cast(node[0], wide)
    reached = relay.greater_equal(relay.expand_dims(value, -1), array_constant(limits, wide))
    if not limits.size:
        return relay.zeros(node.shape(), "int32")
    return relay.sum(relay.cast(reached, "int32"), axis=-1)


@converter("FAKE_QUANT")
def fake_quant(node: NodeView) -> Any:
    """Round to the steps of a range, moved so that zero is one of them."""
    node.need_dtype("float32")
    bits, single = node.option("num_bits"), np.float32
    low_end, most = single(node.option("min")), single(node.option("max"))
    if not 2 <= bits <= 16 or not low_end <= 0 <= most or not low_end < most:
        raise node.unsupported(f"its range is {low_end} to {most} in {bits} bits; zero lies inside")
    steps = single((1 << bits) - 1)
    scale = (most - low_end) / steps
    zero = np.floor(min(max(single(0) - low_end / scale, single(0)), steps) + single(0.5))
    low, high = (single(0) - zero) * scale, (steps - zero) * scale

    def const(value: Any) -> Any:
        return op_registry.const(float(value), "float32")

    inside = relay.minimum(relay.maximum(node[0], const(low)), const(high))
    count = relay.multiply(relay.subtract(inside, const(low)), const(single(1) / scale))
    whole = relay.floor(relay.add(count, const(0.5)))  # never negative, so halves go up
    return relay.add(relay.multiply(whole, const(scale)), const(low))


@converter("LOCAL_RESPONSE_NORMALIZATION")
def local_response(node: NodeView) -> Any:
    """Divide by a power of the energy of the channels around each.

    LiteRT's window has one channel more before than behind: radius before, radius - 1 behind.
    """
    node.need_dtype("float32")
    shape = node.shape()
    if len(shape) != 4:
        raise node.unsupported(f"its data has the shape {shape}, not four axes")
    radius, depth = node.option("radius"), shape[3]
    positions = np.arange(depth)
    ahead = positions[None, :] - positions[:, None]  # of the channel that is read
    window = ((ahead >= -radius) & (ahead < radius)).astype(np.float32)
    rows = relay.reshape(node[0], (prod(shape[:3]), depth))
    energy = relay.nn.dense(relay.multiply(rows, rows), array_constant(window, "float32"))
    scaled = relay.multiply(energy, op_registry.const(node.option("alpha"), "float32"))
    base = relay.add(scaled, op_registry.const(node.option("bias"), "float32"))
    factor = relay.power(base, op_registry.const(-node.option("beta"), "float32"))
    return relay.reshape(relay.multiply(rows, factor), shape)
