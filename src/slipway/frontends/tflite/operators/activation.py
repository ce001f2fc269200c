"""SOFTMAX, LOGISTIC, TANH, the RELU family, and other activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.fixed_point import tables
from slipway.frontends.tflite.fixed_point.log_softmax8 import ZERO_POINT, log_softmax8
from slipway.frontends.tflite.fixed_point.sigmoid16 import logistic16, tanh16
from slipway.frontends.tflite.fixed_point.softmax16 import (
    interpolated,
    interpolation_table,
    softmax16,
)
from slipway.frontends.tflite.floating import activated, elementwise
from slipway.frontends.tflite.operators.arithmetic import is_quantized
from slipway.frontends.tflite.quantized import (
    centered,
    out_range,
    requantized,
    scales_over_out,
    stored,
)
from slipway.relay.op_registry import const
from slipway.relay.ops.qnn.rescale import rescale_by
from slipway.relay.ops.qnn.softmax import softmax as integer_softmax

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


@converter("SOFTMAX")
def softmax(node: NodeView) -> Any:
    """Over the last axis."""
    beta = node.option("beta")
    if node.is_float:
        scaled = node[0] if beta == 1.0 else relay.multiply(node[0], const(beta, "float32"))
        return relay.nn.softmax(scaled, axis=-1)
    node.need_dtype("int8", "uint8", "int16")
    if node.tensor(0).dtype == "int16":
        real = np.float64 if node.rounds_once else np.float32
        return softmax16(node[0], node.quantization().scale, beta, real)
    return integer_softmax(node[0], node.quantization().scale, beta, node.out().dtype)


@converter("LOG_SOFTMAX")
def log_softmax(node: NodeView) -> Any:
    """Over the last axis."""
    if node.is_float:
        return relay.nn.log_softmax(node[0], axis=-1)
    node.need_dtype("int8")
    target = node.out_quantization()
    if target.scale != 1 / 16 or target.zero_point != ZERO_POINT:
        raise node.unsupported(
            f"its result has scale {target.scale} and zero point {target.zero_point}; it must be "
            f"1/16 and {ZERO_POINT}"
        )
    return log_softmax8(node[0], node.quantization().scale)


def tabulated(node: NodeView, table: Any) -> Any:
    """Look the first input up in a table of its 256 values."""
    node.need_dtype("int8", "uint8")
    return relay.qnn.op.lookup(node[0], array_constant(table, node.out().dtype))


def _from_table(node: NodeView, make: Any, *args: Any) -> Any:
    node.need_dtype("int8", "uint8")
    dtype = node.tensor(0).dtype
    table = make(*args, node.quantization(), node.out_quantization(), dtype)
    return tabulated(node, table)


@converter("LOGISTIC")
def logistic(node: NodeView) -> Any:
    """1 / (1 + exp(-x))."""
    if node.is_float:
        return elementwise(relay.sigmoid, node[0])
    if node.tensor(0).dtype == "int16":
        return logistic16(node)
    return _from_table(node, tables.logistic_table)


@converter("TANH")
def tanh(node: NodeView) -> Any:
    """The hyperbolic tangent."""
    if node.is_float:
        return elementwise(relay.tanh, node[0])
    if node.tensor(0).dtype == "int16":
        return tanh16(node)
    return _from_table(node, tables.tanh_table)


RELUS = {
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU_0_TO_1": (0.0, 1.0),
}


@converter(*RELUS)
def relu(node: NodeView) -> Any:
    """Clamped below, perhaps above; the output may have another scale."""
    low, high = RELUS[node.kind]
    if node.is_float:
        if high is None:
            return elementwise(relay.nn.relu, node[0])
        return elementwise(lambda v: relay.clip(v, low, high), node[0])
    source, target = node.quantization(), node.out_quantization()
    dtype = node.out().dtype
    low_end, most = out_range(node)

    def bound(real: float) -> int:
        scaled = float(np.float32(real) / np.float32(target.scale))
        return target.zero_point + int(np.trunc(scaled + np.copysign(0.5, scaled)))

    low_end = max(low_end, bound(low))
    if high is not None:
        most = min(most, bound(high))
    if (source.scale, source.zero_point) == (target.scale, target.zero_point):
        return relay.clip(node[0], low_end, most)
    real = float(np.float32(source.scale) / np.float32(target.scale))
    return stored(rescale_by(centered(node, 0), real), target.zero_point, low_end, most, dtype)


@converter("LEAKY_RELU")
def leaky_relu(node: NodeView) -> Any:
    """X where positive, else alpha * x."""
    alpha = node.option("alpha")
    if node.is_float:
        return elementwise(lambda v: relay.nn.leaky_relu(v, alpha), node[0])
    if node.tensor(0).dtype != "int16":
        return _from_table(node, tables.leaky_relu_table, alpha)
    source, target = (
        np.float32(node.quantization().scale),
        np.float32(node.out_quantization().scale),
    )
    value = centered(node, 0)
    slope = float(source * np.float32(alpha) / target)
    below = rescale_by(value, abs(slope))
    if slope < 0:
        below = relay.negative(below)
    above = rescale_by(value, float(source / target))
    found = relay.where(relay.less(value, const(0, "int32")), below, above)
    low, high = out_range(node)
    return stored(found, node.out_quantization().zero_point, low, high, node.out().dtype)


@converter("PRELU")
def prelu(node: NodeView) -> Any:
    """X where not negative, else alpha * x with a tensor alpha."""
    if node.is_float:
        zero = const(0.0, "float32")
        return relay.where(relay.less(node[0], zero), relay.multiply(node[0], node[1]), node[0])
    value = centered(node, 0)
    above = rescale_by(value, scales_over_out(node, 0))
    product = relay.multiply(value, centered(node, 1))
    below = rescale_by(product, scales_over_out(node, 0, 1))
    found = relay.where(relay.less(value, const(0, "int32")), below, above)
    low, high = out_range(node)
    return stored(found, node.out_quantization().zero_point, low, high, node.out().dtype)


@converter("HARD_SWISH")
def hard_swish(node: NodeView) -> Any:
    """X * relu6(x + 3) / 6."""
    if not node.is_float:
        return _from_table(node, tables.hard_swish_table)

    def apply(value: Expr) -> Any:
        three, sixth = const(3.0, "float32"), const(1 / 6, "float32")
        gate = relay.clip(relay.add(value, three), 0.0, 6.0)
        return relay.multiply(relay.multiply(value, gate), sixth)

    return elementwise(apply, node[0])


def _elu(x: Any) -> Any:
    return np.where(x < 0, np.exp(x) - np.float32(1), x)


@converter("ELU")
def elu(node: NodeView) -> Any:
    """X where positive, else exp(x) - 1."""
    if not node.is_float:
        return _from_table(node, tables.float_table, _elu)
    zero, one = const(0.0, "float32"), const(1.0, "float32")

    def apply(value: Expr) -> Any:
        below = relay.exp(relay.minimum(value, zero)) - one
        return relay.where(relay.less(value, zero), below, value)

    return elementwise(apply, node[0])


def _gelu_erf(x: Any) -> Any:
    root = np.float32(0.5**0.5)
    gate = np.array([math.erf(v) for v in (x * root).tolist()], np.float32)
    return np.float32(0.5) * x * (np.float32(1) + gate)


def _gelu_tanh(x: Any) -> Any:
    inner = np.float32((2 / np.pi) ** 0.5) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1) + np.tanh(inner))


@converter("GELU")
def gelu(node: NodeView) -> Any:
    """X times the normal distribution's function of x."""
    if not node.is_float:
        approximate = node.option("approximate")
        return _from_table(node, tables.float_table, _gelu_tanh if approximate else _gelu_erf)
    half, one = const(0.5, "float32"), const(1.0, "float32")

    def apply(x: Expr) -> Any:
        if node.option("approximate"):
            cube = relay.multiply(relay.multiply(x, x), x)
            inner = relay.add(x, relay.multiply(const(0.044715, "float32"), cube))
            gate = relay.tanh(relay.multiply(const((2 / np.pi) ** 0.5, "float32"), inner))
        else:
            gate = relay.erf(relay.multiply(x, const(0.5**0.5, "float32")))
        return relay.multiply(relay.multiply(half, x), relay.add(one, gate))

    return elementwise(apply, node[0])


UNARY = {
    "CEIL": "ceil", "COS": "cos", "EXP": "exp", "FLOOR": "floor", "LOG": "log", "ROUND": "round",
    "SIN": "sin", "SQRT": "sqrt", "SIGN": "sign",
}  # fmt: skip
TABULATED = {"EXP": np.exp, "LOG": np.log}


@converter(*UNARY)
def unary(node: NodeView) -> Any:
    """Functions of one floating point number; some have 8-bit forms."""
    if node.is_float:
        return elementwise(getattr(relay, UNARY[node.kind]), node[0])
    if node.kind in TABULATED and is_quantized(node):
        if node.tensor(0).dtype == "int16":
            return _interpolated(node, TABULATED[node.kind])
        return _from_table(node, tables.float_table, TABULATED[node.kind])
    raise node.unsupported(f"{node.tensor(0).dtype} data is not supported")


def _interpolated(node: NodeView, function: Callable[[Any], Any]) -> Any:
    """A real function of 16-bit values between 513 samples."""
    source, target = node.quantization(), node.out_quantization()
    with np.errstate(all="ignore"):
        table = interpolation_table(function, source.scale, source.zero_point, target.scale)
    found = interpolated(relay.cast(node[0], "int32"), table)
    return stored(found, 0, -32768, 32767, "int16")


@converter("NEG", "SQUARE")
def negative(node: NodeView) -> Any:
    """-x, x * x, of plain numbers."""
    if is_quantized(node):
        raise node.unsupported("it is not supported on quantised numbers")
    if node.kind == "SQUARE":
        return elementwise(lambda v: relay.multiply(v, v), node[0])
    return elementwise(relay.negative, node[0])


@converter("ABS")
def absolute(node: NodeView) -> Any:
    """The absolute value."""
    if not is_quantized(node):
        return elementwise(relay.abs, node[0])
    if node.tensor(0).dtype != "int16":
        return _from_table(node, tables.abs_table)
    value = relay.abs(centered(node, 0))
    source, target = node.quantization().scale, node.out_quantization().scale
    if source != target:
        return requantized(node, value, float(np.float32(source) / np.float32(target)))
    low, high = out_range(node)
    return stored(value, node.out_quantization().zero_point, low, high, "int16")


@converter("RSQRT")
def rsqrt(node: NodeView) -> Any:
    """1 / sqrt(x)."""
    if node.is_float:
        return elementwise(relay.rsqrt, node[0])
    if node.tensor(0).dtype == "int16":
        return _rsqrt16(node)
    return _from_table(node, tables.rsqrt_table)


def _rsqrt16(node: NodeView) -> Any:
    """1 / sqrt(x): LiteRT interpolates, and TensorFlow Lite Micro goes by Newton's steps."""
    if node.rounds_once:
        largest = np.float32(32767 * node.out_quantization().scale)
        return _interpolated(node, lambda x: np.where(x > 0, 1 / np.sqrt(x), largest))
    value = centered(node, 0)
    one = relay.clip(value, 1, 1)
    shift = relay.add(relay.qnn.op.rsqrt_shift(value), const(tables.RSQRT_BITS, "int32"))
    root = relay.qnn.op.rescale(one, relay.qnn.op.rsqrt_multiplier(value), shift)
    factor, exponent = tables.rsqrt_factor(node.quantization(), node.out_quantization())
    scaled = relay.qnn.op.rescale(
        root, const(factor, "int32"), const(exponent - tables.RSQRT_BITS, "int32")
    )
    low, high = out_range(node)
    found = relay.where(relay.greater(value, const(0, "int32")), scaled, const(high, "int32"))
    return stored(found, node.out_quantization().zero_point, low, high, "int16")


@converter("L2_NORMALIZATION")
def l2_normalization(node: NodeView) -> Any:
    """X / sqrt(sum of x ** 2) over the last axis."""
    if not node.is_float:
        node.need_dtype("int8")
        value = centered(node, 0)
        total = relay.sum(relay.multiply(value, value), axis=-1, keepdims=True)
        shift = relay.add(relay.qnn.op.rsqrt_shift(total), const(7, "int32"))
        scaled = relay.qnn.op.rescale(value, relay.qnn.op.rsqrt_multiplier(total), shift)
        return relay.cast(relay.clip(scaled, -128, 127), "int8")
    total = relay.sum(relay.multiply(node[0], node[0]), axis=-1, keepdims=True)
    norm = relay.maximum(relay.sqrt(total), const(1e-6, "float32"))
    return activated(relay.divide(node[0], norm), node.activation)
