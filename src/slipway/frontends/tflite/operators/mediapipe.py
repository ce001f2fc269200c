"""Custom operators of MediaPipe: a transposed convolution, and landmarks that turn images."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.tflite.converters import NodeView, array_constant, converter, same_padding
from slipway.frontends.tflite.flexbuffer import read_map
from slipway.frontends.tflite.floating import channels_first, channels_last
from slipway.frontends.tflite.operators.matmul import float_transposed
from slipway.relay.op_registry import const, make

SAME, VALID = 1, 2


@converter("CUSTOM:Convolution2DTransposeBias")
def transpose_conv_bias(node: NodeView) -> Any:
    """Inputs: data (N, H, W, I), weights (O, H, W, I), bias (O,)."""
    options = node.operator.custom_options
    if len(options) < 12:
        raise node.unsupported("its options are missing")
    padding, stride_w, stride_h = struct.unpack_from("<iii", options)
    kernel, shape = node.tensor(1).shape, node.shape()
    if len(kernel) != 4 or len(shape) != 4 or kernel[3] != shape[3] or min(stride_w, stride_h) < 1:
        raise node.unsupported(f"its data is {shape}, its weights are {kernel}")
    if padding not in (SAME, VALID):
        raise node.unsupported(f"the padding {padding} is not known")
    strides, window = (stride_h, stride_w), kernel[1:3]
    before: tuple[int, ...] = (0, 0)
    if padding == SAME:
        size = tuple(n * s for n, s in zip(shape[1:3], strides, strict=True))
        before = same_padding(size, window, strides, (1, 1))[:2]
    else:
        size = tuple((n - 1) * s + k for n, s, k in zip(shape[1:3], strides, window, strict=True))
    return float_transposed(node, node[0], 1, 2, (shape[0], *size, kernel[0]), strides, before)


@converter("CUSTOM:TransformLandmarks")
def transform_landmarks(node: NodeView) -> Any:
    """Landmarks (1, N, 2 or 3) on a plane by the first two rows of a matrix (1, 4, 4).

    A third coordinate stays as it is.
    """
    _, count, size = _landmarks(node)
    rows = relay.strided_slice(_matrix(node), [0, 0], [2, 4])
    rotation = relay.take(rows, const([0, 1], "int64"), axis=1)
    shift = relay.reshape(relay.strided_slice(rows, [0, 3], [2, 4]), (1, 2))
    points = relay.reshape(node[0], (count, size))
    flat = points if size == 2 else relay.strided_slice(points, [0, 0], [count, 2])
    parts = [relay.add(relay.nn.dense(flat, rotation), shift)]
    if size == 3:
        parts.append(relay.strided_slice(points, [0, 2], [count, 3]))
    moved = parts[0] if size == 2 else relay.concatenate(parts, 1)
    return relay.reshape(moved, (1, count, size))


@converter("CUSTOM:TransformTensorBilinear")
def transform_tensor(node: NodeView) -> Any:
    """An image (1, H, W, C) read where a matrix (1, 4, 4) sends the middles of the new pixels.

    What is read not wholly between the middles of the outermost pixels is zero.
    """
    options = read_map(node.operator.custom_options)
    height, width = (int(options.get(f"output_{n}", 0)) for n in ("height", "width"))
    if len(node.shape()) != 4 or node.shape()[0] != 1 or min(height, width) < 1:
        raise node.unsupported(f"its data is {node.shape()}, its result {(height, width)}")
    check_table(node, height, width, 3)
    node.need_dtype("float32")
    rows, columns = np.mgrid[:height, :width].astype(np.float32) + np.float32(0.5)
    middles = np.stack([columns, rows, np.ones_like(rows)], -1).reshape(-1, 3)
    used = relay.take(_matrix(node), const([0, 1, 3], "int64"), axis=1)
    used = relay.strided_slice(used, [0, 0], [2, 3])  # x and y of (column, row, 1)
    positions = relay.nn.dense(used, array_constant(middles, "float32"))
    positions = relay.subtract(positions, const(0.5, "float32"))
    last = np.array([[node.shape()[2] - 1], [node.shape()[1] - 1]], np.float32)
    inside = relay.logical_and(
        relay.greater_equal(positions, const(0.0, "float32")),
        relay.less_equal(positions, array_constant(last, "float32")),
    )
    inside = relay.all(inside, [0])
    scaled = relay.multiply(positions, array_constant(2 / np.maximum(last, 1), "float32"))
    grid = relay.subtract(scaled, const(1.0, "float32"))
    grid = relay.reshape(relay.transpose(grid, (1, 0)), (1, height, width, 2))
    read = make("image.grid_sample")(
        channels_first(node[0]), grid, "bilinear", "NCHW", "border", True
    )
    kept = relay.reshape(inside, (1, 1, height, width))
    return channels_last(relay.where(kept, read, const(0.0, "float32")))


@converter("CUSTOM:Landmarks2TransformMatrix")
def landmarks_to_matrix(node: NodeView) -> Any:
    """The matrix (1, 4, 4) that sends a small image onto the box around some landmarks.

    The box has the direction of a line between two of them, less a given angle.
    """
    options = read_map(node.operator.custom_options)
    _, count, size = _landmarks(node)
    ends = [int(options.get(f"{side}_rotation_idx", -1)) for side in ("left", "right")]
    subset = tuple(int(i) for i in options.get("subset_idxs", ()))
    if not subset or not all(0 <= i < count for i in (*ends, *subset)):
        raise node.unsupported(f"its options name landmarks that are not among its {count}")
    height, width = (int(options.get(f"output_{n}", 0)) for n in ("height", "width"))
    if min(height, width) < 1:
        raise node.unsupported(f"its image is {height} x {width}")
    points = relay.reshape(node[0], (count, size))
    cosine, sine = _direction(points, ends, float(options.get("target_rotation_radians", 0.0)))
    chosen = relay.take(points, const(subset, "int64"), axis=0)
    x, y = (relay.strided_slice(chosen, [0, a], [len(subset), a + 1]) for a in (0, 1))
    sides, middle = [], []
    rotated = (
        relay.add(relay.multiply(x, cosine), relay.multiply(y, sine)),
        relay.subtract(relay.multiply(y, cosine), relay.multiply(x, sine)),
    )
    for value, extent, scale in zip(rotated, (width, height), ("scale_x", "scale_y"), strict=True):
        low, high = relay.min(value), relay.max(value)
        factor = const(np.float32(options.get(scale, 1.0)) / np.float32(extent), "float32")
        sides.append(relay.multiply(relay.subtract(high, low), factor))
        middle.append(relay.multiply(relay.add(high, low), const(0.5, "float32")))
    across = (relay.multiply(sides[0], cosine), relay.multiply(sides[0], sine))
    down = (relay.negative(relay.multiply(sides[1], sine)), relay.multiply(sides[1], cosine))
    centre = (
        relay.subtract(relay.multiply(middle[0], cosine), relay.multiply(middle[1], sine)),
        relay.add(relay.multiply(middle[0], sine), relay.multiply(middle[1], cosine)),
    )
    zero, one = const(0.0, "float32"), const(1.0, "float32")
    entries = []
    for axis in (0, 1):
        half = relay.add(
            relay.multiply(across[axis], const(width / 2, "float32")),
            relay.multiply(down[axis], const(height / 2, "float32")),
        )
        entries += [across[axis], down[axis], zero, relay.subtract(centre[axis], half)]
    entries += [zero, zero, one, zero, zero, zero, zero, one]
    return relay.reshape(relay.stack(entries, 0), (1, 4, 4))


def _direction(points: Any, ends: list[int], target: float) -> tuple[Any, Any]:
    """Return cosine and sine of the angle from one landmark to another, less `target`."""
    pair = relay.take(points, const(ends, "int64"), axis=0)
    step = relay.subtract(
        relay.strided_slice(pair, [1, 0], [2, 2]), relay.strided_slice(pair, [0, 0], [1, 2])
    )
    x, y = (relay.reshape(relay.strided_slice(step, [0, a], [1, a + 1]), ()) for a in (0, 1))
    length = relay.sqrt(relay.add(relay.multiply(x, x), relay.multiply(y, y)))
    zero, one = const(0.0, "float32"), const(1.0, "float32")
    still = relay.equal(length, zero)  # atan2(0, 0) is 0
    length = relay.where(still, one, length)
    x, y = relay.divide(relay.where(still, one, x), length), relay.divide(y, length)
    if not target:
        return x, y
    rotation = [const(f(target), "float32") for f in (np.cos, np.sin)]
    return (
        relay.add(relay.multiply(x, rotation[0]), relay.multiply(y, rotation[1])),
        relay.subtract(relay.multiply(y, rotation[0]), relay.multiply(x, rotation[1])),
    )


def _landmarks(node: NodeView) -> tuple[int, ...]:
    node.need_dtype("float32")
    shape = node.shape()
    if len(shape) != 3 or shape[0] != 1 or shape[2] not in (2, 3) or not shape[1]:
        raise node.unsupported(f"its landmarks have the shape {shape}, not (1, N, 2 or 3)")
    return shape


def _matrix(node: NodeView) -> Any:
    node.need_dtype("float32", position=1)
    if node.shape(1) != (1, 4, 4):
        raise node.unsupported(f"its matrix has the shape {node.shape(1)}, not (1, 4, 4)")
    return relay.reshape(node[1], (4, 4))
