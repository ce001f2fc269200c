"""Operators that move elements and change none."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from slipway import relay
from slipway.errors import TypeInferenceError
from slipway.frontends.torch.converters import NodeView, converter
from slipway.frontends.torch.found import repeated
from slipway.relay.dims import is_open
from slipway.relay.op_registry import const
from slipway.relay.ops.build import length


@converter("view", "_unsafe_view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze",
           "_reshape_alias", "view_copy", "squeeze_copy", "unsqueeze_copy", "expand_as",
           "view_as", "ravel")  # fmt: skip
def reshape(node: NodeView) -> Any:
    """The same elements under another shape, which torch has computed."""
    if node.kind == "expand_as":
        return relay.broadcast_to(node.input(), node.out.shape)
    if node.kind == "view" and "dtype" in node.arguments:
        return relay.reinterpret(node.input(), node.out.dtype)
    if node.shape() == node.out.shape:
        return node.input()
    return relay.reshape(node.input(), node.out.shape)


@converter("permute", "permute_copy")
def permute(node: NodeView) -> Any:
    """Axes permuted."""
    return relay.transpose(node.input(), tuple(d % node.rank() for d in node.ints("dims")))


@converter("transpose", "t", "transpose_copy", "t_copy", "swapaxes", "mT", "numpy_T")
def transpose(node: NodeView) -> Any:
    """Two axes exchanged."""
    rank = node.rank()
    order = list(range(rank))
    if rank < 2:
        return node.input()
    one, two = (node.axis("dim0", 0), node.axis("dim1", 1)) if "dim0" in node.arguments else (0, 1)
    order[one], order[two] = order[two], order[one]
    return relay.transpose(node.input(), order)


@converter("expand", "broadcast_to", "expand_copy")
def expand(node: NodeView) -> Any:
    """Axes of extent 1 repeated, new axes in front."""
    if node.shape() == node.out.shape:
        return node.input()
    return relay.broadcast_to(node.input(), node.out.shape)


@converter("repeat", "tile")
def repeat(node: NodeView) -> Any:
    """The whole tensor repeated."""
    times = node.ints("repeats" if node.kind == "repeat" else "dims")
    x = node.input()
    if len(times) > node.rank():
        x = relay.reshape(x, (1,) * (len(times) - node.rank()) + node.shape())
    times = (1,) * (x.tensor_type.rank - len(times)) + times
    if any(map(is_open, times)):
        # Each repetition along an axis of its own, which the axis then takes in.
        apart: list[Any] = []
        wide: list[Any] = []
        for extent, count in zip(x.tensor_type.shape, times, strict=True):
            apart += [1, extent]
            wide += [count, extent]
        return relay.reshape(relay.broadcast_to(relay.reshape(x, apart), wide), node.out.shape)
    return x if all(t == 1 for t in times) else relay.tile(x, times)


@converter("repeat_interleave")
def repeat_interleave(node: NodeView) -> Any:
    """Each element repeated a fixed number of times."""
    times = node.arguments["repeats"]
    if not isinstance(times, int):
        return repeated(node, times)
    if node.arguments.get("dim") is None:
        return relay.repeat(relay.reshape(node.input(), (-1,)), times, 0)
    return relay.repeat(node.input(), times, node.axis())


@converter("cat", "concat", "stack")
def join(node: NodeView) -> Any:
    """Tensors one after another, or beside each other along a new axis."""
    parts = [node.as_tensor(x, node.out.dtype) for x in node.arguments["tensors"]]
    if node.kind == "stack":
        return relay.stack(parts, node.axis(rank=node.out.rank))
    # torch takes an empty tensor of rank 1 beside others of any rank.
    parts = [x for x in parts if x.tensor_type.shape != (0,)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    return relay.concatenate(parts, node.axis(rank=node.out.rank))


@converter("split", "split_with_sizes", "chunk", "tensor_split", "unsafe_split",
           "unsafe_split_with_sizes", "unsafe_chunk", "split_with_sizes_copy",
           "split_copy")  # fmt: skip
def split(node: NodeView) -> Any:
    """Parts along an axis, of the sizes that torch has computed."""
    axis = node.axis()
    sizes = [t.shape[axis] for t in node.outputs if t is not None]
    if len(sizes) == 1:
        return [node.input()]
    positions = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    return list(relay.split(node.input(), positions, axis))


@converter("unbind", "unbind_copy")
def unbind(node: NodeView) -> Any:
    """The slices along an axis."""
    axis, count = node.axis(), len(node.outputs)
    parts = [node.input()] if count == 1 else list(relay.split(node.input(), count, axis))
    return [relay.squeeze(part, [axis]) for part in parts]


@converter("select", "select_copy")
def select(node: NodeView) -> Any:
    """One slice along an axis."""
    axis = node.axis()
    index, extent = node.arg("index", 0), node.shape()[axis]
    if is_open(index):
        return relay.take(node.input(), node.as_tensor(index, "int64"), axis, mode="wrap")
    index = int(index)
    index = index if is_open(extent) else index % extent
    end = index + 1 if index != -1 else 2**62
    cut = relay.strided_slice(node.input(), [index], [end], axes=[axis])
    return relay.squeeze(cut, [axis])


def bounds_of(node: NodeView, axis: int, extent: int) -> tuple[int, int, int]:
    """Return start, end and step of a slice, within the extent."""
    start, end = node.arg("start", 0), node.arg("end", extent)
    start, end = (b + extent if b < 0 else b for b in (start, end))
    start, end = (min(max(b, 0), extent) for b in (start, end))
    return start, max(end, start), int(node.arg("step", 1))


@converter("slice", "narrow", "slice_copy", "narrow_copy")
def slice_(node: NodeView) -> Any:
    """A range of an axis."""
    axis = node.axis()
    extent = node.shape()[axis]
    if node.kind.startswith("narrow"):
        start, length = node.arg("start", 0), node.arg("length")
        if not any(map(is_open, (extent, start))):
            start = int(start) % max(extent, 1)
        start, end, step = start, start + length, 1
    elif any(map(is_open, (extent, node.arg("start", 0), node.arg("end", 0)))):
        start, end, step = node.arg("start", 0), node.arg("end", 2**62), int(node.arg("step", 1))
        if (start, step) == (0, 1) and (end is extent or (not is_open(end) and end > 2**31)):
            return node.input()
        if (start, step) == (0, 1) and end in node.numbers and is_open(extent):
            # torch was told that it is at most the extent, which the types here do not know.
            count = relay.reshape(node.as_tensor(end, "int64"), (1,))
            return relay.sized(node.input(), count, end, axis)
        if (start, step) == (0, 1) and end in node.numbers and node.out.shape[axis] != end:
            return _cut_to(node, end, axis)
        if is_open(start) and start.high is not None and start.high < 0:  # from the back
            start = start + extent
    else:
        start, end, step = bounds_of(node, axis, extent)
    if (start, end, step) == (0, extent, 1):
        return node.input()
    return relay.strided_slice(node.input(), [start], [end], [step], axes=[axis])


def _cut_to(node: NodeView, end: Any, axis: int) -> Any:
    """Return the entries before a number that was read, which may be beyond, or from the back."""
    last = length(node.input(), axis, "int64")
    given = relay.reshape(node.as_tensor(end, "int64"), (1,))
    zero = const(np.int64(0))
    given = relay.where(relay.less(given, zero), relay.add(given, last), given)
    count = relay.minimum(relay.maximum(given, zero), last)
    return relay.sized(node.input(), count, node.out.shape[axis], axis)


@converter("slice_scatter", "select_scatter")
def put_slice(node: NodeView) -> Any:
    """The tensor with a range of an axis replaced: what is kept, joined around the new part."""
    x, new, axis = node.input(), node.input("src"), node.axis()
    extent = node.shape()[axis]
    if node.kind == "select_scatter":
        start = int(node.arg("index")) % extent
        end, step, new = start + 1, 1, relay.expand_dims(new, axis)
    else:
        start, end, step = bounds_of(node, axis, extent)
    if step != 1:
        positions = np.arange(start, end, step, dtype=np.int64)
        view = [1] * node.rank()
        view[axis] = -1
        index = relay.broadcast_to(const(positions.reshape(view)), new.tensor_type.shape)
        return relay.scatter_elements(x, index, new, axis, "update")
    parts: list[relay.Expr] = []
    if start > 0:
        parts.append(relay.strided_slice(x, [0], [start], axes=[axis]))
    parts.append(new)
    if end < extent:
        parts.append(relay.strided_slice(x, [end], [extent], axes=[axis]))
    return parts[0] if len(parts) == 1 else relay.concatenate(parts, axis)


@converter("flip")
def flip(node: NodeView) -> Any:
    """Axes reversed."""
    x = node.input()
    for axis in node.ints("dims"):
        x = relay.reverse(x, axis % node.rank())
    return x


@converter("roll")
def roll(node: NodeView) -> Any:
    """Axes rolled."""
    x, shifts, axes = node.input(), node.ints("shifts"), node.ints("dims")
    if not axes:
        x, axes = relay.reshape(x, (-1,)), (0,)
    for shift, given in zip(shifts, axes, strict=True):
        axis = given % x.tensor_type.rank
        extent = x.tensor_type.shape[axis]
        if is_open(extent) or is_open(shift):
            x = _rolled(node, x, axis, shift)
            continue
        cut = -shift % max(extent, 1)
        if cut:
            first, second = relay.split(x, [cut], axis)
            x = relay.concatenate([second, first], axis)
    return relay.reshape(x, node.out.shape) if not node.ints("dims") else x


def _rolled(node: NodeView, x: Any, axis: int, shift: Any) -> Any:
    """Return a tensor rolled by a size, or along an axis of open size.

    In two parts where the shift is known to be no more than the axis, else position by position.
    """
    extent = x.tensor_type.shape[axis]
    back = not is_open(shift) and shift < 0
    steps = -shift if back else shift
    if _is_at_most(steps, extent):
        at = steps if back else extent - steps
        tail = relay.strided_slice(x, [at], [extent], axes=[axis])
        front = relay.strided_slice(x, [0], [at], axes=[axis])
        return relay.concatenate([tail, front], axis)
    every = relay.arange(0, extent, 1, "int64")
    moved = (relay.add if back else relay.subtract)(every, node.as_tensor(steps, "int64"))
    source = relay.floor_mod(moved, node.as_tensor(extent, "int64"))
    return relay.take(x, source, axis, mode="fast")


def _is_at_most(size: Any, other: Any) -> bool:
    """Return whether a size is known never to be more than another one."""
    try:
        return bool(size <= other)
    except TypeInferenceError:
        return False


MODES = {
    "reflection": "reflect", "reflect": "reflect", "replication": "edge", "replicate": "edge",
    "circular": "wrap",
}  # fmt: skip


@converter(
    "constant_pad_nd", "pad", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d",
    "replication_pad1d", "replication_pad2d", "replication_pad3d",
)  # fmt: skip
def pad(node: NodeView) -> Any:
    """Padding; torch names the last axis first.  Negative widths cut off."""
    widths = node.ints("pad" if "pad" in node.arguments else "padding")
    mode = node.arg("mode", "constant") if node.kind == "pad" else node.kind.split("_")[0]
    rank = node.rank()
    pairs = [(0, 0)] * rank
    for position in range(len(widths) // 2):
        pairs[rank - 1 - position] = (widths[2 * position], widths[2 * position + 1])
    x = node.input()
    if any(w < 0 for w in widths):
        shape = node.shape()
        begin = [max(-a, 0) for a, _ in pairs]
        end = [n + min(b, 0) for n, (_, b) in zip(shape, pairs, strict=True)]
        x = relay.strided_slice(x, begin, end)
        pairs = [(max(a, 0), max(b, 0)) for a, b in pairs]
    if not any(a or b for a, b in pairs):
        return x
    if mode == "constant":
        return relay.nn.pad(x, pairs, node.arg("value", 0))
    if mode not in MODES:
        raise node.unsupported(f"mode={mode!r}; constant, {', '.join(MODES)} are served")
    return relay.nn.pad(x, pairs, 0, MODES[mode])


@converter("pixel_shuffle", "pixel_unshuffle")
def pixel_shuffle(node: NodeView) -> Any:
    """Channels spread over space, or space gathered into channels."""
    *outer, channels, height, width = node.shape()
    count = len(outer)
    if node.kind == "pixel_shuffle":
        r = int(node.arg("upscale_factor"))
        split = relay.reshape(node.input(), (*outer, channels // (r * r), r, r, height, width))
        order = (0, 3, 1, 4, 2)
    else:
        r = int(node.arg("downscale_factor"))
        split = relay.reshape(node.input(), (*outer, channels, height // r, r, width // r, r))
        order = (0, 2, 4, 1, 3)
    transposed = relay.transpose(split, (*range(count), *(count + a for a in order)))
    return relay.reshape(transposed, node.out.shape)


@converter("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(node: NodeView) -> Any:
    """Channels of groups taken in turn."""
    groups = int(node.arg("groups"))
    batch, channels, *space = node.shape()
    split = relay.reshape(node.input(), (batch, groups, channels // groups, math.prod(space)))
    return relay.reshape(relay.transpose(split, (0, 2, 1, 3)), node.out.shape)
