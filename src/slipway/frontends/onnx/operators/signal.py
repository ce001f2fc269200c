"""Fourier transforms, as products with constant matrices; Col2Im; bit reinterpretation's kin."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.fourier import fourier
from slipway.frontends.onnx.converters import NodeView, converter
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
    order = [a for a in range(rank - 1) if a != axis] + [axis, rank - 1]
    moved = relay.transpose(node.input(0), order)
    if length < 1:
        raise node.unsupported(f"the length is {length}")
    result = fourier(moved, int(length), inverse, onesided)
    return relay.transpose(result, [order.index(a) for a in range(rank)])


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
    batch, size, _ = signal.tensor_type.shape
    if step < 1 or not 1 <= length <= size:
        raise node.unsupported(f"it cuts {size} samples into frames of {length} by {step}")
    frames = (size - length) // step + 1
    check_table(node, frames, length)
    places = (np.arange(frames)[:, None] * step + np.arange(length)).astype(np.int64)
    cut = relay.take(signal, const(places), axis=1)
    if window is not None:
        cut = relay.multiply(cut, relay.reshape(window, (1, 1, length, 1)))
    result = fourier(cut, length, False, bool(node.attr("onesided", 1)))
    bins = result.tensor_type.shape[2]
    return relay.reshape(result, (batch, frames, bins, 2))


@converter("Col2Im")
def col_to_im(node: NodeView) -> Any:
    """Columns summed back into an image: a transposed convolution with unit kernels."""
    image, block = node.ints(1, "the image shape"), node.ints(2, "the block shape")
    count = len(block)
    if count not in (1, 2, 3):
        raise node.unsupported(f"has {count} spatial axes; 1 to 3 are served")
    ones = (1,) * count
    strides, dilation = tuple(node.attr("strides", ones)), tuple(node.attr("dilations", ones))
    padding = tuple(node.attr("pads", (0,) * (2 * count)))
    size, extra = [], []
    for a in range(count):
        room = image[a] + padding[a] + padding[a + count] - (block[a] - 1) * dilation[a] - 1
        size.append(room // strides[a] + 1)
        extra.append(room % strides[a])
    taps = prod(block)
    batch, rows, _ = node.type().shape
    if min(block) < 1 or rows % taps:
        raise node.unsupported(f"{rows} rows are no channels of blocks {block}")
    channels = rows // taps
    check_table(node, channels, taps, taps)
    unit = np.eye(taps).reshape(taps, 1, *block)
    weight = np.tile(unit, (channels, 1, *ones)).astype(node.type().dtype)
    function = (
        relay.nn.conv1d_transpose, relay.nn.conv2d_transpose, relay.nn.conv3d_transpose,
    )[count - 1]  # fmt: skip
    return function(
        relay.reshape(node.input(0), (batch, rows, *size)), const(weight), strides, padding,
        dilation, groups=channels, output_padding=extra,
    )  # fmt: skip


@converter("GridSample")
def grid_sample(node: NodeView) -> Any:
    """Data interpolated at the positions of a grid."""
    names = {"linear": "bilinear", "cubic": "bicubic"}
    method = node.attr("mode", "linear")
    return make("image.grid_sample")(
        node.input(0), node.input(1), names.get(method, method), "NCHW",
        node.attr("padding_mode", "zeros"), bool(node.attr("align_corners", 0)),
    )  # fmt: skip
