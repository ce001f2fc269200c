"""Fourier transforms, as products with constant matrices; Col2Im; grids and what they sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.columns import image_of_columns
from slipway.frontends.fourier import fourier
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.relay.dims import is_open
from slipway.relay.op_registry import const, make


@converter("DFT")
def dft(node: NodeView) -> Any:
    """The discrete Fourier transform along one axis."""
    rank = node.rank()
    if node.opset >= 20:
        axis = node.ints(2, "the axis")[0] if node.has(2) else -2
    else:
        axis = node.attr("axis", 1)
    return transformed(node, axis % rank)


def transformed(node: NodeView, axis: int) -> Any:
    """Return the transform that a DFT node asks for, along `axis`."""
    rank = node.rank()
    inverse, onesided = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    length = node.ints(1, "the length")[0] if node.has(1) else node.type().shape[axis]
    if inverse and onesided and not node.has(1):
        length = 2 * (node.type().shape[axis] - 1)
    _need_parts(node, node.type().shape[-1])
    order = [a for a in range(rank - 1) if a != axis] + [axis, rank - 1]
    moved = relay.transpose(node.input(0), order)
    if length < 1:
        raise node.unsupported(f"the length is {length}")
    result = fourier(moved, int(length), inverse, onesided)
    return relay.transpose(result, [order.index(a) for a in range(rank)])


def _need_parts(node: NodeView, parts: int) -> None:
    if parts not in (1, 2):
        raise node.unsupported(
            f"the last axis of its input has {parts} elements; they must be 1, the real part, or 2"
        )


@converter("STFT")
def stft(node: NodeView) -> Any:
    """Fourier transforms of windows that step along a signal."""
    step = node.ints(1, "the step")[0]
    window = node.optional(2)
    if node.has(3):
        length = node.ints(3, "the frame length")[0]
    elif window is not None:
        length = window.tensor_type.shape[0]
    else:
        raise node.unsupported("neither a window nor a frame length is given")
    signal = node.input(0)
    if signal.tensor_type.rank == 2:
        signal = relay.expand_dims(signal, 2)
    batch, size, parts = signal.tensor_type.shape
    _need_parts(node, parts)
    if step < 1 or not 1 <= length <= size:
        raise node.unsupported(f"it cuts {size} samples into frames of {length} by {step}")
    frames = (size - length) // step + 1
    check_table(node, frames, length)
    positions = (np.arange(frames)[:, None] * step + np.arange(length)).astype(np.int64)
    cut = relay.take(signal, const(positions), axis=1)
    if window is not None:
        cut = relay.multiply(cut, relay.reshape(window, (1, 1, length, 1)))
    result = fourier(cut, length, False, bool(node.attr("onesided", 1)))
    bins = result.tensor_type.shape[2]
    return relay.reshape(result, (batch, frames, bins, 2))


@converter("Col2Im")
def col_to_im(node: NodeView) -> Any:
    """Columns summed back into an image."""
    image, block = node.ints(1, "the image shape"), node.ints(2, "the block shape")
    ones = (1,) * len(block)
    return image_of_columns(
        node.input(0), image, block, tuple(node.attr("strides", ones)),
        tuple(node.attr("dilations", ones)),
        tuple(node.attr("pads", (0,) * (2 * len(block)))),
    )  # fmt: skip


@converter("GridSample", "com.microsoft.GridSample")
def grid_sample(node: NodeView) -> Any:
    """Data interpolated at the positions of a grid; a NaN is -1, as onnxruntime has it."""
    names = {"linear": "bilinear", "cubic": "bicubic"}
    method, grid = node.attr("mode", "linear"), node.input(1)
    grid = relay.where(relay.isnan(grid), const(-1, node.type(1).dtype), grid)
    return make("image.grid_sample")(
        node.input(0), grid, names.get(method, method), "NCHW",
        node.attr("padding_mode", "zeros"), bool(node.attr("align_corners", 0)),
    )  # fmt: skip


@converter("AffineGrid")
def affine_grid(node: NodeView) -> Any:
    """The positions that GridSample reads: those of the result, moved by an affine map."""
    theta, dtype = node.input(0), node.type().dtype
    spatial = node.ints(1, "the size")[2:]
    rank = len(spatial)
    if rank not in (2, 3) or node.rank() != 3:
        raise node.unsupported(f"its size has {rank} spatial axes and theta is {node.type()}")
    corners = bool(node.attr("align_corners", 0))
    grid: Any = None
    for column in range(rank + 1):  # of the map: x, y (and z), then what is added
        part = relay.strided_slice(theta, [column], [column + 1], axes=[2])
        part = relay.reshape(part, (0, *[1] * rank, -1))
        if column < rank:
            axis = rank - 1 - column
            along = [-1 if i == axis else 1 for i in range(rank)]
            positions = _positions(spatial[axis], corners, dtype)
            part = relay.multiply(part, relay.reshape(positions, (1, *along, 1)))
        grid = part if grid is None else relay.add(grid, part)
    return grid


def _positions(extent: Any, corners: bool, dtype: str) -> Any:
    """Return where elements lie between -1 and 1, as centres or from end to end.

    One element from end to end is at 1, as onnxruntime has it; the standard's definition divides
    by zero there.
    """
    one, two = const(1, dtype), const(2, dtype)
    if not is_open(extent):
        whole = np.arange(extent)
        if corners:
            return const(np.linspace(-1, 1, extent) if extent > 1 else np.ones(1), dtype)
        return const((2 * whole + 1) / extent - 1, dtype)
    twice = relay.multiply(relay.cast(relay.arange(0, extent, 1, "int64"), dtype), two)
    count = relay.cast(relay.arange(extent, extent + 1, 1, "int64"), dtype)
    if not corners:
        return relay.subtract(relay.divide(relay.add(twice, one), count), one)
    made = relay.subtract(relay.divide(twice, relay.subtract(count, one)), one)
    return relay.where(relay.equal(count, one), one, made)
