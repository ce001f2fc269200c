"""STFT, MelWeightMatrix and Col2Im whose result has a stated shape, but steps of the run's own."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_table
from slipway.frontends.onnx.converters import NodeView
from slipway.frontends.onnx.operators.arithmetic import dtype_of
from slipway.relay.op_registry import const

Shape = tuple[int, ...]


def _whole(value: Any) -> Any:
    return const(np.asarray(value, np.int64))


def _number(node: NodeView, index: int) -> Any:
    """Return an input of one integer as an int64 scalar."""
    return relay.reshape(relay.cast(node.input(index), "int64"), ())


def _counted(count: int, axis: int, rank: int) -> Any:
    """Return 0, 1, ... along one of so many axes."""
    take_table(count)
    return _whole(np.arange(count).reshape([-1 if a == axis else 1 for a in range(rank)]))


def stft(node: NodeView, wanted: Shape) -> Any:
    """Frames that begin at run-time places, as long as a run-time length says."""
    if len(wanted) != 4 or not (node.has(2) or node.has(3)):
        return None
    if node.rank() not in (2, 3) or (node.has(2) and node.rank(2) != 1):
        return None
    _, frames, bins, _ = wanted
    signal = node.input(0)
    if signal.tensor_type.rank == 2:
        signal = relay.expand_dims(signal, 2)
    batch, size, parts = signal.tensor_type.shape
    dtype = signal.tensor_type.dtype
    # So many samples at most give the stated number of bins.
    room = 2 * (bins - 1) + 1 if node.attr("onesided", 1) else bins
    room = min(room, size, *(node.type(2).shape if node.has(2) else ()))
    length = _number(node, 3) if node.has(3) else _whole(node.type(2).shape[0])
    starts = relay.multiply(_counted(frames, 0, 2), _number(node, 1))
    cut = relay.take(signal, relay.add(starts, _counted(room, 1, 2)), axis=1)
    inside = relay.cast(relay.less(_counted(room, 0, 1), length), dtype)
    if node.has(2):
        inside = relay.multiply(inside, relay.strided_slice(node.input(2), [0], [room], axes=[0]))
    cut = relay.multiply(cut, relay.reshape(inside, (1, 1, room, 1)))
    # The angle of a product of places is that of what is left of it after whole rotations.
    phase = relay.floor_mod(relay.multiply(_counted(room, 0, 2), _counted(bins, 1, 2)), length)
    angle = relay.divide(relay.cast(phase, "float64"), relay.cast(length, "float64"))
    angle = relay.multiply(angle, const(-2 * np.pi, "float64"))
    cosine, sine = (relay.cast(f(angle), dtype) for f in (relay.cos, relay.sin))  # (room, bins)

    def product(part: int, table: Any) -> Any:
        rows = relay.strided_slice(cut, [part], [part + 1], axes=[3])
        rows = relay.reshape(rows, (batch * frames, room))
        return relay.nn.dense(rows, relay.transpose(table, (1, 0)))

    real, imaginary = product(0, cosine), product(0, sine)
    if parts == 2:
        real = relay.subtract(real, product(1, sine))
        imaginary = relay.add(imaginary, product(1, cosine))
    return relay.reshape(relay.stack([real, imaginary], 2), (batch, frames, bins, 2))


def mel_weight_matrix(node: NodeView, wanted: Shape) -> Any:
    """Triangles over the bins, as the operator's definition has them, in float64."""
    if len(wanted) != 2:
        return None
    bins, bands = wanted
    take_table(bins, bands + 2)
    length, rate = _number(node, 1), relay.cast(_number(node, 2), "float64")

    def mel(index: int) -> Any:
        hertz = relay.reshape(relay.cast(node.input(index), "float64"), ())
        ratio = relay.add(relay.divide(hertz, const(700.0, "float64")), const(1.0, "float64"))
        return relay.multiply(relay.log(ratio), const(2595 / np.log(10), "float64"))

    low, high = mel(3), mel(4)
    share = const(np.arange(bands + 2) / (bands + 2), "float64")
    positions = relay.add(low, relay.multiply(relay.subtract(high, low), share))
    hertz = relay.exp(relay.multiply(positions, const(np.log(10) / 2595, "float64")))
    hertz = relay.multiply(relay.subtract(hertz, const(1.0, "float64")), const(700.0, "float64"))
    grown = relay.cast(relay.add(length, _whole(1)), "float64")
    at = relay.cast(relay.floor(relay.divide(relay.multiply(grown, hertz), rate)), "int64")
    left, centre, right = (
        relay.strided_slice(at, [first], [first + bands], axes=[0]) for first in range(3)
    )
    position = _counted(bins, 0, 2)

    def ratio(above: Any, below: Any) -> Any:
        below = relay.maximum(below, _whole(1))
        return relay.divide(relay.cast(above, "float64"), relay.cast(below, "float64"))

    width = relay.subtract(centre, left)
    one, none = const(1.0, "float64"), const(0.0, "float64")
    up = ratio(relay.subtract(position, left), width)
    up = relay.where(relay.equal(width, _whole(0)), one, up)
    down = ratio(relay.subtract(right, position), relay.subtract(right, centre))
    is_up = relay.logical_and(
        relay.greater_equal(position, left), relay.less_equal(position, centre)
    )
    is_down = relay.logical_and(relay.greater_equal(position, centre), relay.less(position, right))
    bank = relay.where(is_down, down, relay.where(is_up, up, none))
    return relay.cast(bank, dtype_of(node, node.attr("output_datatype", 1)))


def col_to_im(node: NodeView, wanted: Shape) -> Any:
    """Each column's elements added at their places in the image, found from the block's extents."""
    batch, channels, *image = wanted if len(wanted) > 2 else (0, 0, 0)
    axes, ones = len(image), (1,) * len(image)
    if node.rank() != 3 or node.type(2).shape != (axes,) or not channels:
        return None
    _, rows, columns = node.type().shape
    elements = rows // channels  # of a block
    strides, dilations = tuple(node.attr("strides", ones)), tuple(node.attr("dilations", ones))
    pads = tuple(node.attr("pads", (0,) * (2 * axes)))
    if (len(strides), len(dilations), len(pads)) != (axes, axes, 2 * axes):
        raise node.unsupported(f"strides, dilations or pads are not those of {axes} axes")
    if min(strides) < 1 or min(dilations) < 1:
        raise node.unsupported(f"strides {strides} and dilations {dilations}: each is at least 1")
    block = relay.cast(node.input(2), "int64")
    element, column = _counted(elements, 0, 2), _counted(columns, 1, 2)
    position: Any = _whole(0)
    inside: Any = const(True, "bool")
    factor = 1
    for axis in reversed(range(axes)):
        extent = relay.reshape(relay.strided_slice(block, [axis], [axis + 1]), ())
        reach = relay.multiply(relay.subtract(extent, _whole(1)), _whole(dilations[axis]))
        space = _whole(image[axis] + pads[axis] + pads[axis + axes] - 1)
        steps = relay.floor_divide(relay.subtract(space, reach), _whole(strides[axis]))
        steps = relay.add(steps, _whole(1))
        within = relay.multiply(relay.floor_mod(element, extent), _whole(dilations[axis]))
        begin = relay.multiply(relay.floor_mod(column, steps), _whole(strides[axis]))
        at = relay.subtract(relay.add(begin, within), _whole(pads[axis]))
        there = relay.greater_equal(at, _whole(0))
        there = relay.logical_and(there, relay.less(at, _whole(image[axis])))
        inside = relay.logical_and(inside, there)
        position = relay.add(position, relay.multiply(at, _whole(factor)))
        factor *= image[axis]
        element = relay.floor_divide(element, extent)
        column = relay.floor_divide(column, steps)
    return _summed(node.input(0), position, inside, (batch * channels, elements * columns), wanted)


def _summed(data: Any, position: Any, inside: Any, size: Shape, wanted: Sequence[int]) -> Any:
    """Add each element at its place in the image, those outside beside it."""
    count = prod(wanted[2:])
    positions = relay.reshape(relay.where(inside, position, _whole(count)), (1, size[1]))
    take_table(*size)
    room = relay.zeros((size[0], count + 1), data.tensor_type.dtype)
    found = relay.scatter_elements(
        room, relay.broadcast_to(positions, size), relay.reshape(data, size), 1, "add"
    )
    found = relay.strided_slice(found, [0], [count], axes=[1])
    return relay.reshape(found, tuple(wanted))
