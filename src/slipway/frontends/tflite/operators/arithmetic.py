"""Elementwise operators of two and more arguments, with TFLite's own rescaling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.fixed_point.tables import all_values
from slipway.frontends.tflite.floating import activated, elementwise
from slipway.frontends.tflite.quantized import (
    QUANTIZED,
    centered,
    out_range,
    requantized,
    scales_over_out,
    stored,
)
from slipway.relay import quantization as rule
from slipway.relay.op_registry import const
from slipway.relay.ops.qnn.rescale import rescale_by

if TYPE_CHECKING:
    from slipway.relay.expr import Array, Expr


def is_quantized(node: NodeView) -> bool:
    """Return whether the first input holds quantised numbers, not plain integers or floats."""
    return node.tensor(0).dtype in QUANTIZED and node.tensor(0).quantization is not None


def shifted_sides(node: NodeView, left: int, twice: float) -> list[Any]:
    """Return both inputs, shifted left and brought to the scale `twice` over 2**left."""
    amount = const(left, "int32")
    return [
        rescale_by(relay.left_shift(centered(node, i), amount), node.quantization(i).scale / twice)
        for i in (0, 1)
    ]


@converter("ADD", "SUB")
def add(node: NodeView) -> Any:
    """Both sides are shifted left and brought to twice the larger scale, then summed."""
    make: Any = relay.add if node.kind == "ADD" else relay.subtract
    if not is_quantized(node):
        return _plain(node, make)
    left = 15 if node.tensor(0).dtype == "int16" else 20
    twice = 2.0 * max(node.quantization(i).scale for i in (0, 1))
    real = twice / ((1 << left) * node.out_quantization().scale)
    return requantized(node, make(*shifted_sides(node, left, twice)), real, node.activation)


@converter("MUL")
def multiply(node: NodeView) -> Any:
    """The product of the centred values, scaled."""
    if not is_quantized(node):
        return _plain(node, relay.multiply)
    product = relay.multiply(centered(node, 0), centered(node, 1))
    return requantized(node, product, scales_over_out(node, 0, 1), node.activation)


@converter("SQUARED_DIFFERENCE")
def squared_difference(node: NodeView) -> Any:
    """(a - b) ** 2."""
    if not is_quantized(node):
        return elementwise(lambda a, b: relay.multiply(a - b, a - b), node[0], node[1])
    left = 0 if node.tensor(0).dtype == "int16" else 7
    twice = 2.0 * max(node.quantization(i).scale for i in (0, 1))
    one, other = shifted_sides(node, left, twice)
    difference = relay.subtract(one, other)
    real = twice * twice / ((1 << (2 * left)) * node.out_quantization().scale)
    return requantized(node, relay.multiply(difference, difference), real)


@converter("DIV")
def divide(node: NodeView) -> Any:
    """A quotient; the divisor's reciprocals stand in tables of its 256 values."""
    if not is_quantized(node):
        return _plain(node, relay.divide)
    node.need_dtype("int8", "uint8")
    node.need_dtype("int8", "uint8", position=1)
    out = node.out_quantization()
    # In TFLite the factor is formed in float32.
    real = float(
        np.float32(node.quantization(0).scale)
        / (np.float32(node.quantization(1).scale) * np.float32(out.scale))
    )
    multiplier, shift = rule.quantize_multiplier(real)
    divisors = all_values(node.tensor(1).dtype) - node.quantization(1).zero_point
    size = np.maximum(np.abs(divisors), 1)
    zeros = rule.leading_zeros(size)
    fraction = ((size << zeros.astype(np.int64)) - (1 << 31)).astype(np.int32)
    inverse = rule.one_over_one_plus_x(fraction)

    def lookup(values: Array) -> Any:
        return relay.qnn.op.lookup(node[1], array_constant(values, "int32"))

    dividend = relay.multiply(centered(node, 0), lookup(np.where(divisors < 0, -1, 1)))
    headroom = _sign_bits(dividend)
    quotient = relay.qnn.op.rescale(dividend, lookup(inverse), headroom)
    total = relay.subtract(lookup(shift - (31 - zeros)), headroom)
    # Below 2**-31 a quotient is 0; TFLite's own shift has no defined result there.
    tiny = relay.less(total, const(-31, "int32"))
    factor = relay.where(tiny, const(0, "int32"), const(multiplier, "int32"))
    low, high = out_range(node, node.activation)
    total = relay.maximum(total, const(-31, "int32"))
    scaled = relay.qnn.op.rescale(quotient, factor, total)
    return stored(scaled, out.zero_point, low, high, node.out().dtype)


def _sign_bits(value: Expr) -> Any:
    """Count the bits after the sign bit that equal it, for magnitudes below 2**9."""
    magnitude = relay.where(relay.less(value, const(0, "int32")), relay.bitwise_not(value), value)
    bits = np.array([31 - int(v).bit_length() for v in range(512)], np.int32)
    return relay.take(array_constant(bits, "int32"), magnitude, mode="clip")


@converter("MAXIMUM", "MINIMUM")
def extremum(node: NodeView) -> Any:
    """The greater or the lesser; quantised tensors all have one scale."""
    make: Any = relay.maximum if node.kind == "MAXIMUM" else relay.minimum
    return elementwise(make, node[0], node[1])


@converter("FLOOR_DIV", "FLOOR_MOD", "POW")
def plain_binary(node: NodeView) -> Any:
    """Operators on plain numbers."""
    if is_quantized(node):
        raise node.unsupported("it is not supported on quantised numbers")
    names = {"FLOOR_DIV": "floor_divide", "FLOOR_MOD": "floor_mod", "POW": "power"}
    return elementwise(getattr(relay, names[node.kind]), node[0], node[1])


COMPARISONS = {
    "EQUAL": "equal", "NOT_EQUAL": "not_equal", "LESS": "less", "LESS_EQUAL": "less_equal",
    "GREATER": "greater", "GREATER_EQUAL": "greater_equal",
}  # fmt: skip


@converter(*COMPARISONS)
def compare(node: NodeView) -> Any:
    """Quantised sides are brought to a common scale first."""
    make: Any = getattr(relay, COMPARISONS[node.kind])
    if not is_quantized(node):
        return elementwise(make, node[0], node[1])
    sides = [
        rescale_by(
            relay.left_shift(centered(node, i), const(8, "int32")),
            node.quantization(i).scale,
        )
        for i in (0, 1)
    ]
    return make(*sides)


@converter("LOGICAL_AND", "LOGICAL_OR")
def logical(node: NodeView) -> Any:
    """Both, or either."""
    make: Any = relay.logical_and if node.kind == "LOGICAL_AND" else relay.logical_or
    return make(node[0], node[1])


@converter("LOGICAL_NOT")
def logical_not(node: NodeView) -> Any:
    """The opposite."""
    return relay.logical_not(node[0])


@converter("ADD_N")
def add_n(node: NodeView) -> Any:
    """The sum of many tensors of one scale."""
    values = node.inputs
    if is_quantized(node):
        node.need_dtype("int8")
        left = const(20, "int32")
        parts = [
            rescale_by(relay.left_shift(centered(node, i), left), 0.5) for i in range(len(values))
        ]
        total = parts[0]
        for part in parts[1:]:
            total = relay.add(total, part)
        real = 2.0 * node.quantization().scale / ((1 << 20) * node.out_quantization().scale)
        return requantized(node, total, real)
    total = values[0]
    for value in values[1:]:
        total = relay.add(total, value)
    return total


@converter("SELECT_V2", "SELECT")
def select(node: NodeView) -> Any:
    """The first where the condition holds, else the second."""
    condition = node[0]
    if node.kind == "SELECT" and len(node.shape()) == 1 and len(node.shape(1)) > 1:
        condition = relay.reshape(condition, (-1,) + (1,) * (len(node.shape(1)) - 1))
    return relay.where(condition, node[1], node[2])


def _plain(node: NodeView, make: Any) -> Any:
    out = elementwise(make, node[0], node[1])
    if node.activation == "none":
        return out
    if not node.is_float:
        limits = {"relu": (0, 2**31 - 1), "relu6": (0, 6), "relu_n1_to_1": (-1, 1)}
        if node.activation not in limits:
            raise node.unsupported(f"the activation {node.activation!r} on plain integers")
        return relay.clip(out, *limits[node.activation])
    return elementwise(lambda v: activated(v, node.activation), out)
