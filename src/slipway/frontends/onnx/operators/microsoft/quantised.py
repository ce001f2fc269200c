"""Operators on quantised values that onnxruntime's quantiser writes.

A quantised operator without an integer form of its own is computed on real numbers and quantised
again, which is how its kernels are defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.microsoft.channels import channels_first, channels_last
from slipway.frontends.onnx.operators.pool import average_of_windows
from slipway.frontends.onnx.operators.quant import qlinear_conv as standard_conv
from slipway.frontends.onnx.operators.quant import quantized, scalar_of
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


def _real(node: NodeView, first: int) -> Any:
    """Inputs first, first + 1, first + 2 (values, scale, zero point) as real numbers."""
    whole = relay.cast(node.input(first), "int32")
    if node.has(first + 2):
        whole = relay.subtract(whole, relay.cast(scalar_of(node.input(first + 2)), "int32"))
    return relay.multiply(relay.cast(whole, "float32"), scalar_of(node.input(first + 1)))


def _requantized(node: NodeView, value: Expr, scale: int) -> Any:
    """Quantise with the scale at input `scale` and the zero point after it."""
    zero = scalar_of(node.input(scale + 1)) if node.has(scale + 1) else None
    dtype = zero.tensor_type.dtype if zero is not None else node.type().dtype
    return quantized(value, scalar_of(node.input(scale)), zero, dtype)


@converter("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul")
def binary(node: NodeView) -> Any:
    """Sums and products of quantised values."""
    step = relay.add if node.kind == "QLinearAdd" else relay.multiply
    return _requantized(node, step(_real(node, 0), _real(node, 3)), 6)


_UNARY: dict[str, Callable[[NodeView, Any], Any]] = {
    "QLinearSigmoid": lambda node, x: relay.sigmoid(x),
    "QLinearLeakyRelu": lambda node, x: relay.nn.leaky_relu(x, node.attr("alpha", 0.01)),
    "QLinearSoftmax": lambda node, x: relay.nn.softmax(x, node.attr("axis", -1)),
}


@converter(*(f"com.microsoft.{name}" for name in _UNARY))
def unary(node: NodeView) -> Any:
    """A function of quantised values."""
    return _requantized(node, _UNARY[node.kind](node, _real(node, 0)), 3)


@converter("com.microsoft.QLinearGlobalAveragePool", "com.microsoft.QLinearAveragePool")
def pool(node: NodeView) -> Any:
    """Means of quantised values, of all of an image or of windows."""
    x, last = _real(node, 0), bool(node.attr("channels_last", 0))
    rank = x.tensor_type.rank
    x = channels_first(x) if last else x
    if node.kind == "QLinearAveragePool":
        means = average_of_windows(node, x)
    else:
        means = relay.mean(x, tuple(range(2, rank)), keepdims=True)
    return _requantized(node, channels_last(means) if last else means, 3)


@converter("com.microsoft.QLinearWhere")
def where(node: NodeView) -> Any:
    """Quantised values of one of two scales."""
    chosen = relay.where(node.input(0), _real(node, 1), _real(node, 4))
    return _requantized(node, chosen, 7)


@converter("com.microsoft.QLinearConcat")
def concat(node: NodeView) -> Any:
    """Quantised values of several scales, joined."""
    parts = [_real(node, index) for index in range(2, len(node.inputs), 3)]
    zero = scalar_of(node.input(1))
    joined = relay.concatenate(parts, node.attr("axis", 1))
    return quantized(joined, scalar_of(node.input(0)), zero, zero.tensor_type.dtype)


@converter("com.microsoft.QGemm")
def gemm(node: NodeView) -> Any:
    """The product of quantised matrices and a bias; quantised again if an output scale is given."""

    def centred(first: int, axis: int | None) -> Any:
        whole, zero = relay.cast(node.input(first), "int32"), node.optional(first + 2)
        if zero is None:
            return whole
        zero = relay.cast(scalar_of(zero), "int32")
        if zero.tensor_type.rank == 1 and axis == 0:
            zero = relay.expand_dims(zero, 1)
        return relay.subtract(whole, zero)

    transposed = bool(node.attr("transB", 0))
    a, b = centred(0, None), centred(3, 0 if transposed else 1)
    a = relay.transpose(a) if node.attr("transA", 0) else a
    b = b if transposed else relay.transpose(b)
    total = relay.nn.dense(a, b)
    if node.has(6):
        total = relay.add(total, node.input(6))
    alpha = const(np.float32(node.attr("alpha", 1.0)))
    factor = relay.multiply(
        relay.multiply(scalar_of(node.input(1)), scalar_of(node.input(4))), alpha
    )
    value = relay.multiply(relay.cast(total, "float32"), factor)
    return _requantized(node, value, 7) if node.has(7) else value


@converter("com.microsoft.QLinearConv")
def qlinear_conv(node: NodeView) -> Any:
    """The standard's QLinearConv, whose data may have its channels last."""
    if not node.attr("channels_last", 0):
        return standard_conv(node)
    node.inputs[0] = channels_first(node.input(0))
    return channels_last(standard_conv(node))


@converter("com.microsoft.QLinearReduceMean")
def reduce_mean(node: NodeView) -> Any:
    """Means of quantised values along axes."""
    axes = node.attr("axes") or tuple(range(node.rank()))
    means = relay.mean(_real(node, 0), axes, keepdims=bool(node.attr("keepdims", 1)))
    return _requantized(node, means, 3)
