"""Matrix products: Gemm, MatMul, Einsum-free forms."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.product import product_of


@converter("Gemm")
def gemm(node: NodeView) -> Any:
    """Alpha * A' @ B' + beta * C, through nn.dense, which wants B transposed."""
    a, b = node.input(0), node.input(1)
    alpha, beta = node.attr("alpha", 1.0), node.attr("beta", 1.0)
    if node.attr("transA", 0):
        a = relay.transpose(a)
    if not node.attr("transB", 0):
        b = relay.transpose(b)
    product = node.narrow(relay.nn.dense(a, b, out_dtype=node.wide()))
    if alpha != 1.0:
        product = relay.multiply(product, node.like(alpha))
    bias = node.optional(2)
    if bias is None or beta == 0.0:
        return product
    if beta != 1.0:
        bias = relay.multiply(bias, node.like(beta))
    shape = bias.tensor_type.shape
    units = product.tensor_type.shape[1]
    if shape in ((units,), (1, units)) and units != 1:
        bias = bias if len(shape) == 1 else relay.reshape(bias, (units,))
        return relay.nn.bias_add(product, bias, axis=-1)
    return relay.add(product, bias)


@converter("MatMul")
def matmul(node: NodeView) -> Any:
    """NumPy's matmul of any ranks."""
    return node.narrow(product_of(node.input(0), node.input(1), node.wide()))
