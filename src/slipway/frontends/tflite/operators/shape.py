"""Operators that move elements: RESHAPE, TRANSPOSE, CONCATENATION, SPLIT, PAD, GATHER, others."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.floating import channels_first, channels_last, is_transposed
from slipway.frontends.tflite.operators.arithmetic import is_quantized
from slipway.frontends.tflite.quantized import out_range, stored
from slipway.relay.dims import is_open
from slipway.relay.op_registry import const
from slipway.relay.ops.qnn.rescale import rescale_by


@converter("RESHAPE")
def reshape(node: NodeView) -> Any:
    """The new shape is the second input, or the option."""
    wanted = node.option("new_shape", None)
    if node.has(1):
        wanted = node.known_integers(1) or wanted
    if wanted is None:
        wanted = node.out().shape
    return relay.reshape(node[0], wanted, True)


@converter("DENSIFY")
def densify(node: NodeView) -> Any:
    """Sparse constants are dense when the file has been read."""
    return node[0]


@converter("EXPAND_DIMS")
def expand_dims(node: NodeView) -> Any:
    """One more axis of extent 1."""
    axis = node.integer(1)
    return relay.expand_dims(node[0], axis)


@converter("SQUEEZE")
def squeeze(node: NodeView) -> Any:
    """Fewer axes of extent 1."""
    axes = node.option("squeeze_dims", None)
    return relay.squeeze(node[0], axes or None)


@converter("TRANSPOSE")
def transpose(node: NodeView) -> Any:
    """Axes in another order."""
    return relay.transpose(node[0], node.integers(1))


@converter("CONCATENATION")
def concatenate(node: NodeView) -> Any:
    """Concatenate; quantised inputs of another scale are brought to the output's."""
    axis = node.option("axis")
    values = node.inputs
    if is_quantized(node):
        values = [_with_scale_of_output(node, i) for i in range(len(values))]
    elif len(node.shape()) == 4 and axis in (3, -1) and all(is_transposed(v) for v in values):
        return channels_last(relay.concatenate([channels_first(v) for v in values], 1))
    return relay.concatenate(values, axis) if len(values) > 1 else values[0]


def _with_scale_of_output(node: NodeView, position: int) -> Any:
    source, target = node.quantization(position), node.out_quantization()
    if (source.scale, source.zero_point) == (target.scale, target.zero_point):
        return node[position]
    low, high = out_range(node)
    wide = relay.cast(node[position], "int32")
    if source.zero_point:
        wide = relay.subtract(wide, const(source.zero_point, "int32"))
    scaled = rescale_by(wide, source.scale / target.scale)
    return stored(scaled, target.zero_point, low, high, node.out().dtype)


@converter("PACK")
def pack(node: NodeView) -> Any:
    """Concatenate along a new axis."""
    return relay.stack(node.inputs, node.option("axis"))


@converter("UNPACK")
def unpack(node: NodeView) -> Any:
    """Apart along an axis that disappears."""
    axis, rank = node.option("axis"), len(node.shape())
    if not -rank <= axis < rank:
        raise node.unsupported(f"its axis is {axis}, and the tensor has {rank}")
    count = node.shape()[axis]
    if count != len(node.operator.outputs):
        raise node.unsupported(f"it gives {len(node.operator.outputs)} parts of {count}")
    if count == 1:
        return relay.squeeze(node[0], (axis,))
    return [relay.squeeze(part, (axis,)) for part in relay.split(node[0], count, axis)]


@converter("SPLIT")
def split(node: NodeView) -> Any:
    """Equal parts; the axis comes first."""
    axis = node.integer(0)
    count = node.option("num_splits")
    if count != len(node.operator.outputs):
        raise node.unsupported(f"it gives {len(node.operator.outputs)} parts of {count}")
    if count == 1:
        return node[1]
    return list(relay.split(node[1], count, axis))


@converter("SPLIT_V")
def split_v(node: NodeView) -> Any:
    """Parts of given sizes, one of which may be -1."""
    sizes, axis = list(node.integers(1)), node.integer(2)
    if not -len(node.shape()) <= axis < len(node.shape()):
        raise node.unsupported(f"its axis is {axis}, and its data has the shape {node.shape()}")
    if -1 in sizes:
        sizes[sizes.index(-1)] = node.shape()[axis] - sum(s for s in sizes if s >= 0)
    if len(sizes) == 1:
        return node[0]
    return list(relay.split(node[0], [int(v) for v in np.cumsum(sizes)[:-1]], axis))


@converter("SLICE")
def slice_(node: NodeView) -> Any:
    """From `begin`, `size` elements; -1 is all that follow."""
    begin, size = node.integers(1), node.integers(2)
    if not len(begin) == len(size) == len(node.shape()):
        raise node.unsupported(f"{begin} and {size} do not fit data of the shape {node.shape()}")
    end = [
        extent if length == -1 else start + length
        for start, length, extent in zip(begin, size, node.shape(), strict=True)
    ]
    return relay.strided_slice(node[0], begin, end)


@converter("STRIDED_SLICE")
def strided_slice(node: NodeView) -> Any:
    """NumPy's basic slicing, with masks for what is left out."""
    begin, end, strides = (list(node.integers(i)) for i in (1, 2, 3))
    rank, new, dots = len(node.shape()), node.option("new_axis_mask"), node.option("ellipsis_mask")
    positions = range(len(begin))
    if dots & (dots - 1):
        raise node.unsupported("ellipsis_mask has several bits")
    if not len(begin) == len(end) == len(strides):
        raise node.unsupported("its begins, ends and strides are not as many as each other")
    if node.option("offset"):  # `end` counts from `begin`
        end = [b + e for b, e in zip(begin, end, strict=True)]
    named = sum(not (new >> i & 1) and not (dots >> i & 1) for i in positions)
    if named > rank:
        raise node.unsupported(f"it has more places than the {rank} axes of its data")
    read: list[tuple[int, int, int]] = []  # begin, end and step of each axis of the data
    kept: list[int | None] = []  # the axes that stay; None is a new one
    for i in positions:
        if dots >> i & 1:
            for _ in range(rank - named):
                kept.append(len(read))
                read.append((0, node.shape()[len(read)], 1))
        elif new >> i & 1:
            kept.append(None)
        elif len(read) >= rank:
            raise node.unsupported(f"it has more places than the {rank} axes of its data")
        elif node.option("shrink_axis_mask") >> i & 1:
            extent = node.shape()[len(read)]
            position = begin[i] + extent if begin[i] < 0 else begin[i]
            read.append((position, position + 1, 1))
        elif not strides[i]:
            raise node.unsupported(f"its stride along axis {len(read)} is 0")
        else:
            start = None if node.option("begin_mask") >> i & 1 else begin[i]
            stop = None if node.option("end_mask") >> i & 1 else end[i]
            kept.append(len(read))
            read.append(_span(start, stop, strides[i], node.shape()[len(read)]))
    for extent in node.shape()[len(read) :]:
        kept.append(len(read))
        read.append((0, extent, 1))
    first, last, steps = ([each[i] for each in read] for i in range(3))
    out = relay.strided_slice(node[0], first, last, steps)
    shape = [1 if axis is None else out.tensor_type.shape[axis] for axis in kept]
    return out if tuple(shape) == out.tensor_type.shape else relay.reshape(out, shape, True)


def _span(start: int | None, stop: int | None, step: int, extent: int) -> tuple[int, int, int]:
    """Return a slice of an axis in full; what ends before the first element ends at -1 - extent."""
    if is_open(extent):
        first, last = (0, extent) if step > 0 else (extent - 1, -extent - 1)
        return first if start is None else start, last if stop is None else stop, step
    found = range(extent)[slice(start, stop, step)]
    return found.start, found.stop if found.stop >= 0 else -extent - 1, step


@converter("PAD", "PADV2")
def pad(node: NodeView) -> Any:
    """Surround with a value; of quantised data, with the zero point."""
    widths = [tuple(int(v) for v in pair) for pair in node.constant(1).reshape(-1, 2)]
    value: Any = 0
    if node.has(2):
        value = node.constant(2).reshape(-1)[0].item()
    elif is_quantized(node):
        value = node.out_quantization().zero_point
    if is_transposed(node[0]) and len(widths) == 4:
        order = [widths[0], widths[3], widths[1], widths[2]]
        return channels_last(relay.nn.pad(channels_first(node[0]), order, value))
    return relay.nn.pad(node[0], widths, value)


@converter("MIRROR_PAD")
def mirror_pad(node: NodeView) -> Any:
    """Surround with reflections; mode 1 repeats the edge."""
    widths = [tuple(int(v) for v in pair) for pair in node.constant(1).reshape(-1, 2)]
    skip = 0 if node.option("mode") else 1
    for (before, after), extent in zip(widths, node.shape(), strict=True):
        if min(before, after) < 0 or max(before, after) > extent - skip:
            raise node.unsupported(f"it reflects {before} and {after} of {extent} elements")
    return relay.nn.mirror_pad(node[0], widths, "REFLECT" if skip else "SYMMETRIC")


@converter("GATHER")
def gather(node: NodeView) -> Any:
    """Elements along an axis at given positions."""
    axis = node.option("axis") % max(len(node.shape()), 1)
    return relay.take(node[0], node[1], axis, node.option("batch_dims"), "clip")


@converter("GATHER_ND")
def gather_nd(node: NodeView) -> Any:
    """Elements at given coordinates, which stand in the last axis of the indices."""
    rank = len(node.shape(1))
    order = [rank - 1, *range(rank - 1)]
    return relay.gather_nd(node[0], relay.transpose(node[1], order))


@converter("EMBEDDING_LOOKUP")
def embedding_lookup(node: NodeView) -> Any:
    """Rows of the second input at the positions of the first."""
    rows = relay.take(node[1], node[0], 0)
    if node.out().dtype == "float32" and node.tensor(1).dtype == "int8":
        quantization = node.tensor(1).quantization
        if quantization is None or quantization.scales.size != 1:
            raise node.unsupported("its table must have one scale")
        centered = relay.subtract(
            relay.cast(rows, "float32"), const(quantization.zero_point, "float32")
        )
        return relay.multiply(centered, const(quantization.scale, "float32"))
    return rows


@converter("TILE")
def tile(node: NodeView) -> Any:
    """Repetitions along each axis."""
    return relay.tile(node[0], node.integers(1))


@converter("BROADCAST_TO")
def broadcast_to(node: NodeView) -> Any:
    """Repetitions up to a shape."""
    return relay.broadcast_to(node[0], node.integers(1))


@converter("BROADCAST_ARGS")
def broadcast_args(node: NodeView) -> Any:
    """The shape that two shapes broadcast to."""
    shape = node.broadcast(node.integers(0), node.integers(1))
    return array_constant(shape, node.out().dtype)


@converter("REVERSE_V2")
def reverse(node: NodeView) -> Any:
    """Backward along each given axis."""
    out = node[0]
    for axis in node.integers(1):
        out = relay.reverse(out, axis)
    return out


@converter("SHAPE")
def shape(node: NodeView) -> Any:
    """The extents as a tensor; where one is open, the compiled model computes it."""
    if not any(map(is_open, node.shape())):
        return array_constant(node.shape(), node.out().dtype)
    return relay.cast(node.program.sizes.shape(node[0]), node.out().dtype)


@converter("RANK")
def rank(node: NodeView) -> Any:
    """The number of axes as a tensor."""
    return array_constant(len(node.shape()), "int32")


@converter("FILL")
def fill(node: NodeView) -> Any:
    """One value in a given shape."""
    return relay.full(relay.reshape(node[1], (), True), node.integers(0))


@converter("ZEROS_LIKE")
def zeros_like(node: NodeView) -> Any:
    """Zeros of the input's type."""
    given = node[0].tensor_type
    return relay.full(const(0, given.dtype), given.shape)


@converter("RANGE")
def range_(node: NodeView) -> Any:
    """From a start in steps up to a limit."""
    start, limit, step = (node.constant(i).reshape(-1)[0] for i in range(3))
    if not step or not np.isfinite((limit - start) / step):
        raise node.unsupported(f"it counts from {start} to {limit} by {step}")
    check_table(node, int(abs((limit - start) / step)))
    return array_constant(np.arange(start, limit, step), node.out().dtype)


@converter("ONE_HOT")
def one_hot(node: NodeView) -> Any:
    """One value at the given position, another elsewhere."""
    depth = node.integer(1)
    on, off = (relay.reshape(node[i], (), True) for i in (2, 3))
    hot = relay.one_hot(node[0], 1, 0, depth, node.option("axis"), "int32")
    return relay.where(relay.equal(hot, const(1, "int32")), on, off)


@converter("SPACE_TO_DEPTH")
def space_to_depth(node: NodeView) -> Any:
    """Blocks of positions become channels."""
    n, h, w, c = node.shape()
    block = node.option("block_size")
    node.blocks((block, block), (h, w))
    split_ = relay.reshape(node[0], (n, h // block, block, w // block, block, c))
    moved = relay.transpose(split_, (0, 1, 3, 2, 4, 5))
    return relay.reshape(moved, (n, h // block, w // block, block * block * c))


@converter("DEPTH_TO_SPACE")
def depth_to_space(node: NodeView) -> Any:
    """Channels become blocks of positions."""
    n, h, w, c = node.shape()
    block = node.option("block_size")
    node.blocks((block, block * block), (block, c))
    depth = c // (block * block)
    split_ = relay.reshape(node[0], (n, h, w, block, block, depth))
    moved = relay.transpose(split_, (0, 1, 3, 2, 4, 5))
    return relay.reshape(moved, (n, h * block, w * block, depth))


def _blocks_and_edges(node: NodeView) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    """Return the sizes of blocks along the axes behind the batch, and the edges of those."""
    blocks, edges = node.integers(1), node.constant(2)
    if not len(blocks) < len(node.shape()) or edges.shape != (len(blocks), 2):
        raise node.unsupported(
            f"blocks of {blocks} with edges of shape {edges.shape} do not fit {node.shape()}"
        )
    return blocks, [(int(before), int(after)) for before, after in edges]


@converter("SPACE_TO_BATCH_ND")
def space_to_batch(node: NodeView) -> Any:
    """Blocks of positions become batch entries, after padding."""
    blocks, edges = _blocks_and_edges(node)
    count = len(blocks)
    widths = [(0, 0), *edges, *[(0, 0)] * (len(node.shape()) - 1 - count)]
    value = node.out_quantization().zero_point if is_quantized(node) else 0
    data = relay.nn.pad(node[0], widths, value)
    batch, *rest = data.tensor_type.shape
    node.blocks(blocks, rest)
    cut: list[int] = [batch]
    for extent, block in zip(rest[:count], blocks, strict=True):
        cut += [extent // block, block]
    cut += rest[count:]
    inner = [2 + 2 * i for i in range(count)]
    outer = [1 + 2 * i for i in range(count)]
    tail = list(range(1 + 2 * count, len(cut)))
    moved = relay.transpose(relay.reshape(data, cut), [*inner, 0, *outer, *tail])
    spatial = [e // b for e, b in zip(rest[:count], blocks, strict=True)]
    return relay.reshape(moved, (batch * int(np.prod(blocks)), *spatial, *rest[count:]))


@converter("BATCH_TO_SPACE_ND")
def batch_to_space(node: NodeView) -> Any:
    """Batch entries become blocks of positions, then the padding is cut off."""
    blocks, crops = _blocks_and_edges(node)
    batch, *rest = node.shape()
    count, total = len(blocks), int(np.prod(blocks))
    node.blocks((*blocks, total), (*blocks, batch))
    data = relay.reshape(node[0], (*blocks, batch // total, *rest))
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    order += list(range(2 * count + 1, count + 1 + len(rest)))
    spatial = [e * b for e, b in zip(rest[:count], blocks, strict=True)]
    joined = relay.reshape(relay.transpose(data, order), (batch // total, *spatial, *rest[count:]))
    begin, end = [0] * (1 + len(rest)), [batch // total, *spatial, *rest[count:]]
    for axis, (before, after) in enumerate(crops):
        begin[1 + axis] = before
        end[1 + axis] -= after
    return relay.strided_slice(joined, begin, end)


@converter("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(node: NodeView) -> Any:
    """Replace a region that begins at constant positions."""
    shape, update = node.shape(), node.shape(1)
    if not len(shape) == len(update) == len(node.integers(2)):
        raise node.unsupported("its tensors and the position differ in the number of axes")
    begin = [min(max(b, 0), d - u) for b, d, u in zip(node.integers(2), shape, update, strict=True)]
    check_table(node, len(update), *update)
    grids = np.meshgrid(
        *(np.arange(b, b + u) for b, u in zip(begin, update, strict=True)), indexing="ij"
    )
    return relay.scatter_nd(node[0], array_constant(np.stack(grids), "int32"), node[1])
