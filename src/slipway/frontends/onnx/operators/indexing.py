"""Operators that read at positions: Slice, Gather, TopK and kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.found_positions import distinct, slices_of
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.values import Counted
from slipway.frontends.ranks import first_ranked
from slipway.relay.dims import is_open, larger, lower_bound
from slipway.relay.expr import Constant
from slipway.relay.op_registry import const
from slipway.relay.ops.tensor.scan import CUMPROD, CUMSUM, ScanAttrs


@converter("Slice")
def slice_(node: NodeView) -> Any:
    """Ranges of axes, by attributes (before opset 10) or inputs."""
    if node.opset < 10:
        starts, ends = tuple(node.attr("starts")), tuple(node.attr("ends"))
        axes, steps = node.attr("axes"), None
    else:
        starts, ends = node.ints(1, "the starts"), node.ints(2, "the ends")
        axes = node.ints(3, "the axes") if node.has(3) else None
        steps = node.ints(4, "the steps") if node.has(4) else None
    axes = tuple(axes) if axes is not None else tuple(range(len(starts)))
    if steps is not None and len(steps) == len(starts) == len(axes):
        slices = zip(starts, axes, steps, strict=True)
        starts = tuple(
            _backwards(node, start, axis) if step < 0 else start for start, axis, step in slices
        )
    return relay.strided_slice(node.input(0), starts, ends, steps, axes)


def _backwards(node: NodeView, start: Any, axis: int) -> Any:
    """Return where a slice begins that goes backwards: before the first element at that element.

    Python has nothing there.
    """
    shape = node.type().shape
    extent = shape[axis] if -len(shape) <= axis < len(shape) else 0
    if is_open(start) or start >= 0 or lower_bound(extent) >= -start:
        return start
    return larger(extent + start, 0) if is_open(extent) else max(start, -extent)


@converter("Gather")
def gather(node: NodeView) -> Any:
    """Slices along an axis; negative indices count from the end."""
    return relay.take(node.input(0), node.input(1), node.attr("axis", 0), mode="fast")


@converter("GatherElements")
def gather_elements(node: NodeView) -> Any:
    """One position per element."""
    return relay.gather(node.input(0), node.attr("axis", 0), node.input(1))


@converter("GatherND")
def gather_nd(node: NodeView) -> Any:
    """Slices at index tuples, which ONNX keeps along the last axis."""
    rank = node.rank(1)
    indices = relay.transpose(node.input(1), (rank - 1, *range(rank - 1)))
    return relay.gather_nd(node.input(0), indices, node.attr("batch_dims", 0))


@converter("TopK")
def topk(node: NodeView) -> Any:
    """The largest or smallest along an axis."""
    count = node.attr("k") if node.opset < 10 else node.ints(1, "k")[0]
    axis, smallest = node.attr("axis", -1), not node.attr("largest", 1)
    if not is_open(count) and count < 0:
        raise node.unsupported(f"its k is {count}")
    return first_ranked(node.input(0), count, axis, smallest, "int64")


@converter("OneHot")
def one_hot(node: NodeView) -> Any:
    """Classes as vectors; a negative class counts from the end."""
    depth = int(node.constant(1, "the depth").reshape(-1)[0])
    indices = node.input(0)
    if indices.tensor_type.dtype != "int64":
        indices = relay.cast(indices, "int64")
    from_end = relay.add(indices, const(depth, "int64"))
    indices = relay.where(relay.less(indices, const(0, "int64")), from_end, indices)
    dtype = node.type(2).dtype
    axis = node.attr("axis", -1)
    values = node.input(2)
    if isinstance(values, relay.Constant):
        off, on = values.array.reshape(-1)
        return relay.one_hot(indices, float(on), float(off), depth, axis, dtype)
    hot = relay.one_hot(indices, 1, 0, depth, axis, "bool")
    off, on = (relay.reshape(relay.strided_slice(values, [i], [i + 1]), ()) for i in range(2))
    return relay.where(hot, on, off)


@converter("NonZero")
def non_zero(node: NodeView) -> Any:
    """Positions of non-zero elements: their number is known only of a constant."""
    values = node.constant(0, "the data (its number of non-zero elements is the shape)")
    found = np.array(np.nonzero(np.atleast_1d(values)), np.int64)
    return const(found[: values.ndim])  # of a scalar: (0, N)


@converter("CumSum", "CumProd")
def cumulative(node: NodeView) -> Any:
    """Running sum or product."""
    axis = node.ints(1, "the axis")[0]
    attrs = ScanAttrs(axis, bool(node.attr("exclusive", 0)), bool(node.attr("reverse", 0)))
    return (CUMSUM if node.kind == "CumSum" else CUMPROD)(node.input(0), attrs=attrs)


@converter("Trilu")
def trilu(node: NodeView) -> Any:
    """The upper or lower triangle, zero elsewhere: a constant mask."""
    if node.rank() < 2:
        raise node.unsupported(f"its data has {node.rank()} axes, and a triangle needs two")
    rows, columns = node.type().shape[-2:]
    if is_open(rows) or is_open(columns):
        diagonal = node.input(1) if node.has(1) else const(np.int64(0))
        return relay.trilu(node.input(0), diagonal, bool(node.attr("upper", 1)))
    check_table(node, rows, columns)
    if node.has(1) and not isinstance(node.input(1), relay.Constant):
        above = np.arange(columns) - np.arange(rows)[:, None]
        k = relay.cast(relay.reshape(node.input(1), ()), "int64")
        side = relay.greater_equal if node.attr("upper", 1) else relay.less_equal
        return relay.where(side(const(above), k), node.input(0), node.like(0))
    offset = node.ints(1, "k")[0] if node.has(1) else 0
    keep = np.ones((rows, columns), bool)
    keep = np.triu(keep, offset) if node.attr("upper", 1) else np.tril(keep, offset)
    return relay.where(const(keep), node.input(0), node.like(0))


@converter("ReverseSequence")
def reverse_sequence(node: NodeView) -> Any:
    """The first `n` elements of each row reversed."""
    time, batch = node.attr("time_axis", 0), node.attr("batch_axis", 1)
    return relay.reverse_sequence(node.input(0), node.input(1), time, batch)


@converter("Compress")
def compress(node: NodeView) -> Any:
    """The entries where a constant condition holds."""
    kept = np.flatnonzero(node.constant(1, "the condition"))
    return relay.take(node.input(0), const(kept.astype(np.int64)), node.attr("axis"), mode="fast")


REDUCTION = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@converter("Scatter", "ScatterElements")
def scatter_elements(node: NodeView) -> Any:
    """Updates put in along an axis."""
    return relay.scatter_elements(
        node.input(0), node.input(1), node.input(2), node.attr("axis", 0),
        node.choice("reduction", "none", REDUCTION),
    )  # fmt: skip


@converter("ScatterND")
def scatter_nd(node: NodeView) -> Any:
    """Slices put in at index tuples, which ONNX keeps along the last axis."""
    rank = node.rank(1)
    indices = relay.transpose(node.input(1), (rank - 1, *range(rank - 1)))
    mode = node.choice("reduction", "none", REDUCTION)
    return relay.scatter_nd(node.input(0), indices, node.input(2), mode)


@converter("TensorScatter")
def tensor_scatter(node: NodeView) -> Any:
    """A key-value cache with new entries written along an axis from a place per batch."""
    cache, update = node.input(0), node.input(1)
    shape, steps = node.type().shape, node.type(1).shape
    axis = node.attr("axis", -2) % len(shape)
    starts = node.input(2) if node.has(2) else const(np.zeros(shape[0], np.int64))
    if starts.tensor_type.dtype != "int64":
        starts = relay.cast(starts, "int64")
    view = [1] * len(shape)
    view[0] = shape[0]
    check_table(node, steps[axis])
    offsets = np.arange(steps[axis], dtype=np.int64)
    row = [1] * len(shape)
    row[axis] = steps[axis]
    position = relay.add(relay.reshape(starts, view), const(offsets.reshape(row)))
    if node.attr("mode", "linear") == "circular":
        position = relay.floor_mod(position, const(shape[axis], "int64"))
    return relay.scatter_elements(cache, relay.broadcast_to(position, steps), update, axis)


@converter("Unique")
def unique(node: NodeView) -> Any:
    """The different elements, or slices along an axis; of a tensor that is computed, counted."""
    given, axis = node.input(0), node.attr("axis")
    if isinstance(given, Constant):
        return _unique_of(given.array, axis, bool(node.attr("sorted", 1)))
    data = relay.reshape(given, (-1,)) if axis is None else given
    axis = 0 if axis is None else axis % data.tensor_type.rank
    found = distinct(slices_of(data, axis))
    if not node.attr("sorted", 1):
        found = found.as_found()
    values = relay.take(data, found.positions, axis, mode="fast")
    return [
        Counted(values, found.count, axis), Counted(found.positions, found.count, 0),
        found.inverse, Counted(found.repeats, found.count, 0),
    ]  # fmt: skip


def _unique_of(values: np.ndarray[Any, Any], axis: int | None, is_sorted: bool) -> list[Any]:
    found, first, inverse, counts = np.unique(values, True, True, True, axis=axis)
    if not is_sorted:
        order = np.argsort(first)
        found = np.take(found, order, axis=axis or 0)
        rank = np.argsort(order)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return [const(v) for v in (found, first, inverse.reshape(-1), counts)]
