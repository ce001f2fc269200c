"""Products of attention over queries, keys and values that are packed in one tensor."""

from __future__ import annotations

import math
from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter


def _heads(x: Any, heads: int, parts: int) -> list[Any]:
    """Return the `parts` of (steps, batch, heads * parts * width), each for all heads."""
    steps, batch, total = x.tensor_type.shape
    width = total // (heads * parts)
    split = relay.reshape(x, (steps, batch * heads, parts, width))
    moved = relay.transpose(split, [2, 1, 0, 3])
    return [relay.squeeze(p, [0]) for p in relay.split(moved, parts, 0)] if parts > 1 else [
        relay.reshape(moved, (batch * heads, steps, width))
    ]  # fmt: skip


def _joined(x: Any, batch: int) -> Any:
    """Return (batch * heads, steps, width) as (steps, batch, heads * width)."""
    count, steps, width = x.tensor_type.shape
    return relay.reshape(relay.transpose(x, [1, 0, 2]), (steps, batch, count // batch * width))


def _scores(node: NodeView, queries: Any, keys: Any) -> Any:
    scale = node.const(1.0 / math.sqrt(queries.tensor_type.shape[2]))
    return relay.nn.batch_matmul(relay.multiply(queries, scale), keys)


@converter("_contrib_interleaved_matmul_selfatt_qk")
def _self_scores(node: NodeView) -> Any:
    queries, keys, _ = _heads(node.data, node.integer("heads"), 3)
    return _scores(node, queries, keys)


@converter("_contrib_interleaved_matmul_selfatt_valatt")
def _self_values(node: NodeView) -> Any:
    values = _heads(node.data, node.integer("heads"), 3)[2]
    made = relay.nn.batch_matmul(node[1], values, transpose_b=False)
    return _joined(made, node.shape[1])


@converter("_contrib_interleaved_matmul_encdec_qk")
def _cross_scores(node: NodeView) -> Any:
    (queries,) = _heads(node.data, node.integer("heads"), 1)
    keys, _ = _heads(node[1], node.integer("heads"), 2)
    return _scores(node, queries, keys)


@converter("_contrib_interleaved_matmul_encdec_valatt")
def _cross_values(node: NodeView) -> Any:
    values = _heads(node.data, node.integer("heads"), 2)[1]
    made = relay.nn.batch_matmul(node[1], values, transpose_b=False)
    return _joined(made, node.shape[1])
