"""Layers that onnxruntime's optimiser fuses: activations and normalisations with what is before."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.activation import gelu_of
from slipway.frontends.onnx.operators.microsoft.channels import channels_first, channels_last
from slipway.frontends.onnx.operators.norm import rms_norm
from slipway.frontends.product import element_count
from slipway.relay.op_registry import const


@converter("com.microsoft.Gelu", "com.microsoft.FastGelu", "com.microsoft.BiasGelu")
def gelu(node: NodeView) -> Any:
    """Gelu after an optional bias; FastGelu by the tanh approximation."""
    x = relay.add(node.input(0), node.input(1)) if node.has(1) else node.input(0)
    return gelu_of(node, x, by_tanh=node.kind == "FastGelu")


@converter("com.microsoft.SkipLayerNormalization")
def skip_layer_norm(node: NodeView) -> Any:
    """layer_norm(x + skip + bias), as fused transformers have it."""
    total = relay.add(node.input(0), node.input(1))
    if node.has(4):
        total = relay.add(total, node.input(4))
    width = total.tensor_type.shape[-1]
    beta = node.optional(3)
    beta = const(np.zeros(width, np.float32)) if beta is None else beta
    result = relay.nn.layer_norm(total, node.input(2), beta, -1, node.attr("epsilon", 1e-12))
    return _with_sum(node, result, total)


@converter("com.microsoft.SkipSimplifiedLayerNormalization")
def skip_rms_norm(node: NodeView) -> Any:
    """rms_norm(x + skip + bias)."""
    total = relay.add(node.input(0), node.input(1))
    if node.has(3):
        total = relay.add(total, node.input(3))
    node.inputs = [total, node.input(2)]
    return _with_sum(node, rms_norm(node)[0], total)


def _with_sum(node: NodeView, result: Any, total: Any) -> Any:
    if any(node.outputs[1:3]):
        raise node.unsupported("its mean or variance is asked for")
    return [result, result, result, total][: len(node.outputs)]


@converter("com.microsoft.QuickGelu")
def quick_gelu(node: NodeView) -> Any:
    """X * sigmoid(alpha * x)."""
    return _swish(node.input(0), node.like(node.attr("alpha", 1.702)))


def _swish(x: Any, alpha: Any) -> Any:
    return relay.multiply(x, relay.sigmoid(relay.multiply(x, alpha)))


@converter("com.microsoft.BiasAdd")
def bias_add(node: NodeView) -> Any:
    """The sum of data, a bias for each column, and what went around the layer."""
    return relay.add(relay.add(node.input(0), node.input(1)), node.input(2))


@converter("com.microsoft.BiasSplitGelu")
def gated(node: NodeView) -> Any:
    """One half of the columns times the gelu of the other, after a bias."""
    plain, gate = relay.split(relay.add(node.input(0), node.input(1)), 2, axis=-1)
    node.kind, node.inputs = "Gelu", [gate]
    return relay.multiply(plain, gelu(node))


@converter("com.microsoft.BiasSoftmax")
def bias_softmax(node: NodeView) -> Any:
    """softmax(x + bias) over all axes from `axis` on, flattened."""
    x, bias, axis = node.input(0), node.input(1), node.attr("axis", 1) % node.rank()
    shape, own = x.tensor_type.shape, bias.tensor_type.shape
    if not node.attr("is_inner_broadcast", 1) and len(own) < len(shape):
        between = (1,) * (len(shape) - len(own))
        bias = relay.reshape(bias, (*own[:-1], *between, own[-1]))
    total = relay.add(x, bias)
    if axis == len(shape) - 1:
        return relay.nn.softmax(total, -1)
    flat = relay.reshape(total, (*shape[:axis], element_count(shape[axis:])))
    return relay.reshape(relay.nn.softmax(flat, -1), shape)


@converter("com.microsoft.GroupNorm", "com.microsoft.SkipGroupNorm")
def group_norm(node: NodeView) -> Any:
    """Group norm of images (after sums, which are a second result), and swish after it if asked."""
    total, shape = node.input(0), node.type().shape
    last = bool(node.attr("channels_last", 1))
    for index in (3, 4):
        if node.kind == "SkipGroupNorm" and node.has(index):
            term, rank = node.input(index), node.rank(index)
            if rank < len(shape):  # (channels,) or (batch, channels)
                ones = (1,) * (len(shape) - 2)
                lead = shape[0] if rank == 2 else 1
                channels = term.tensor_type.shape[-1]
                view = (lead, *ones, channels) if last else (lead, channels, *ones)
                term = relay.reshape(term, view)
            total = relay.add(total, term)
    data, epsilon = channels_first(total) if last else total, node.attr("epsilon", 1e-5)
    groups = int(node.attr("groups"))
    result = relay.nn.group_norm(data, node.input(1), node.input(2), groups, 1, epsilon)
    result = channels_last(result) if last else result
    result = _swish(result, node.like(1)) if node.attr("activation", 0) else result
    return [result, total][: len(node.outputs)]
