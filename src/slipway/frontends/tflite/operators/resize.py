"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: rows and columns picked by constant positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.operators.arithmetic import is_quantized
from slipway.relay.dims import is_open
from slipway.relay.op_registry import const

BITS = 10  # of the fraction of an integer coordinate
MAX_SIZE = 1 << 20  # rows or columns; there is a constant with the place of each


def _sizes(node: NodeView) -> tuple[int, ...]:
    """Return (rows, columns) of the result."""
    if len(node.shape()) != 4:
        raise node.unsupported(f"its data has the shape {node.shape()}, not four axes")
    sizes = node.integers(1)
    if len(sizes) != 2 or not all(0 < size <= MAX_SIZE for size in sizes):
        raise node.unsupported(f"it resizes to {sizes}; there must be two sizes up to {MAX_SIZE}")
    return sizes


def _is_open(node: NodeView) -> bool:
    return any(map(is_open, (*node.shape()[1:3], *_sizes(node))))


def _resized(node: NodeView, method: str) -> Any:
    """Return the image of a size that is known when the model runs, or made of one."""
    half, corners = node.option("half_pixel_centers"), node.option("align_corners")
    coordinates = "align_corners" if corners else "half_pixel" if half else "asymmetric"
    # The nearest to a middle, (i + 1/2) scale, rounded down, is what half_pixel rounds upward.
    rounding = "" if method == "linear" else "round" if corners or half else "floor"
    return relay.image.resize2d(
        node[0], _sizes(node), None, "NHWC", method, coordinates, rounding_method=rounding
    )


@converter("RESIZE_NEAREST_NEIGHBOR")
def nearest(node: NodeView) -> Any:
    """The element whose position is nearest, in float32 as TFLite computes it."""
    if _is_open(node):
        return _resized(node, "nearest_neighbor")
    out = node[0]
    for axis, size in zip((1, 2), _sizes(node), strict=True):
        extent = node.shape()[axis]
        scale = np.float32(extent) / np.float32(size)
        if node.option("align_corners") and size > 1:
            scale = np.float32(extent - 1) / np.float32(size - 1)
        half = np.float32(0.5 if node.option("half_pixel_centers") else 0.0)
        position = (np.arange(size, dtype=np.float32) + half) * scale
        if node.option("align_corners"):
            position = np.floor(position + np.float32(0.5))
        index = np.clip(np.floor(position), 0, extent - 1)
        out = relay.take(out, array_constant(index, "int32"), axis)
    return out


@converter("RESIZE_BILINEAR")
def bilinear(node: NodeView) -> Any:
    """Between the four nearest elements; integers with 10 bits of fraction on each axis."""
    if _is_open(node):
        if is_quantized(node):
            raise node.unsupported("it interpolates integers, which needs a size that is known")
        return _resized(node, "linear")
    coordinates = _integer if is_quantized(node) else _real
    parts = [
        coordinates(node, node.shape()[axis], size)
        for axis, size in zip((1, 2), _sizes(node), strict=True)
    ]
    dtype = "float32"
    if is_quantized(node):  # 16 bits of data and 20 of weights are more than 32
        dtype = "int64" if node.tensor(0).dtype == "int16" else "int32"
    one = 1 << BITS if is_quantized(node) else 1.0
    (low_y, high_y, part_y), (low_x, high_x, part_x) = parts
    total: Any = None
    for rows, weight_y in ((low_y, one - part_y), (high_y, part_y)):
        for columns, weight_x in ((low_x, one - part_x), (high_x, part_x)):
            picked = relay.take(node[0], array_constant(rows, "int32"), 1)
            picked = relay.take(picked, array_constant(columns, "int32"), 2)
            term = relay.multiply(
                relay.cast(picked, dtype), array_constant(weight_y.reshape(-1, 1, 1), dtype)
            )
            term = relay.multiply(term, array_constant(weight_x.reshape(-1, 1), dtype))
            total = term if total is None else relay.add(total, term)
    if not is_quantized(node):
        return total
    half, unit = const(1 << (2 * BITS - 1), dtype), const(1 << (2 * BITS), dtype)
    nudged = relay.where(relay.greater(total, const(0, dtype)), total + half, total - half)
    return relay.cast(relay.divide(nudged, unit), node.out().dtype)


def _integer(node: NodeView, extent: int, size: int) -> tuple[Any, Any, Any]:
    scale = ((1 << BITS) * extent + size // 2) // size
    if node.option("align_corners") and size > 1:
        scale = ((1 << BITS) * (extent - 1) + (size - 1) // 2) // (size - 1)
    position = np.arange(size, dtype=np.int64) * scale
    if node.option("half_pixel_centers"):
        position += scale // 2 - (1 << (BITS - 1))
    low = np.maximum(np.sign(position) * (np.abs(position) >> BITS), 0)
    upper = position + (1 << BITS) - 1
    high = np.minimum(np.sign(upper) * (np.abs(upper) >> BITS), extent - 1)
    return low, high, position - (low << BITS)


def _real(node: NodeView, extent: int, size: int) -> tuple[Any, Any, Any]:
    scale = np.float32(extent) / np.float32(size)
    if node.option("align_corners") and size > 1:
        scale = np.float32(extent - 1) / np.float32(size - 1)
    position = np.arange(size, dtype=np.float32)
    if node.option("half_pixel_centers"):
        position = (position + np.float32(0.5)) * scale - np.float32(0.5)
    else:
        position = position * scale
    floor = np.floor(position)
    low = np.maximum(floor, 0)
    high = np.minimum(floor + 1, extent - 1)
    return low, high, position - low
