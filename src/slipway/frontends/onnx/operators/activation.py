"""Activation functions; composites are written through smaller operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes, relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.product import element_count

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


@converter("Relu")
def relu(node: NodeView) -> Any:
    """max(x, 0)."""
    return relay.nn.relu(node.input(0))


@converter("LeakyRelu")
def leaky_relu(node: NodeView) -> Any:
    """X where positive, else alpha * x."""
    return relay.nn.leaky_relu(node.input(0), node.attr("alpha", 0.01))


@converter("PRelu")
def prelu(node: NodeView) -> Any:
    """X where not negative, else slope * x; the slope broadcasts."""
    x, slope = node.input(0), node.input(1)
    shape = slope.tensor_type.shape
    if node.opset < 7 and len(shape) == 1 and node.rank() > 1:
        slope = relay.reshape(slope, (-1,) + (1,) * (node.rank() - 2))
    return relay.where(relay.greater_equal(x, node.like(0)), x, relay.multiply(x, slope))


@converter("Clip")
def clip(node: NodeView) -> Any:
    """Bounds as attributes (before opset 11) or inputs."""
    x, dtype = node.input(0), node.type().dtype
    if node.opset < 11:
        low, high = (
            node.attr("min", -3.4028234663852886e38),
            node.attr("max", 3.4028234663852886e38),
        )
        return relay.clip(x, low, high)
    bounds = []
    for index, default in ((1, -np.inf), (2, np.inf)):
        given = node.optional(index)
        if given is not None and not isinstance(given, relay.Constant):
            break
        bounds.append(default if given is None else float(given.array.reshape(())))
    else:
        if not dtypes.is_float(dtype) or all(np.isfinite(bounds)) or not any(np.isfinite(bounds)):
            return relay.clip(x, *bounds) if any(np.isfinite(bounds)) else x
    if node.has(1):
        x = relay.maximum(x, node.input(1))
    return relay.minimum(x, node.input(2)) if node.has(2) else x


@converter("HardSigmoid")
def hard_sigmoid(node: NodeView) -> Any:
    """clip(alpha * x + beta, 0, 1)."""
    alpha, beta = node.attr("alpha", 0.2), node.attr("beta", 0.5)
    line = relay.add(relay.multiply(node.input(0), node.like(alpha)), node.like(beta))
    return relay.clip(line, 0, 1)


@converter("HardSwish")
def hard_swish(node: NodeView) -> Any:
    """X * clip(x / 6 + 0.5, 0, 1)."""
    x = node.input(0)
    gate = relay.clip(relay.add(relay.multiply(x, node.like(1 / 6)), node.like(0.5)), 0, 1)
    return relay.multiply(x, gate)


@converter("Elu", "Celu", "Selu")
def elu(node: NodeView) -> Any:
    """Exponential units: gamma * (x where positive, else alpha * (exp(x / scale) - 1))."""
    x, zero, one = node.input(0), node.like(0), node.like(1)
    alpha, gamma = node.attr("alpha", 1.0), 1.0
    inner = x
    if node.kind == "Celu":
        inner = relay.divide(x, node.like(alpha))
    if node.kind == "Selu":
        alpha, gamma = (
            node.attr("alpha", 1.67326319217681884765625),
            node.attr("gamma", 1.05070102214813232421875),
        )
    # The minimum keeps the unused side of the choice from overflowing.
    fall = relay.subtract(relay.exp(relay.minimum(inner, zero)), one)
    result = relay.add(relay.maximum(x, zero), relay.multiply(fall, node.like(alpha)))
    return result if gamma == 1.0 else relay.multiply(result, node.like(gamma))


@converter("ThresholdedRelu")
def thresholded_relu(node: NodeView) -> Any:
    """X where above alpha, else 0."""
    x = node.input(0)
    return relay.where(relay.greater(x, node.like(node.attr("alpha", 1.0))), x, node.like(0))


def _softplus(node: NodeView, x: Expr) -> Any:
    """log(1 + exp(x)) without overflow: max(x, 0) + log(1 + exp(-|x|))."""
    tail = relay.log(relay.add(relay.exp(relay.negative(relay.abs(x))), node.like(1)))
    return relay.add(relay.maximum(x, node.like(0)), tail)


@converter("Softplus")
def softplus(node: NodeView) -> Any:
    """log(1 + exp(x))."""
    return _softplus(node, node.input(0))


@converter("Mish")
def mish(node: NodeView) -> Any:
    """X * tanh(softplus(x))."""
    return relay.multiply(node.input(0), relay.tanh(_softplus(node, node.input(0))))


@converter("Softsign")
def softsign(node: NodeView) -> Any:
    """X / (1 + |x|)."""
    x = node.input(0)
    return relay.divide(x, relay.add(relay.abs(x), node.like(1)))


@converter("Swish")
def swish(node: NodeView) -> Any:
    """X * sigmoid(alpha * x)."""
    x = node.input(0)
    return relay.multiply(x, relay.sigmoid(relay.multiply(x, node.like(node.attr("alpha", 1.0)))))


@converter("Shrink")
def shrink(node: NodeView) -> Any:
    """X + bias below -lambda, x - bias above lambda, else 0."""
    x = node.input(0)
    edge, bias = node.attr("lambd", 0.5), node.attr("bias", 0.0)
    above = relay.where(
        relay.greater(x, node.like(edge)), relay.subtract(x, node.like(bias)), node.like(0)
    )
    return relay.where(relay.less(x, node.like(-edge)), relay.add(x, node.like(bias)), above)


@converter("Gelu")
def gelu(node: NodeView) -> Any:
    """X * Phi(x), by erf or by the tanh approximation."""
    return gelu_of(node, node.input(0), node.attr("approximate", "none") == "tanh")


def gelu_of(node: NodeView, x: Any, by_tanh: bool) -> Any:
    """X * Phi(x), for converters that have their own inputs."""
    if by_tanh:
        cube = relay.multiply(relay.multiply(x, x), x)
        inner = relay.add(x, relay.multiply(cube, node.like(0.044715)))
        phi = relay.tanh(relay.multiply(inner, node.like(np.sqrt(2 / np.pi))))
    else:
        phi = relay.erf(relay.multiply(x, node.like(np.sqrt(0.5))))
    return relay.multiply(relay.multiply(x, node.like(0.5)), relay.add(phi, node.like(1)))


@converter("Softmax", "LogSoftmax", "Hardmax")
def softmax(node: NodeView) -> Any:
    """Along one axis; before opset 13, along all axes from `axis` on, flattened."""
    x, shape = node.input(0), node.type().shape
    axis = node.attr("axis", -1 if node.opset >= 13 else 1)
    flat = node.opset < 13 and axis % max(len(shape), 1) != len(shape) - 1
    if flat:
        rows, columns = shape[: axis % len(shape)], shape[axis % len(shape) :]
        x, axis = (
            relay.reshape(x, (element_count(rows), element_count(columns)), allowzero=True),
            -1,
        )
    if 0 in shape:
        return x if not flat else relay.reshape(x, shape, allowzero=True)
    if node.kind == "Hardmax":
        depth = x.tensor_type.shape[axis]
        best = relay.argmax(x, axis, keepdims=True, dtype="int64")
        after = [1] * (x.tensor_type.rank - 1 - axis % x.tensor_type.rank)
        positions = relay.reshape(relay.arange(0, depth, 1, "int64"), (-1, *after))
        result = relay.cast(relay.equal(positions, best), node.type().dtype)
    else:
        result = (relay.nn.softmax if node.kind == "Softmax" else relay.nn.log_softmax)(x, axis)
    return relay.reshape(result, shape) if flat else result
