"""What every channel of an integer tensor can hold: bounds by interval arithmetic.

The channels are the last axis.  A channel whose bounds meet is constant for every input: the filter
is all zero, or its activation saturates whatever comes in.  Bounds start from the dtype's range at
the inputs and are exact integers; a step that could leave its dtype's range gives up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Constant, Expr, Op
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ChannelRange:
    """Smallest and largest value of each channel, int64."""

    low: Array
    high: Array

    @property
    def constant(self) -> Array:
        """Which channels hold one value only."""
        same: Array = self.low == self.high
        return same


def channel_ranges(root: Expr) -> dict[int, ChannelRange]:
    """Return the range of every integer tensor under `root` that is known, by expression id."""
    found: dict[int, ChannelRange] = {}
    for expr in post_order(root, into_functions=False):
        known = _range_of(expr, found)
        if known is not None:
            found[id(expr)] = known
    return found


def _range_of(expr: Expr, found: dict[int, ChannelRange]) -> ChannelRange | None:
    kind = expr.type
    if not isinstance(kind, TensorType) or not kind.rank or not _is_integer(kind.dtype):
        return None
    if 0 in kind.shape:
        return None  # of no numbers there is no range
    channels = kind.shape[-1]
    if is_open(channels):
        return None
    if isinstance(expr, Constant):
        values = expr.array.astype(np.int64).reshape(-1, channels)
        return ChannelRange(values.min(0), values.max(0))
    whole = _whole(kind.dtype, channels)
    if isinstance(expr, Call) and isinstance(expr.op, Op):
        rule = RULES.get(expr.op.name)
        if rule is not None:
            result = rule(expr, found)
            return _checked(result, kind, whole)
    return whole


def _is_integer(dtype: str) -> bool:
    return dtype in ("int8", "uint8", "int16", "int32", "int64")


def _whole(dtype: str, channels: int) -> ChannelRange | None:
    if dtype == "int64":
        return None  # sums of its bounds would not fit int64
    info = np.iinfo(dtype)
    return ChannelRange(
        np.full(channels, info.min, np.int64), np.full(channels, info.max, np.int64)
    )


def _checked(
    result: ChannelRange | None, kind: TensorType, whole: ChannelRange | None
) -> ChannelRange | None:
    """Of a channel whose result may wrap around, nothing is known but its dtype."""
    if result is None or whole is None:
        return whole
    info = np.iinfo(kind.dtype)
    inside = np.logical_and(result.low >= info.min, result.high <= info.max)
    return ChannelRange(
        np.where(inside, result.low, whole.low), np.where(inside, result.high, whole.high)
    )


def get_range(expr: Expr, found: dict[int, ChannelRange]) -> ChannelRange | None:
    """Return what is known of `expr`; a scalar constant counts as one channel."""
    if isinstance(expr, Constant) and expr.array.ndim == 0 and expr.array.dtype.kind in "iu":
        value = np.array([int(expr.array)], np.int64)
        return ChannelRange(value, value)
    return found.get(id(expr))


def padded_range(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    """Return the range of what a convolution reads, its padding included."""
    known = get_range(call.args[0], found)
    if known is None or not any(getattr(call.attrs, "padding", ())):
        return known
    value = call.attrs.pad_value
    return ChannelRange(np.minimum(known.low, value), np.maximum(known.high, value))


def _products(known: ChannelRange, weight: Array) -> tuple[Array, Array]:
    """Bounds of weight * x for weights (..., C, O) and x of C channels."""
    low, high = known.low[:, None] * weight, known.high[:, None] * weight
    return np.minimum(low, high), np.maximum(low, high)


def _weighted(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    known, weight = padded_range(call, found), call.args[1]
    if known is None or not isinstance(weight, Constant):
        return None
    if getattr(call.attrs, "groups", 1) != 1:
        return None
    low, high = _products(known, weight.array.astype(np.int64))
    axes = tuple(range(low.ndim - 1))
    return ChannelRange(low.sum(axis=axes), high.sum(axis=axes))


def _depthwise(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    known, weight = padded_range(call, found), call.args[1]
    if known is None or not isinstance(weight, Constant):
        return None
    array = weight.array.astype(np.int64)
    times = array.shape[2] // known.low.size
    low, high = np.repeat(known.low, times) * array, np.repeat(known.high, times) * array
    return ChannelRange(
        np.minimum(low, high).sum(axis=(0, 1)), np.maximum(low, high).sum(axis=(0, 1))
    )


def _add(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    one, other = (get_range(a, found) for a in call.args)
    if one is None or other is None:
        return None
    if isinstance(call.op, Op) and call.op.name == "subtract":
        return ChannelRange(one.low - other.high, one.high - other.low)
    return ChannelRange(one.low + other.low, one.high + other.high)


def _multiply(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    one, other = (get_range(a, found) for a in call.args)
    if one is None or other is None:
        return None
    corners = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    return ChannelRange(np.minimum.reduce(corners), np.maximum.reduce(corners))


def _extremum(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    one, other = (get_range(a, found) for a in call.args)
    if one is None or other is None or not isinstance(call.op, Op):
        return None
    choose = np.maximum if call.op.name == "maximum" else np.minimum
    return ChannelRange(choose(one.low, other.low), choose(one.high, other.high))


def _left_shift(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    known, amount = get_range(call.args[0], found), call.args[1]
    if known is None or not isinstance(amount, Constant) or amount.array.ndim:
        return None
    return ChannelRange(known.low << int(amount.array), known.high << int(amount.array))


def _rescale(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    known = get_range(call.args[0], found)
    factors = [a.array for a in call.args[1:] if isinstance(a, Constant)]
    if known is None or len(factors) != 2 or any(f.ndim > 1 for f in factors):
        return None
    dtype = call.args[0].tensor_type.dtype
    if (factors[0] < 0).any() or dtype != "int32":
        return None
    info = np.iinfo(np.int32)
    left = np.maximum(factors[1], 0).astype(np.int64)
    wraps = np.logical_or(known.low << left < info.min, known.high << left > info.max)
    definition = op_registry.get("qnn.rescale")
    low, high = (
        definition.evaluate(call.attrs, end.astype(dtype), *factors).astype(np.int64)
        for end in (known.low, known.high)
    )
    return ChannelRange(np.where(wraps, info.min, low), np.where(wraps, info.max, high))


def _monotone(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    known = get_range(call.args[0], found)
    definition = op_registry.call_definition(call)
    if known is None or definition is None:
        return None
    dtype = call.args[0].tensor_type.dtype
    ends = [
        np.asarray(definition.evaluate(call.attrs, end.astype(dtype))).astype(np.int64)
        for end in (known.low, known.high)
    ]
    return ChannelRange(*ends)


def _cast(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    return get_range(call.args[0], found)


def _lookup(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    known, table = get_range(call.args[0], found), call.args[1]
    if known is None or not isinstance(table, Constant):
        return None
    lowest = -128 if call.args[0].tensor_type.dtype == "int8" else 0
    values = table.array.astype(np.int64)
    pieces = [
        values[a - lowest : b - lowest + 1] for a, b in zip(known.low, known.high, strict=True)
    ]
    return ChannelRange(np.array([p.min() for p in pieces]), np.array([p.max() for p in pieces]))


def _same_channels(call: Call, found: dict[int, ChannelRange]) -> ChannelRange | None:
    known = get_range(call.args[0], found)
    same = call.args[0].tensor_type.shape[-1:] == call.tensor_type.shape[-1:]
    return known if same else None


RULES: dict[str, Any] = {
    "qnn.conv2d_nhwc": _weighted,
    "qnn.dense_packed": _weighted,
    "qnn.depthwise_conv2d_nhwc": _depthwise,
    "add": _add,
    "subtract": _add,
    "multiply": _multiply,
    "maximum": _extremum,
    "minimum": _extremum,
    "left_shift": _left_shift,
    "qnn.rescale": _rescale,
    "clip": _monotone,
    "nn.relu": _monotone,
    "cast": _cast,
    "qnn.lookup": _lookup,
    "nn.max_pool2d": _same_channels,
    "qnn.avg_pool2d": _same_channels,
    "reshape": _same_channels,
}
