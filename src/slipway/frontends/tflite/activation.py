"""SOFTMAX, LOG_SOFTMAX, LOGISTIC, TANH, the RELU family, and other activations."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, converter
from slipway.relay.ops.qnn_softmax import softmax as integer_softmax


@converter("SOFTMAX")
def softmax(node: NodeView) -> Any:
    """Over the last axis."""
    beta = node.option("beta")
    if node.is_float:
        scaled = node[0] if beta == 1.0 else relay.multiply(node[0], relay.const(beta, "float32"))
        return relay.nn.softmax(scaled, axis=-1)
    node.need_dtype("int8", "uint8")
    return integer_softmax(node[0], node.quantization().scale, beta, node.out().dtype)
