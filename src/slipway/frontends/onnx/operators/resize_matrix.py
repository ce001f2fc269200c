"""Resampling by one constant matrix per axis: what `image.resize` does not do.

These are filters that widen when shrinking (antialias) and a region of the input given by its
corners (tf_crop_and_resize).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_table
from slipway.relay.op_registry import const
from slipway.relay.ops.image.resize import ResizeAttrs, keys_kernel, rounded, source_coordinates

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

Array = np.ndarray[Any, Any]


def crop_coordinates(start: float, end: float, extent: int, out: int) -> Array:
    """Return the source coordinates of a region that runs from `start` to `end` of an axis."""
    take_table(out)
    if out > 1:
        return start * (extent - 1) + np.arange(out) * (end - start) * (extent - 1) / (out - 1)
    return np.full(out, 0.5 * (start + end) * (extent - 1))


def axis_matrix(attrs: ResizeAttrs, x: Array, extent: int, shrink: float) -> Array:
    """Return the (out, extent) weights for source coordinates `x`.

    `shrink` below 1 widens the filter by its inverse.
    """
    take_table(len(x), extent)
    matrix = np.zeros((len(x), extent))
    rows = np.arange(len(x))
    if attrs.method == "nearest_neighbor":
        position = rounded(x, attrs.rounding_method).clip(0, extent - 1).astype(np.int64)
        matrix[rows, position] = 1.0
        return matrix
    reach = 1 if attrs.method == "linear" else 2
    first = int(np.floor(-reach / shrink)) + 1
    base = np.ceil(x) - 1  # an integer coordinate belongs to the element on its left
    for tap in range(first, 2 - first):
        distance = (tap - (x - base)) * shrink
        if attrs.method == "linear":
            weight = np.clip(1 - np.abs(distance), 0, 1)
        else:
            weight = keys_kernel(distance, attrs.cubic_alpha)
        position = (base + tap).astype(np.int64)
        if attrs.cubic_exclude:
            weight = np.where((position >= 0) & (position < extent), weight, 0.0)
        np.add.at(matrix, (rows, position.clip(0, extent - 1)), weight)
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def antialiased(attrs: ResizeAttrs, data: Expr) -> Any:
    """Resample `data` with filters as wide as the output's step."""
    matrices = {}
    for axis, (extent, out) in enumerate(zip(data.tensor_type.shape, attrs.size, strict=True)):
        scale = attrs.scales[axis]
        if out != extent or scale != 1.0:
            take_table(out)
            x = source_coordinates(attrs, axis, extent, out)
            matrices[axis] = axis_matrix(attrs, x, extent, min(scale, 1.0))
    return apply_matrices(data, matrices)


def cropped(
    attrs: ResizeAttrs, data: Expr, starts: Sequence[float], ends: Sequence[float], outside: float
) -> Any:
    """Resample a region of `data`; positions beyond the input become `outside`."""
    matrices, beyond = {}, np.zeros((1,) * data.tensor_type.rank, bool)
    for axis, (extent, out) in enumerate(zip(data.tensor_type.shape, attrs.size, strict=True)):
        if out == extent and (starts[axis], ends[axis]) == (0.0, 1.0):
            continue
        x = crop_coordinates(starts[axis], ends[axis], extent, out)
        matrices[axis] = axis_matrix(attrs, x.clip(0, extent - 1), extent, 1.0)
        view = [1] * data.tensor_type.rank
        view[axis] = -1
        beyond = beyond | ((x < 0) | (x > extent - 1)).reshape(view)
    result = apply_matrices(data, matrices)
    if not beyond.any():
        return result
    return relay.where(const(beyond), const(outside, data.tensor_type.dtype), result)


def apply_matrices(data: Expr, matrices: dict[int, Array]) -> Any:
    """Multiply `data` along each axis by a matrix (out, extent)."""
    dtype = data.tensor_type.dtype
    for axis, matrix in matrices.items():
        rank = data.tensor_type.rank
        order = [a for a in range(rank) if a != axis] + [axis]
        moved = relay.transpose(data, order)
        lead = moved.tensor_type.shape[:-1]
        rows = relay.reshape(moved, (int(np.prod(lead, dtype=np.int64)), matrix.shape[1]))
        product = relay.nn.dense(rows, const(matrix.astype(dtype)))
        if product.tensor_type.dtype != dtype:
            product = relay.cast(product, dtype)
        back = [order.index(a) for a in range(rank)]
        data = relay.transpose(relay.reshape(product, (*lead, matrix.shape[0])), back)
    return data
