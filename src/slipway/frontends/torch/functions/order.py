"""What sorts, ranks and counts the elements of an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import dtypes, relay
from slipway.frontends.ranks import first_ranked
from slipway.frontends.torch.converters import NodeView, cast, converter, like, number
from slipway.relay.dims import is_open


@converter("topk")
def topk(node: NodeView) -> Any:
    """The largest or smallest along an axis, with their positions."""
    smallest = not node.arg("largest", True)
    axis = node.axis(default=-1)
    (count,) = node.ints("k")
    return first_ranked(node.input(), count, axis, smallest, "int64")


@converter("sort", "argsort")
def sort(node: NodeView) -> Any:
    """All elements in order along an axis, with their positions."""
    axis = node.axis(default=-1)
    count = node.shape()[axis] if node.rank() else 1
    count = 0 if is_open(count) else count  # all of them, of whatever size
    smallest = not node.arg("descending", False)
    values, positions = relay.topk(node.input(), count, axis, "both", smallest, "int64")
    return positions if node.kind == "argsort" else [values, positions]


@converter("mode")
def mode(node: NodeView) -> Any:
    """The element that an axis has most often, the least of several; its last position."""
    x, axis, keep = node.input(), node.axis(default=-1), bool(node.arg("keepdim", False))
    if not node.rank():
        return [x, number(0, "int64")]
    count = node.shape()[axis]
    most = 0 if is_open(count) else count
    last = node.rank() - 1
    order, positions = (
        relay.swapaxes(part, axis, last)
        for part in relay.topk(x, most, axis, "both", True, "int64")
    )
    rows = relay.reshape(order, (-1, count))
    end = relay.searchsorted(rows, rows, True, "int64")
    often = relay.subtract(end, relay.searchsorted(rows, rows, False, "int64"))
    start = relay.argmax(often, 1, True, dtype="int64")  # of the first, which is the least
    at = relay.subtract(relay.gather(end, 1, start), number(1, "int64"))
    shape = [1 if a == axis else extent for a, extent in enumerate(node.shape())]
    shape[axis], shape[last] = shape[last], 1
    found = [relay.gather(order, last, relay.reshape(at, shape))]
    found.append(relay.gather(positions, last, relay.reshape(at, shape)))
    found = [relay.swapaxes(part, axis, last) for part in found]
    return found if keep else [relay.squeeze(part, [axis]) for part in found]


@converter("nanmedian")
def nanmedian(node: NodeView) -> Any:
    """The lower median of what is no NaN, with its position."""
    x, whole = node.input(), "dim" not in node.arguments
    if not node.rank():
        return x if whole else [x, number(0, "int64")]
    x = relay.reshape(x, (-1,)) if whole else x
    axis, keep = 0 if whole else node.axis(default=-1), bool(node.arg("keepdim", False))
    dtype = x.tensor_type.dtype
    if not dtypes.is_float(dtype):
        known: Any = relay.ones_like(relay.cast(x, "int64"))
    else:
        known = relay.cast(relay.logical_not(relay.isnan(x)), "int64")
        x = relay.where(relay.isnan(x), like(np.inf, x), x)
    count = relay.sum(known, (axis,), True)
    at = relay.maximum(relay.subtract(count, number(1, "int64")), number(0, "int64"))
    at = relay.floor_divide(at, number(2, "int64"))
    extent = x.tensor_type.shape[axis]
    most = 0 if is_open(extent) else extent
    found = [
        relay.gather(part, axis, at) for part in relay.topk(x, most, axis, "both", True, "int64")
    ]
    if dtypes.is_float(dtype):
        nothing = relay.equal(count, number(0, "int64"))
        found[0] = relay.where(nothing, like(np.nan, x), found[0])
    if not keep:
        found = [relay.squeeze(part, [axis]) for part in found]
    return found[0] if whole else found


@converter("median", "kthvalue")
def ranked(node: NodeView) -> Any:
    """The element of a rank along an axis, with its position; a median is the lower of two."""
    if node.kind == "nanmedian":
        raise node.unsupported("NaN elements do not count in it")
    x = node.input()
    if node.kind == "median" and "dim" not in node.arguments:
        flat = relay.reshape(x, (-1,))
        count = flat.tensor_type.shape[0]
        if count == 0 and dtypes.is_float(flat.tensor_type.dtype):
            return number(np.nan, flat.tensor_type.dtype)
        values = relay.topk(flat, 0 if is_open(count) else count, 0, "values", True, "int64")
        at = (count - 1) // 2
        return _or_nan(relay.reshape(relay.strided_slice(values, [at], [at + 1]), ()), flat, (0,))
    axis = node.axis(default=-1)
    count = node.shape()[axis] if node.rank() else 1
    at = (count - 1) // 2 if node.kind == "median" else int(node.arg("k")) - 1
    if not node.rank():
        return [x, number(0, "int64")]
    most = 0 if is_open(at) else at + 1  # all of them, of whatever size
    found = relay.topk(x, most, axis, "both", True, "int64")
    results = [relay.strided_slice(part, [at], [at + 1], axes=[axis]) for part in found]
    if not node.arg("keepdim", False):
        results = [relay.squeeze(part, [axis]) for part in results]
    if node.kind == "median":
        results[0] = _or_nan(results[0], x, (axis,), bool(node.arg("keepdim", False)))
    return results


def _or_nan(value: Any, x: Any, axes: tuple[int, ...], keep: bool = False) -> Any:
    """Return NaN where there is one among the elements."""
    if not dtypes.is_float(x.tensor_type.dtype):
        return value
    return relay.where(relay.any(relay.isnan(x), axes, keep), like(np.nan, value), value)


@converter("searchsorted", "bucketize")
def searchsorted(node: NodeView) -> Any:
    """Where values belong among sorted ones."""
    rows, values = (
        ("boundaries", "self") if node.kind == "bucketize" else ("sorted_sequence", "self")
    )
    sequence = node.input(rows)
    if node.arguments.get("sorter") is not None:
        sequence = relay.gather(sequence, sequence.tensor_type.rank - 1, node.input("sorter"))
    right = bool(node.arg("right", False)) or node.arg("side") == "right"
    wanted = node.as_tensor(node.arguments[values], sequence.tensor_type.dtype)
    if isinstance(node.arguments[values], relay.Expr):
        dtype = node.promoted(rows, values)
        sequence, wanted = cast(sequence, dtype), cast(node.arguments[values], dtype)
    scalar = not wanted.tensor_type.rank
    if scalar:
        wanted = relay.reshape(wanted, (1,))
    found = relay.searchsorted(sequence, wanted, right, "int64")
    return cast(relay.reshape(found, node.out.shape) if scalar else found, node.out.dtype)


@converter("histc")
def histc(node: NodeView) -> Any:
    """How many elements lie in each of equally wide bins."""
    x, bins = relay.reshape(node.input(), (-1,)), int(node.arg("bins", 100))
    low, high = float(node.arg("min", 0)), float(node.arg("max", 0))
    first: Any = like(low, x)
    last: Any = like(high, x)
    if low == high and low == 0:  # those of the data
        first, last = relay.min(x, (0,)), relay.max(x, (0,))
    if low == high:
        single = relay.cast(relay.equal(first, last), x.tensor_type.dtype)
        first, last = relay.subtract(first, single), relay.add(last, single)
    position = relay.divide(
        relay.multiply(relay.subtract(x, first), like(bins, x)), relay.subtract(last, first)
    )
    inside = relay.logical_and(relay.greater_equal(x, first), relay.less_equal(x, last))
    safe = relay.where(inside, position, like(0, x))
    at = relay.minimum(cast(relay.floor(safe), "int64"), number(bins - 1, "int64"))
    empty = relay.zeros((bins,), node.out.dtype)
    return relay.scatter_elements(empty, at, cast(inside, node.out.dtype), 0, "add")
