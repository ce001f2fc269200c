"""Normalisations with the statistics of training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.torch.converters import NodeView, cast, converter, like
from slipway.relay.expr import Expr
from slipway.relay.op_registry import const


def _weights(node: NodeView, width: int, dtype: str) -> tuple[Expr, Expr]:
    """Return scale and shift; torch leaves either out."""
    scale, shift = node.optional("weight"), node.optional("bias")
    return (
        const(np.ones(width, dtype)) if scale is None else cast(scale, dtype),
        const(np.zeros(width, dtype)) if shift is None else cast(shift, dtype),
    )


@converter(
    "_native_batch_norm_legit_no_training", "batch_norm", "native_batch_norm",
    "_native_batch_norm_legit", "_batch_norm_with_update", "cudnn_batch_norm",
)  # fmt: skip
def batch_norm(node: NodeView) -> Any:
    """With stored statistics; with those of the batch it is an instance norm over the batch."""
    x = node.input("input")
    shape = x.tensor_type.shape
    training = node.arg("training", node.arg("train", False))
    mean, var = node.optional("running_mean"), node.optional("running_var")
    kind = "float32" if x.tensor_type.dtype == "float16" else x.tensor_type.dtype
    scale, shift = _weights(node, shape[1], kind)
    if mean is None and var is None:  # nothing is learnt from the batch: weights are standardised
        return [
            node.narrow(_by_own(cast(x, kind), scale, shift, float(node.arg("eps", 1e-5)))),
            *[None] * (len(node.outputs) - 1),
        ]
    if training or mean is None or var is None:
        raise node.unsupported("it is in training mode: call module.eval() before the export")
    result = relay.nn.batch_norm(
        cast(x, kind), scale, shift, cast(mean, kind), cast(var, kind), axis=1,
        epsilon=float(node.arg("eps", 1e-5)),
    )[0]  # fmt: skip
    return [node.narrow(result), *[None] * (len(node.outputs) - 1)]


def _by_own(x: Expr, scale: Expr, shift: Expr, epsilon: float) -> Expr:
    """Return each channel of all samples normalised by its own mean and variance."""
    shape = x.tensor_type.shape
    order = (1, 0, *range(2, len(shape)))
    wide = relay.reshape(relay.transpose(x, order), (1, shape[1], -1))
    made = relay.reshape(
        relay.nn.instance_norm(wide, scale, shift, 1, epsilon), [shape[k] for k in order]
    )
    return relay.transpose(made, order)


@converter("layer_norm", "native_layer_norm")
def layer_norm(node: NodeView) -> Any:
    """Moments over the last axes."""
    x = node.input("input")
    shape = x.tensor_type.shape
    own = node.ints("normalized_shape")
    outer, inner = shape[: len(shape) - len(own)], math.prod(own)
    kind = "float32" if x.tensor_type.dtype == "float16" else x.tensor_type.dtype
    flat = cast(x, kind)
    weights = _weights(node, inner, kind)
    if len(own) > 1:
        flat = relay.reshape(flat, (*outer, inner))
        weights = (relay.reshape(weights[0], (inner,)), relay.reshape(weights[1], (inner,)))
    result: relay.Expr = relay.nn.layer_norm(
        flat, *weights, axis=-1, epsilon=float(node.arg("eps", 1e-5))
    )
    result = node.narrow(relay.reshape(result, shape) if len(own) > 1 else result)
    return [result, None, None] if node.kind == "native_layer_norm" else result


@converter("group_norm", "native_group_norm")
def group_norm(node: NodeView) -> Any:
    """Groups of channels."""
    x = node.input("input")
    groups = int(node.arg("num_groups") or node.arg("group"))
    scale, shift = _weights(node, x.tensor_type.shape[1], x.tensor_type.dtype)
    epsilon = float(node.arg("eps", 1e-5))
    result = relay.nn.group_norm(x, scale, shift, groups, 1, epsilon)
    return [result, None, None] if node.kind == "native_group_norm" else result


@converter("instance_norm")
def instance_norm(node: NodeView) -> Any:
    """Each channel of each sample by itself."""
    x = node.input("input")
    if not node.arg("use_input_stats", True):
        return batch_norm(node)[0]
    scale, shift = _weights(node, x.tensor_type.shape[1], x.tensor_type.dtype)
    return relay.nn.instance_norm(x, scale, shift, 1, float(node.arg("eps", 1e-5)))


@converter("rms_norm", "_fused_rms_norm")
def rms_norm(node: NodeView) -> Any:
    """The data over its root mean square, times the weight."""
    x = node.input("input")
    axes = tuple(range(-len(node.ints("normalized_shape")), 0))
    epsilon = node.arg("eps")
    epsilon = float(np.finfo(x.tensor_type.dtype).eps) if epsilon is None else float(epsilon)
    square = relay.mean(relay.multiply(x, x), axes, keepdims=True)
    inverse = relay.rsqrt(relay.add(square, like(epsilon, x)))
    result = relay.multiply(x, inverse)
    weight = node.optional("weight")
    result = result if weight is None else relay.multiply(result, weight)
    return [result, None] if node.kind == "_fused_rms_norm" else result


@converter("linalg_vector_norm")
def vector_norm(node: NodeView) -> Any:
    """The p-norm over axes."""
    x, order = cast(node.input(), node.out.dtype), node.arg("ord", 2)
    return _length(x, order, node.axes(), bool(node.arg("keepdim", False)))


def _length(x: Any, order: float, axes: tuple[int, ...], keep: bool = False) -> Any:
    if order == 2:
        return relay.sqrt(relay.sum(relay.multiply(x, x), axes, keep))
    size = relay.abs(x)
    if order == 1:
        return relay.sum(size, axes, keep)
    if order in (math.inf, -math.inf):
        return (relay.max if order > 0 else relay.min)(size, axes, keep)
    if order == 0:
        return relay.sum(cast(relay.not_equal(x, like(0, x)), x.tensor_type.dtype), axes, keep)
    total = relay.sum(relay.power(size, like(order, x)), axes, keep)
    return relay.power(total, like(1 / order, x))


@converter("dist")
def distance(node: NodeView) -> Any:
    """The p-norm of all of a difference."""
    apart = relay.subtract(*node.pair(node.out.dtype))
    return _length(apart, float(node.arg("p", 2.0)), tuple(range(apart.tensor_type.rank)))


@converter("_cdist_forward")
def cdist(node: NodeView) -> Any:
    """Distances between the rows of two tensors."""
    one = relay.expand_dims(node.input("x1"), node.rank("x1") - 1)
    two = relay.expand_dims(node.input("x2"), node.rank("x2") - 2)
    return _length(relay.subtract(one, two), float(node.arg("p", 2.0)), (-1,))
