"""Products of integers whose result is real: what onnxruntime makes of a dynamically quantised one.

Data of real numbers is rounded to 8 bits of its own range, which includes 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.microsoft.attention import attention_of
from slipway.frontends.onnx.operators.quant import centred, in_own_range, scalar_of
from slipway.frontends.product import product_of

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


def _scaled(node: NodeView, total: Expr, scales: tuple[Any, Any], bias: int) -> Any:
    factor = relay.multiply(scalar_of(scales[0]), scalar_of(scales[1]))
    result = relay.multiply(relay.cast(total, "float32"), factor)
    return relay.add(result, node.input(bias)) if node.has(bias) else result


@converter("com.microsoft.DynamicQuantizeMatMul")
def dynamic_matmul(node: NodeView) -> Any:
    """Real data by integer weights, and a bias."""
    data, scale, point = in_own_range(node.input(0))
    data = relay.subtract(relay.cast(data, "int32"), relay.cast(point, "int32"))
    total = product_of(data, centred(node, 1, 3, node.rank(1) - 1))
    return _scaled(node, total, (scale, node.input(2)), 4)


@converter("com.microsoft.MatMulIntegerToFloat")
def matmul_to_float(node: NodeView) -> Any:
    """The product of quantised matrices as real numbers, and a bias."""
    total = product_of(centred(node, 0, 4), centred(node, 1, 5, node.rank(1) - 1))
    return _scaled(node, total, (node.input(2), node.input(3)), 6)


@converter("com.microsoft.QAttention")
def quantised_attention(node: NodeView) -> Any:
    """Attention whose projections are of quantised data and weights."""
    total = product_of(centred(node, 0, 6), centred(node, 1, 7, 1))
    flat = _scaled(node, total, (node.input(3), node.input(4)), 2)
    given = [node.inputs[i] if node.has(i) else None for i in (5, 8)]
    node.inputs = [flat, None, None, *given]
    return attention_of(node, flat)
