"""Normalisation: over batches, layers, groups, images, and along channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter, shape_of


@converter("BatchNorm", "BatchNorm_v1", "CuDNNBatchNorm", "_contrib_SyncBatchNorm",
           "_npx_batch_norm")  # fmt: skip
def _batch_norm(node: NodeView) -> Any:
    data, gamma, beta, mean, variance = node.inputs
    if node.flag("fix_gamma", True):
        gamma = relay.const(np.ones(shape_of(gamma), str(gamma.tensor_type.dtype)))
    axis = node.axis("axis", 1)
    made = relay.nn.batch_norm(
        data, gamma, beta, mean, variance, axis=axis, epsilon=node.real("eps", 1e-3)
    )
    return [made[0], mean, variance]


@converter("LayerNorm", "_npx_layer_norm")
def _layer_norm(node: NodeView) -> Any:
    data, gamma, beta = node.inputs[:3]
    axis = node.axis("axis", -1)
    return relay.nn.layer_norm(data, gamma, beta, axis=axis, epsilon=node.real("eps", 1e-5))


@converter("InstanceNorm")
def _instance_norm(node: NodeView) -> Any:
    data, gamma, beta = node.inputs[:3]
    return relay.nn.instance_norm(data, gamma, beta, axis=1, epsilon=node.real("eps", 1e-3))


@converter("GroupNorm")
def _group_norm(node: NodeView) -> Any:
    data, gamma, beta = node.inputs[:3]
    groups, epsilon = node.integer("num_groups", 1), node.real("eps", 1e-5)
    if shape_of(gamma)[0] == node.shape[1]:
        return relay.nn.group_norm(data, gamma, beta, groups, axis=1, epsilon=epsilon)
    each = node.shape[1] // groups  # before 1.7: one factor for each group
    gammas, betas = relay.repeat(gamma, each, 0), relay.repeat(beta, each, 0)
    return relay.nn.group_norm(data, gammas, betas, groups, axis=1, epsilon=epsilon)


@converter("LRN")
def _lrn(node: NodeView) -> Any:
    return relay.nn.lrn(
        node.data, size=node.integer("nsize"), axis=1, bias=node.real("knorm", 2.0),
        alpha=node.real("alpha", 1e-4), beta=node.real("beta", 0.75),
    )  # fmt: skip


@converter("L2Normalization")
def _l2(node: NodeView) -> Any:
    """Divide by the root of the sum of squares plus epsilon."""
    rank = len(node.shape)
    axes = {
        "instance": list(range(1, rank)), "channel": [1], "spatial": list(range(2, rank)),
    }[node.text("mode", "instance")]  # fmt: skip
    squares = relay.sum(relay.multiply(node.data, node.data), axis=axes, keepdims=True)
    return relay.divide(
        node.data, relay.sqrt(relay.add(squares, node.const(node.real("eps", 1e-10))))
    )


@converter("moments")
def _moments(node: NodeView) -> Any:
    axes, kept = node.ints("axes") or None, node.flag("keepdims")
    return [relay.mean(node.data, axes, kept), relay.variance(node.data, axes, kept)]


@converter("norm", "_npi_norm")
def _norm(node: NodeView) -> Any:
    axes, kept = node.ints("axis") or None, node.flag("keepdims")
    if node.integer("ord", 2) == 1:
        made = relay.sum(relay.abs(node.data), axis=axes, keepdims=kept)
    else:
        made = relay.sqrt(relay.sum(relay.multiply(node.data, node.data), axes, kept))
    whole = axes is None and not kept
    return relay.reshape(made, (1,)) if whole else made
