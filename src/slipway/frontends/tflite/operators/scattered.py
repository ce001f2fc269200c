"""Operators that put slices at places: scatters, segments, diagonals, reversed sequences."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.file_model import Array
from slipway.relay.op_registry import const


def _check_positions(node: NodeView, positions: Any, shape: tuple[int, ...]) -> None:
    """Refuse constant positions (their tuples along the last axis) that lie outside `shape`."""
    values = getattr(positions, "array", None)
    if values is None or not values.size:
        return
    limits = np.asarray(shape[: values.shape[-1]])
    if values.shape[-1] > len(shape) or (values < 0).any() or (values >= limits).any():
        raise node.unsupported(f"it writes to places outside the shape {shape}")


@converter("SCATTER_ND")
def scatter_nd(node: NodeView) -> Any:
    """Sum slices at index tuples into zeros; inputs are indices, slices and the shape."""
    shape, indices = node.integers(2), node[0]
    _check_positions(node, indices, shape)
    rank = len(node.shape(0))
    transposed = relay.transpose(indices, (rank - 1, *range(rank - 1)))
    dtype = node[1].tensor_type.dtype
    return relay.scatter_nd(relay.zeros(shape, dtype), transposed, node[1], "add")


@converter("SPARSE_TO_DENSE")
def sparse_to_dense(node: NodeView) -> Any:
    """Values at index tuples, another value elsewhere."""
    shape, indices, values = node.integers(1), node[0], node[2]
    if len(node.shape(0)) < 2:
        indices = relay.reshape(indices, (prod(node.shape(0)), 1))
    _check_positions(node, getattr(node[0], "array", None) is not None and indices, shape)
    count = indices.tensor_type.shape[0]
    if values.tensor_type.rank == 0:
        values = relay.broadcast_to(values, (count,))
    filled = relay.broadcast_to(node[3], shape)
    return relay.scatter_nd(filled, relay.transpose(indices, (1, 0)), values, "update")


# What an empty segment holds, and how slices come together.
SEGMENTS = {
    "SEGMENT_SUM": "add", "UNSORTED_SEGMENT_SUM": "add", "UNSORTED_SEGMENT_PROD": "mul",
    "UNSORTED_SEGMENT_MAX": "max", "UNSORTED_SEGMENT_MIN": "min",
}  # fmt: skip


@converter(*SEGMENTS)
def segments(node: NodeView) -> Any:
    """Slices with the same constant number come together; a negative number leaves one out."""
    numbers = node.constant(1).astype(np.int64)
    shape, dtype = node.shape(), node[0].tensor_type.dtype
    if shape[: numbers.ndim] != numbers.shape:
        raise node.unsupported(f"its numbers {numbers.shape} do not fit the data {shape}")
    rest = shape[numbers.ndim :]
    flat = numbers.reshape(-1)
    own = int(flat.max(initial=-1)) + 1
    count = own if node.kind == "SEGMENT_SUM" else node.integer(2)
    if (flat >= count).any() or count < 0:
        raise node.unsupported(f"it has a slice of number {flat.max()} for {count} segments")
    way = SEGMENTS[node.kind]
    kept = np.flatnonzero(flat >= 0)
    data = relay.reshape(node[0], (flat.size, *rest))
    if kept.size != flat.size:
        data = relay.take(data, array_constant(kept, "int64"), axis=0, mode="fast")
    info: Any = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    empty = {"add": 0, "mul": 1, "max": info.min, "min": info.max}[way]
    first = array_constant(np.full((count, *rest), empty), dtype)
    if not kept.size:
        return first
    return relay.scatter_nd(first, array_constant(flat[kept][None], "int64"), data, way)


def _diagonal(rows: int, columns: int) -> Array:
    return np.eye(rows, columns, dtype=bool)


@converter("MATRIX_DIAG")
def matrix_diag(node: NodeView) -> Any:
    """A matrix with the last axis as its diagonal."""
    dtype, size = node[0].tensor_type.dtype, node.shape()[-1]
    mask = array_constant(_diagonal(size, size), "bool")
    zero = const(0, dtype)
    return relay.where(mask, relay.expand_dims(node[0], -2), zero)


@converter("MATRIX_SET_DIAG")
def matrix_set_diag(node: NodeView) -> Any:
    """The matrices of the last two axes with another diagonal."""
    shape = node.shape()
    if len(shape) < 2 or node.shape(1) != (*shape[:-2], min(shape[-2:])):
        raise node.unsupported(f"its diagonal {node.shape(1)} does not fit {shape}")
    rows, columns = shape[-2:]
    diagonal = node[1]
    if columns > rows:
        widths = [(0, 0)] * (len(shape) - 2) + [(0, columns - rows)]
        diagonal = relay.nn.pad(diagonal, widths)
    mask = array_constant(_diagonal(rows, columns), "bool")
    return relay.where(mask, relay.expand_dims(diagonal, -2), node[0])


@converter("REVERSE_SEQUENCE")
def reverse_sequence(node: NodeView) -> Any:
    """The first elements of each row reversed; how many says the second input."""
    shape, time, batch = node.shape(), node.option("seq_dim"), node.option("batch_dim")
    if not (0 <= time < len(shape) and 0 <= batch < len(shape)) or time == batch:
        raise node.unsupported(f"its axes are {time} and {batch} of data {shape}")
    if node.shape(1) != (shape[batch],):
        raise node.unsupported(f"its lengths {node.shape(1)} do not fit the data {shape}")

    def along(axis: int) -> tuple[int, ...]:
        return tuple(d if i == axis else 1 for i, d in enumerate(shape))

    position = array_constant(np.arange(shape[time]).reshape(along(time)), "int64")
    length = relay.reshape(relay.cast(node[1], "int64"), along(batch))
    swapped = relay.subtract(relay.subtract(length, const(1, "int64")), position)
    index = relay.where(relay.less(position, length), swapped, position)
    return relay.gather(node[0], time, relay.broadcast_to(index, shape))
