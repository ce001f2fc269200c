"""Quantise and dequantise nodes: torch's (namespace quantized_decomposed) and torchao's."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.few_bits import dequantised
from slipway.frontends.torch.converters import NodeView, converter, number
from slipway.relay.expr import Constant, Expr

SPACE = "quantized_decomposed::"


def _parameters(node: NodeView) -> tuple[Any, Any, int]:
    """Return scale, zero point and axis (-1 where there is one scale for the whole tensor)."""
    per_channel = "channel" in node.kind
    scale = node.arguments["scales" if per_channel else "scale"]
    zero = node.arguments["zero_points" if per_channel else "zero_point"]
    axis = node.axis("axis", -1, node.rank("input"))
    return _value(node, scale, "float32"), _value(node, 0 if zero is None else zero, "int32"), axis


def _value(node: NodeView, given: Any, dtype: str) -> Constant:
    """Return a parameter, which must be known at compile time, as a constant."""
    if isinstance(given, Constant):
        given = given.array
    elif isinstance(given, Expr):
        raise node.unsupported("a scale or zero point depends on the inputs")
    return number(given, dtype)


@converter(*(SPACE + n for n in ("quantize_per_tensor", "quantize_per_channel")))
def quantize(node: NodeView) -> Any:
    """Floats to integers."""
    scale, zero, axis = _parameters(node)
    low, high = int(node.arg("quant_min")), int(node.arg("quant_max"))
    limits = np.iinfo(node.out.dtype)
    made = relay.qnn.op.quantize(node.input("input"), scale, zero, axis, node.out.dtype)
    inside = (low, high) != (limits.min, limits.max)
    return relay.clip(made, low, high) if inside else made


@converter(*(SPACE + n for n in ("dequantize_per_tensor", "dequantize_per_channel")))
def dequantize(node: NodeView) -> Any:
    """Integers to floats."""
    scale, zero, axis = _parameters(node)
    made: Expr = relay.qnn.op.dequantize(node.input("input"), scale, zero, axis)
    return made


@converter("torchao::dequantize_affine")
def dequantize_blocks(node: NodeView) -> Any:
    """Integers to floats, a scale and a zero point for each block of `block_size` elements."""
    x, scale, zero = node.input("input"), node.input("scale"), node.optional("zero_point")
    shape, sizes = node.shape("input"), node.ints("block_size")
    known = all(isinstance(v, Constant) for v in (x, scale, *([] if zero is None else [zero])))
    if known and len(shape) == 2 and sizes[0] == 1 and node.out.dtype == "float32":
        counts = (shape[0], shape[1] // sizes[1])
        scales = scale.array.reshape(counts)  # type: ignore[attr-defined]
        zeros = zero.array if isinstance(zero, Constant) else np.zeros(counts)
        values = x.array.astype(np.int32)  # type: ignore[attr-defined]
        kept = dequantised(values, scales, zeros.reshape(counts), sizes[1])
        if kept is not None:
            return kept
    parts: list[int] = []
    ones: list[int] = []
    for extent, size in zip(shape, sizes, strict=True):
        parts += [extent // size, size]
        ones += [extent // size, 1]
    whole = relay.reshape(relay.cast(x, "int32"), parts)
    if zero is not None:
        whole = relay.subtract(whole, relay.cast(relay.reshape(zero, ones), "int32"))
    kind = node.out.dtype
    made = relay.multiply(relay.cast(whole, kind), relay.cast(relay.reshape(scale, ones), kind))
    return relay.reshape(made, shape)
