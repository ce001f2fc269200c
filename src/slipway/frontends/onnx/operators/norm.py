"""Normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.relay.op_registry import const


@converter("BatchNormalization")
def batch_norm(node: NodeView) -> Any:
    """With the statistics of training; the extra outputs of training mode are not served."""
    if node.attr("training_mode", 0):
        return _training_batch_norm(node)
    if len([o for o in node.outputs if o]) > 1:
        raise node.unsupported("it is in training mode")
    if node.attr("spatial", 1) == 0:
        raise node.unsupported("spatial=0 (statistics per element)")
    x = node.input(0)
    dtype = node.type().dtype
    scale, bias, mean, var = (
        relay.cast(node.input(i), dtype) if node.type(i).dtype != dtype else node.input(i)
        for i in range(1, 5)
    )
    epsilon = node.attr("epsilon", 1e-5)
    return relay.nn.batch_norm(x, scale, bias, mean, var, axis=1, epsilon=epsilon)[0]


def _training_batch_norm(node: NodeView) -> Any:
    """Statistics of this batch; the running ones are updated beside."""
    x, scale, bias, mean, var = (node.input(i) for i in range(5))
    axes = (0, *range(2, node.rank()))
    momentum = node.attr("momentum", 0.9)
    here = relay.mean(x, axes)
    spread = relay.variance(x, axes)
    normal = relay.nn.batch_norm(x, scale, bias, here, spread, epsilon=node.attr("epsilon", 1e-5))

    def running(old: Any, new: Any) -> Any:
        dtype = old.tensor_type.dtype
        kept = relay.multiply(old, const(momentum, dtype))
        new = new if new.tensor_type.dtype == dtype else relay.cast(new, dtype)
        return relay.add(kept, relay.multiply(new, const(1 - momentum, dtype)))

    return [normal[0], running(mean, here), running(var, spread)][: len(node.outputs)]


@converter("LayerNormalization")
def layer_norm(node: NodeView) -> Any:
    """Moments over all axes from `axis` on."""
    x, scale, shape = node.input(0), node.input(1), node.type().shape
    axis = node.attr("axis", -1) % len(shape)
    epsilon = node.attr("epsilon", 1e-5)
    kind = node.type().dtype
    wanted = [o for o in node.outputs if o]
    simple = len(wanted) == 1 and scale.tensor_type.shape == shape[axis:]
    if simple and (not node.has(2) or node.type(2).shape == shape[axis:]):
        inner = int(np.prod(shape[axis:]))
        flat = axis != len(shape) - 1
        if flat:
            x = relay.reshape(x, (*shape[:axis], inner))
            scale = relay.reshape(scale, (inner,))
        bias = node.input(2) if node.has(2) else const(np.zeros(inner, kind))
        if flat and node.has(2):
            bias = relay.reshape(bias, (inner,))
        result = relay.nn.layer_norm(x, scale, bias, axis=-1, epsilon=epsilon)
        return relay.reshape(result, shape) if flat else result
    axes = tuple(range(axis, len(shape)))
    mean = relay.mean(x, axes, keepdims=True)
    centred = relay.subtract(x, mean)
    var = relay.mean(relay.multiply(centred, centred), axes, keepdims=True)
    inverse = relay.rsqrt(relay.add(var, node.like(epsilon)))
    result = relay.multiply(relay.multiply(centred, inverse), scale)
    if node.has(2):
        result = relay.add(result, node.input(2))
    return [result, mean, inverse][: len(node.outputs)]


@converter("InstanceNormalization")
def instance_norm(node: NodeView) -> Any:
    """Each channel of each sample by itself."""
    epsilon = node.attr("epsilon", 1e-5)
    return relay.nn.instance_norm(node.input(0), node.input(1), node.input(2), 1, epsilon)


@converter("GroupNormalization")
def group_norm(node: NodeView) -> Any:
    """Groups of channels; before opset 21 scale and bias are per group."""
    groups = int(node.attr("num_groups"))
    scale, bias = node.input(1), node.input(2)
    channels = node.type().shape[1]
    if node.opset < 21 and scale.tensor_type.shape == (groups,) and groups != channels:
        scale = relay.repeat(scale, channels // groups, 0)
        bias = relay.repeat(bias, channels // groups, 0)
    return relay.nn.group_norm(node.input(0), scale, bias, groups, 1, node.attr("epsilon", 1e-5))


@converter("RMSNormalization", "SimplifiedLayerNormalization")
def rms_norm(node: NodeView) -> Any:
    """The data over its root mean square, times scale."""
    x = node.input(0)
    axes = tuple(range(node.attr("axis", -1) % node.rank(), node.rank()))
    square = relay.mean(relay.multiply(x, x), axes, keepdims=True)
    inverse = relay.rsqrt(relay.add(square, node.like(node.attr("epsilon", 1e-5))))
    result = relay.multiply(relay.multiply(x, inverse), node.input(1))
    return [result, inverse][: len(node.outputs)]  # the second of onnxruntime's own operator


@converter("LRN")
def lrn(node: NodeView) -> Any:
    """Local response normalisation."""
    return relay.nn.lrn(
        node.input(0), node.attr("size"), 1, node.attr("bias", 1.0), node.attr("alpha", 1e-4),
        node.attr("beta", 0.75),
    )  # fmt: skip


@converter("LpNormalization")
def lp_norm(node: NodeView) -> Any:
    """X over its p-norm along an axis; 0 where the norm is 0."""
    x, axis = node.input(0), node.attr("axis", -1)
    if node.attr("p", 2) == 1:
        norm = relay.sum(relay.abs(x), axis, keepdims=True)
    else:
        norm = relay.sqrt(relay.sum(relay.multiply(x, x), axis, keepdims=True))
    zero = relay.equal(norm, node.like(0))
    return relay.divide(x, relay.where(zero, node.like(1), norm))


@converter("MeanVarianceNormalization")
def mean_variance_norm(node: NodeView) -> Any:
    """(x - mean) / (standard deviation + 1e-9); axes that the data has not are left out."""
    x, given = node.input(0), tuple(node.attr("axes", (0, 2, 3)))
    axes = tuple(axis for axis in given if axis < node.rank())
    if not axes:
        raise node.unsupported(f"its axes {given} are none of {node.type()}")
    centred = relay.subtract(x, relay.mean(x, axes, keepdims=True))
    spread = relay.mean(relay.multiply(centred, centred), axes, keepdims=True)
    return relay.divide(centred, relay.add(relay.sqrt(spread), node.like(1e-9)))
