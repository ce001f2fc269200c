"""FULLY_CONNECTED: float, hybrid, int8, uint8, int16 by int8, weights constant or not."""

from __future__ import annotations

from math import prod
from typing import Any

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.floating import activated, float_weights
from slipway.frontends.tflite.hybrid import is_hybrid, quantized_rows, scaled_sums
from slipway.frontends.tflite.quantized import (
    QUANTIZED,
    bias_of,
    centered,
    is_constant,
    plain_weights,
    product_scales,
    requantized,
    sum_dtype,
)
from slipway.relay.expr import Expr


@converter("FULLY_CONNECTED")
def fully_connected(node: NodeView) -> Any:
    """Weights are (units, depth) in the file; the data's axes before the last are flattened."""
    if node.option("weights_format"):
        raise node.unsupported("its weights are shuffled")
    if len(node.shape(1)) != 2:
        raise node.unsupported(f"its weights have the shape {node.shape(1)}, not two axes")
    units, depth = node.shape(1)
    size = prod(node.shape())
    if not depth or size % depth != 0:
        raise node.unsupported(f"its data {node.shape()} is no rows of {depth}")
    rows = node[0]
    if len(node.shape()) != 2 or node.shape()[1] != depth:
        rows = relay.reshape(rows, (size // depth, depth))
    out = _product(node, rows)
    shape = (*node.shape()[:-1], units) if node.option("keep_num_dims") else (size // depth, units)
    return out if shape == out.tensor_type.shape else relay.reshape(out, shape)


def _product(node: NodeView, rows: Expr) -> Any:
    bias: Any
    weights: Any
    if is_hybrid(node):
        held = quantized_rows(rows, symmetric=not node.option("asymmetric_quantize_inputs"))
        weights = array_constant(plain_weights(node, 1).T, "int8")
        total = relay.qnn.op.dense_packed(held.data, weights)
        return activated(scaled_sums(node, total, held, 1, 2), node.activation)
    if node.is_float:
        if is_constant(node[1]):
            weights = array_constant(float_weights(node, 1), "float32")
        else:
            weights = node[1]
        out = relay.nn.dense(rows, weights)
        if node.has(2):
            bias = (
                array_constant(float_weights(node, 2), "float32")
                if is_constant(node[2])
                else node[2]
            )
            out = relay.add(out, bias)
        return activated(out, node.activation)
    node.need_dtype(*QUANTIZED)
    out_dtype = sum_dtype(node, 2)
    if is_constant(node[1]):
        values = plain_weights(node, 1).T
        total = relay.qnn.op.dense_packed(
            rows, array_constant(values, values.dtype.name), out_dtype
        )
        bias = bias_of(node, 2, values, (0,))
    else:
        data = relay.reshape(centered(node, 0), rows.tensor_type.shape)
        total = relay.nn.dense(data, centered(node, 1), out_dtype=out_dtype)
        bias = node[2] if node.has(2) else None
    if bias is not None:
        total = relay.add(total, relay.cast(bias, out_dtype))
    return requantized(node, total, product_scales(node, 1), node.activation)
