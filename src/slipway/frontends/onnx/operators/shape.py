"""Operators on shapes and layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.product import element_count
from slipway.relay.dims import SymbolDim, is_open
from slipway.relay.op_registry import const


@converter("Shape")
def shape_of(node: NodeView) -> Any:
    """The shape, known from the type; open sizes are computed when the model runs."""
    dims, (start, end) = node.type().shape, (node.attr("start", 0), node.attr("end"))
    if not any(map(is_open, dims[start:end])):
        return const(np.array(dims[start:end], np.int64))
    found = slice(start, end).indices(len(dims))[:2]
    return relay.strided_slice(node.sizes.shape(node.input(0)), found[:1], found[1:])


@converter("Size")
def size_of(node: NodeView) -> Any:
    """The number of elements, known from the type; an open one is computed when the model runs."""
    if any(map(is_open, node.type().shape)):
        return node.sizes.count(node.input(0))
    return const(np.array(node.type().size, np.int64))


@converter("Reshape")
def reshape(node: NodeView) -> Any:
    """A new shape, as input or (opset 1) attribute."""
    wanted = node.ints_from(1, "shape", "the shape")
    if wanted is None:
        raise node.unsupported("no shape is given")
    return relay.reshape(node.input(0), wanted, allowzero=bool(node.attr("allowzero", 0)))


@converter("Flatten")
def flatten(node: NodeView) -> Any:
    """Two axes: all before `axis`, all from it on."""
    axis, shape = node.attr("axis", 1), node.type().shape
    axis = axis + len(shape) if axis < 0 else axis
    if axis == 1 and shape:
        return relay.nn.batch_flatten(node.input(0))
    sizes = (element_count(shape[:axis]), element_count(shape[axis:]))
    return relay.reshape(node.input(0), sizes, allowzero=True)


@converter("Transpose")
def transpose(node: NodeView) -> Any:
    """Axes permuted."""
    return relay.transpose(node.input(0), node.attr("perm"))


@converter("Squeeze")
def squeeze(node: NodeView) -> Any:
    """Axes of extent 1 dropped; one that may have other sizes has, as the node says, this one."""
    axes, x, shape = node.ints_from(1, "axes", "the axes"), node.input(0), node.type().shape
    if axes is None or not all(-len(shape) <= a < len(shape) for a in axes):
        return relay.squeeze(x, axes)
    dropped = sorted({a % len(shape) for a in axes})
    for axis in reversed([a for a in dropped if _may_be_one(shape[a])]):
        x = relay.take(x, const(0, "int64"), axis, mode="fast")
        dropped = [a - (a > axis) for a in dropped if a != axis]
    return relay.squeeze(x, tuple(dropped)) if dropped else x


def _may_be_one(extent: Any) -> bool:
    """Return whether an open size may be 1, and may be another."""
    if not isinstance(extent, SymbolDim):
        return False
    return extent.low <= 1 and (extent.high is None or extent.high >= 1)


@converter("Unsqueeze")
def unsqueeze(node: NodeView) -> Any:
    """Axes of extent 1 put in; they count in the result."""
    axes = node.ints_from(1, "axes", "the axes")
    if axes is None:
        raise node.unsupported("no axes are given")
    rank = node.rank() + len(axes)
    result = node.input(0)
    for axis in sorted(a % rank for a in axes):
        result = relay.expand_dims(result, axis)
    return result


@converter("Concat")
def concat(node: NodeView) -> Any:
    """Inputs joined along an axis; empty ones of rank 1 add nothing."""
    parts = [x for x in node.inputs if x is not None]
    if len(parts) == 1:
        return parts[0]
    return relay.concatenate(parts, node.attr("axis", 1))


@converter("Split")
def split(node: NodeView) -> Any:
    """Parts of given or equal lengths."""
    axis = node.attr("axis", 0) % node.rank()
    extent = node.type().shape[axis]
    lengths = node.ints_from(1, "split", "the lengths")
    if lengths is None:
        count = int(node.attr("num_outputs", len(node.outputs)))
        if count != len(node.outputs):
            raise node.unsupported(f"num_outputs is {count}, but it has {len(node.outputs)}")
        chunk = -(-extent // count)
        lengths = tuple(min(chunk, extent - chunk * i) for i in range(count))
    if sum(lengths) != extent or min(lengths) < 0:
        raise node.unsupported(f"the lengths {lengths} do not add up to the extent {extent}")
    cuts = np.cumsum(lengths)[:-1]
    return relay.split(node.input(0), [int(c) for c in cuts], axis)


def _broadcast(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that two broadcast to; an open size is taken for the other's, unless 1."""
    if not any(map(is_open, (*one, *other))):
        return np.broadcast_shapes(tuple(one), tuple(other))
    rank = max(len(one), len(other))
    pairs = zip((1,) * (rank - len(one)) + tuple(one), (1,) * (rank - len(other)) + tuple(other),
                strict=True)  # fmt: skip
    return tuple(b if a == 1 else a for a, b in pairs)


@converter("Expand")
def expand(node: NodeView) -> Any:
    """Broadcast both ways with a shape."""
    wanted = node.ints(1, "the shape")
    try:
        shape = _broadcast(node.type().shape, wanted)
    except ValueError:
        raise node.unsupported(
            f"data of shape {tuple(node.type().shape)} does not broadcast with {tuple(wanted)}"
        ) from None
    if shape == node.type().shape:
        return node.input(0)
    return relay.broadcast_to(node.input(0), shape)


@converter("Tile")
def tile(node: NodeView) -> Any:
    """The tensor repeated as a whole."""
    if node.opset < 6:
        reps, axes, tiles = [1] * node.rank(), node.ints(2, "the axis"), node.ints(1, "the tiles")
        if len(axes) != 1 or len(tiles) != 1 or not -len(reps) <= axes[0] < len(reps):
            raise node.unsupported(f"axis {axes} and tiles {tiles} for {len(reps)} axes")
        reps[axes[0]] = tiles[0]
        return relay.tile(node.input(0), reps)
    return relay.tile(node.input(0), node.ints(1, "the repeats"))


@converter("Pad")
def pad(node: NodeView) -> Any:
    """Padding of constant, edge, reflected or wrapped elements; negative amounts crop."""
    rank, mode = node.rank(), node.attr("mode", "constant")
    amounts = node.ints_from(1, "pads", "the pads")
    if amounts is None:
        amounts = tuple(node.attr("paddings", ()))
    value: Any = node.attr("value", 0.0)
    fill = node.optional(2) if mode == "constant" else None
    if isinstance(fill, relay.Constant):
        value = fill.array.reshape(-1)[0].item() if fill.array.size else 0
        fill = None
    axes = [a % rank for a in node.ints(3, "the axes")] if node.has(3) else list(range(rank))
    if len(amounts) != 2 * len(axes):
        raise node.unsupported(f"{len(amounts)} pads are given for {len(axes)} axes")
    widths = [(0, 0)] * rank
    for position, axis in enumerate(axes):
        widths[axis] = (amounts[position], amounts[position + len(axes)])
    if not any(low or high for low, high in widths):
        return node.input(0)
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise node.unsupported(f"mode {mode!r}")
    return relay.nn.pad(node.input(0), widths, value if fill is None else fill, mode)


@converter("DepthToSpace")
def depth_to_space(node: NodeView) -> Any:
    """Channels moved into blocks of space."""
    n, c, h, w = node.type().shape
    b = node.attr("blocksize")
    if node.attr("mode", "DCR") == "DCR":
        split, axes = (n, b, b, c // (b * b), h, w), (0, 3, 4, 1, 5, 2)
    else:
        split, axes = (n, c // (b * b), b, b, h, w), (0, 1, 4, 2, 5, 3)
    blocks = relay.transpose(relay.reshape(node.input(0), split), axes)
    return relay.reshape(blocks, (n, c // (b * b), h * b, w * b))


@converter("SpaceToDepth")
def space_to_depth(node: NodeView) -> Any:
    """Blocks of space moved into channels."""
    n, c, h, w = node.type().shape
    b = node.attr("blocksize")
    blocks = relay.reshape(node.input(0), (n, c, h // b, b, w // b, b))
    axes = (0, 1, 3, 5, 2, 4) if node.attr("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    moved = relay.transpose(blocks, axes)
    return relay.reshape(moved, (n, c * b * b, h // b, w // b))
