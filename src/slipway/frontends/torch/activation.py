"""Activation functions; composites are written through smaller operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.torch.converters import NodeView, cast, converter, like, number
from slipway.relay.expr import Expr


@converter("relu")
def relu(node: NodeView) -> Any:
    """max(x, 0)."""
    return relay.nn.relu(node.input())


@converter("relu6")
def relu6(node: NodeView) -> Any:
    """X between 0 and 6."""
    return relay.clip(node.input(), 0, 6)


@converter("leaky_relu")
def leaky_relu(node: NodeView) -> Any:
    """X where positive, else slope * x."""
    return relay.nn.leaky_relu(node.input(), float(node.arg("negative_slope", 0.01)))


@converter("prelu", "_prelu_kernel")
def prelu(node: NodeView) -> Any:
    """X where positive, else weight * x, with one weight or one per channel (axis 1)."""
    x, weight = node.input(), node.input("weight")
    if node.kind == "prelu" and node.rank("weight") == 1 and node.rank() > 1:
        weight = relay.reshape(weight, (1, -1) + (1,) * (node.rank() - 2))
    return relay.where(relay.greater(x, like(0, x)), x, relay.multiply(x, weight))


@converter("elu", "celu", "selu")
def elu(node: NodeView) -> Any:
    """Scale * (x where positive, else alpha * (exp(x * input_scale) - 1))."""
    x = node.input()
    alpha, scale = float(node.arg("alpha", 1.0)), float(node.arg("scale", 1.0))
    inner = float(node.arg("input_scale", 1.0))
    if node.kind == "celu":
        inner = 1.0 / alpha
    if node.kind == "selu":
        alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    # The minimum keeps the unused side of the choice from overflowing.
    bound = relay.minimum(x, like(0, x))
    bound = bound if inner == 1.0 else relay.multiply(bound, like(inner, x))
    fall = relay.multiply(relay.subtract(relay.exp(bound), like(1, x)), like(alpha, x))
    total = relay.add(relay.maximum(x, like(0, x)), fall)
    return total if scale == 1.0 else relay.multiply(total, like(scale, x))


@converter("gelu")
def gelu(node: NodeView) -> Any:
    """X * Phi(x), by erf or by the tanh approximation."""
    x = node.input()
    if node.arg("approximate", "none") == "tanh":
        cube = relay.multiply(relay.multiply(x, x), x)
        inner = relay.add(x, relay.multiply(cube, like(0.044715, x)))
        phi = relay.tanh(relay.multiply(inner, like(np.sqrt(2 / np.pi), x)))
    else:
        phi = relay.erf(relay.multiply(x, like(np.sqrt(0.5), x)))
    return relay.multiply(relay.multiply(x, like(0.5, x)), relay.add(phi, like(1, x)))


@converter("silu")
def silu(node: NodeView) -> Any:
    """X * sigmoid(x)."""
    return relay.multiply(node.input(), relay.sigmoid(node.input()))


def _gate(x: Expr) -> Any:
    """clip(x + 3, 0, 6) / 6."""
    line = relay.clip(relay.add(x, like(3, x)), 0, 6)
    return relay.multiply(line, like(1 / 6, x))


@converter("hardsigmoid")
def hardsigmoid(node: NodeView) -> Any:
    """clip(x + 3, 0, 6) / 6."""
    return _gate(node.input())


@converter("hardswish")
def hardswish(node: NodeView) -> Any:
    """X * hardsigmoid(x)."""
    return relay.multiply(node.input(), _gate(node.input()))


def softplus_of(x: Expr) -> Any:
    """log(1 + exp(x)) without overflow: max(x, 0) + log(1 + exp(-|x|))."""
    tail = relay.log(relay.add(relay.exp(relay.negative(relay.abs(x))), like(1, x)))
    return relay.add(relay.maximum(x, like(0, x)), tail)


@converter("softplus")
def softplus(node: NodeView) -> Any:
    """log(1 + exp(beta x)) / beta; x itself beyond the threshold."""
    x = node.input()
    beta, threshold = float(node.arg("beta", 1)), float(node.arg("threshold", 20))
    scaled = x if beta == 1 else relay.multiply(x, like(beta, x))
    result = softplus_of(scaled)
    result = result if beta == 1 else relay.multiply(result, like(1 / beta, x))
    return relay.where(relay.greater(scaled, like(threshold, x)), x, result)


@converter("mish")
def mish(node: NodeView) -> Any:
    """X * tanh(softplus(x))."""
    return relay.multiply(node.input(), relay.tanh(softplus_of(node.input())))


@converter("log_sigmoid")
def log_sigmoid(node: NodeView) -> Any:
    """log(sigmoid(x)) = -softplus(-x)."""
    return relay.negative(softplus_of(relay.negative(node.input())))


@converter("glu")
def glu(node: NodeView) -> Any:
    """The first half times the sigmoid of the second."""
    first, second = relay.split(node.input(), 2, node.axis(default=-1))
    return relay.multiply(first, relay.sigmoid(second))


@converter("softmax", "_softmax", "log_softmax", "_log_softmax", "_safe_softmax")
def softmax(node: NodeView) -> Any:
    """Along one axis; a row of minus infinities is zero where `_safe_softmax` asks for it."""
    x = cast(node.input(), node.out.dtype)
    function = relay.nn.log_softmax if "log" in node.kind else relay.nn.softmax
    axis = node.axis()
    if x.tensor_type.dtype == "float16":
        return cast(function(relay.cast(x, "float32"), axis), "float16")
    result = function(x, axis)
    if node.kind != "_safe_softmax":
        return result
    top = relay.max(x, axis, keepdims=True)
    empty = relay.equal(top, number(-np.inf, x.tensor_type.dtype))
    return relay.where(empty, like(0, x), result)
