"""SVDF: a rank decomposition of a layer over time, with its memory as input and output."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.floating import activated, float_weights
from slipway.frontends.tflite.quantized import out_range, plain_weights, stored
from slipway.relay.op_registry import const
from slipway.relay.ops.qnn.rescale import rescale_by


@converter("SVDF")
def svdf(node: NodeView) -> Any:
    """Inputs: data (N, I), weights (F, I), weights (F, M), bias, memory (N, F * M)."""
    rank = node.option("rank")
    batch = node.shape()[0]
    filters, memory = node.tensor(2).shape
    if rank < 1 or filters % rank:
        raise node.unsupported(f"its rank is {rank} for {filters} filters")
    state = relay.reshape(node[4], (batch, filters, memory))
    older = relay.strided_slice(state, [0, 0, 1], [batch, filters, memory])

    def remembered(newest: Any) -> Any:
        return relay.concatenate([older, relay.reshape(newest, (batch, filters, 1))], 2)

    if node.is_float:
        feature = array_constant(float_weights(node, 1), "float32")
        state = remembered(relay.nn.dense(node[0], feature))
        weighted = relay.multiply(state, array_constant(float_weights(node, 2), "float32"))
        out = relay.sum(relay.reshape(weighted, (batch, filters // rank, rank * memory)), axis=2)
        if node.has(3):
            out = relay.add(out, node[3])
        return [activated(out, node.activation), relay.reshape(state, node.shape(4))]
    node.need_dtype("int8")
    source, held = node.quantization(0), node.quantization(4)
    kind = node.tensor(4).dtype
    info = np.iinfo(kind)
    # TFLite forms both factors in float32.
    single = np.float32
    scales = [single(node.quantization(i).scale) for i in (0, 1, 2, 4)]
    first = float(scales[0] * scales[1] / scales[3])
    second = float(scales[3] * scales[2] / single(node.out_quantization().scale))
    weights = plain_weights(node, 1).T
    total = relay.qnn.op.dense_packed(node[0], array_constant(weights, "int8"))
    if source.zero_point:
        correction = -source.zero_point * weights.astype(np.int32).sum(axis=0)
        total = relay.add(total, array_constant(correction, "int32"))
    newest = relay.clip(rescale_by(total, first), info.min, info.max)
    if held.zero_point:
        newest = relay.add(newest, const(held.zero_point, "int32"))
    state = remembered(relay.cast(newest, kind))
    centered = relay.cast(state, "int32")
    if held.zero_point:
        centered = relay.subtract(centered, const(held.zero_point, "int32"))
    weighted = relay.multiply(centered, array_constant(node.constant(2), "int32"))
    out = relay.sum(relay.reshape(weighted, (batch, filters // rank, rank * memory)), axis=2)
    if node.has(3):
        out = relay.add(out, node[3])
    low, high = out_range(node)
    scaled = rescale_by(out, second)
    result = stored(scaled, node.out_quantization().zero_point, low, high, node.out().dtype)
    return [result, relay.reshape(state, node.shape(4))]
