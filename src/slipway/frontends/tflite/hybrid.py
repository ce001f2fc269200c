"""Hybrid operators: floating point data, int8 weights; the data is quantised while it runs.

TFLite takes the range of each batch entry, quantises it to int8 with a zero point, sums integers
and scales the sums back.  The numbers differ from those of dequantised weights, so the importer
builds the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant
from slipway.relay import op_registry
from slipway.relay.expr import Expr


@dataclass(frozen=True)
class QuantizedRows:
    """The data less its zero point (so that 0 pads), and the scale of each batch entry.

    int8 where the zero point is 0, else int16.
    """

    data: Expr
    scales: Expr  # float32, (N, 1, ..., 1)


def is_hybrid(node: NodeView) -> bool:
    """Return whether a node multiplies floating point data by weights stored as integers."""
    weights = node.tensor(1)
    return node.is_float and weights.dtype in ("int8", "uint8", "int4") and weights.data is not None


def has_one_scale(node: NodeView) -> bool:
    """Return whether the weights have one scale for all their channels."""
    quantization = node.tensor(1).quantization
    return quantization is not None and quantization.scales.size == 1


def quantized_rows(data: Expr, symmetric: bool = False) -> QuantizedRows:
    """Quantise each batch entry by its own range."""
    axes = tuple(range(1, data.tensor_type.rank))

    def const(value: float, dtype: str = "float64") -> Any:
        return op_registry.const(value, dtype)

    if symmetric:
        bound = _largest(data, axes)
        empty = relay.equal(bound, const(0, "float32"))
        safe = relay.where(empty, const(1, "float32"), bound)
        scales = relay.where(empty, const(1, "float32"), relay.divide(safe, const(127, "float32")))
        inverse = relay.divide(const(127, "float32"), safe)
        stored = relay.clip(_half_away(relay.multiply(data, inverse)), -127, 127)
        return QuantizedRows(relay.cast(stored, "int8"), scales)
    lowest = relay.cast(relay.minimum(relay.min(data, axes, True), const(0, "float32")), "float64")
    most = relay.cast(relay.maximum(relay.max(data, axes, True), const(0, "float32")), "float64")
    empty = relay.equal(lowest, most)
    scale = relay.where(empty, const(1), relay.divide(relay.subtract(most, lowest), const(255)))
    from_lowest = relay.subtract(const(-128), relay.divide(lowest, scale))
    from_most = relay.subtract(const(127), relay.divide(most, scale))
    lowest_nearer = relay.less(relay.abs(relay.divide(lowest, scale)) + const(128),
                              relay.abs(relay.divide(most, scale)) + const(127))  # fmt: skip
    zero = relay.where(lowest_nearer, from_lowest, from_most)
    zero = relay.cast(_round(relay.clip(zero, -128, 127)), "float32")
    scales = relay.cast(scale, "float32")
    inverse = relay.divide(const(1, "float32"), scales)
    stored = relay.clip(_round(relay.add(zero, relay.multiply(data, inverse))), -128, 127)
    return QuantizedRows(relay.cast(relay.subtract(stored, zero), "int16"), scales)


def _largest(data: Expr, axes: tuple[int, ...]) -> Any:
    """The largest magnitude.  Bits of what is not negative ascend with it, a NaN's come last."""
    bits = relay.reinterpret(relay.abs(data), "int32")
    return relay.reinterpret(relay.max(bits, axes, True), "float32")


def _half_away(value: Expr) -> Any:
    """What a cast to integers, which truncates, rounds with halves away from zero.

    To a half itself the number below 0.5 adds up to the next integer, to what is below it not.
    """
    dtype = value.tensor_type.dtype
    below = float(np.nextafter(np.dtype(dtype).type(0.5), np.dtype(dtype).type(0)))
    up, down = (op_registry.const(part, dtype) for part in (below, -below))
    return value + relay.where(relay.less(value, op_registry.const(0, dtype)), down, up)


def _round(value: Expr) -> Any:
    """Halves away from zero, as C's round()."""
    return relay.trunc(_half_away(value))


def scaled_sums(node: NodeView, total: Expr, rows: QuantizedRows, weight: int, bias: int) -> Any:
    """Turn integer sums, channels last, into floating point results with bias."""
    quantization = node.tensor(weight).quantization
    if quantization is None:
        raise node.unsupported(f"the weights {node.tensor(weight).name!r} have no scale")
    scales = quantization.scales.astype(np.float32)
    out = relay.multiply(relay.cast(total, "float32"), array_constant(scales, "float32"))
    out = relay.multiply(out, rows.scales)
    return relay.add(out, node[bias]) if node.has(bias) else out
