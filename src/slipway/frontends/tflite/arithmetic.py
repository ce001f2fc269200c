"""ADD and its kin: elementwise operators of two arguments, with TFLite's own rescaling."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, converter
from slipway.frontends.tflite.floating import activated, elementwise
from slipway.frontends.tflite.quantized import QUANTIZED, centered, requantized
from slipway.relay.expr import Expr
from slipway.relay.ops.qnn_rescale import rescale_by


@converter("ADD", "SUB")
def add(node: NodeView) -> Any:
    """Both sides are shifted left and brought to twice the larger scale, then summed."""
    face: Any = relay.add if node.kind == "ADD" else relay.subtract
    if node.tensor(0).quantization is None or node.is_float:
        out = elementwise(face, node[0], node[1])
        return _activated(node, out)
    node.need_dtype(*QUANTIZED)
    left = 15 if node.tensor(0).dtype == "int16" else 20
    scales = [node.quantization(i).scale for i in (0, 1)]
    twice = 2.0 * max(scales)
    sides = [
        rescale_by(
            relay.left_shift(centered(node, i), relay.const(left, "int32")), scales[i] / twice
        )
        for i in (0, 1)
    ]
    real = twice / ((1 << left) * node.out_quantization().scale)
    return requantized(node, face(*sides), real, node.activation)


def _activated(node: NodeView, value: Expr) -> Any:
    if node.activation == "none":
        return value
    if not node.is_float:
        raise node.unsupported(f"the activation {node.activation!r} on plain integers")
    return elementwise(lambda v: activated(v, node.activation), value)
