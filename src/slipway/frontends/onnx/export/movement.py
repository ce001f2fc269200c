"""Operators that move elements: shapes, slices, joins, positions, layouts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from slipway.frontends.onnx.export.writer import Given, Unwritten, Write, Writer, kind_of, shape_of
from slipway.relay.expr import Call
from slipway.relay.layout import parse_layout


def _reshaped(w: Writer, call: Call, given: Given) -> str:
    return w.reshape(given[0], shape_of(call))


def _transpose(w: Writer, call: Call, given: Given) -> str:
    rank = len(shape_of(call))
    axes = call.attrs.axes or range(rank)[::-1]
    return w.node("Transpose", given[:1], perm=[int(a) % rank for a in axes])


def _slice(w: Writer, call: Call, given: Given) -> str:
    a = call.attrs
    axes = a.axes or tuple(range(len(a.begin)))
    steps = (*a.strides, *[1] * (len(a.begin) - len(a.strides)))
    return w.node("Slice", [given[0], *(w.whole(*v) for v in (a.begin, a.end, axes, steps))])


def _reverse(w: Writer, call: Call, given: Given) -> str:
    ends = [w.whole(v) for v in (-1, -(2**31), call.attrs.axis, -1)]
    return w.node("Slice", [given[0], *ends])


def _split(w: Writer, call: Call, given: Given) -> Any:
    a = call.attrs
    cuts = [0, *a.indices, shape_of(call.args[0])[a.axis]]
    lengths = [high - low for low, high in pairwise(cuts)]
    return w.several("Split", [given[0], w.whole(*lengths)], len(lengths), axis=a.axis)


def _concatenate(w: Writer, call: Call, given: Given) -> str:
    return w.node("Concat", list(given[0]), axis=call.attrs.axis)


def _stack(w: Writer, call: Call, given: Given) -> str:
    axis = call.attrs.axis % len(shape_of(call))
    parts = [w.node("Unsqueeze", [one, w.whole(axis)]) for one in given[0]]
    return w.node("Concat", parts, axis=axis)


def _pad(w: Writer, call: Call, given: Given) -> str:
    """ONNX has no padding that repeats the last element."""
    if call.attrs.pad_mode == "symmetric":
        raise Unwritten("nn.pad (symmetric)")
    width = [[int(v) for v in pair] for pair in call.attrs.pad_width]
    pads = w.whole(*(p[0] for p in width), *(p[1] for p in width))
    value = w.scalar(call.attrs.pad_value, kind_of(call).dtype)
    return w.node("Pad", [given[0], pads, value], mode=call.attrs.pad_mode)


def _tile(w: Writer, call: Call, given: Given) -> str:
    reps, shape = list(call.attrs.reps), shape_of(call.args[0])
    data = given[0]
    if len(reps) > len(shape):
        data = w.reshape(data, [*[1] * (len(reps) - len(shape)), *shape])
    return w.node("Tile", [data, w.whole(*[1] * (len(shape) - len(reps)), *reps)])


def _repeat(w: Writer, call: Call, given: Given) -> str:
    shape = shape_of(call.args[0])
    axis = call.attrs.axis % len(shape)
    beside = w.node("Unsqueeze", [given[0], w.whole(axis + 1)])
    times = [call.attrs.repeats if i == axis + 1 else 1 for i in range(len(shape) + 1)]
    return w.reshape(w.node("Tile", [beside, w.whole(*times)]), shape_of(call))


def _broadcast_to(w: Writer, call: Call, given: Given) -> str:
    return w.node("Expand", [given[0], w.whole(*shape_of(call))])


def _full(w: Writer, call: Call, given: Given) -> str:
    whole = w.node("Expand", [given[0], w.whole(*shape_of(call))])
    return w.cast(whole, kind_of(call).dtype)


def _arange(w: Writer, call: Call, _given: Given) -> str:
    a, (count,) = call.attrs, shape_of(call)
    return w.constant((a.start + a.step * np.arange(count)).astype(kind_of(call).dtype))


def _shape(w: Writer, call: Call, _given: Given) -> str:
    return w.constant(np.array(shape_of(call.args[0]), kind_of(call).dtype))


# -- positions -------------------------------------------------------------------------------------


def _take(w: Writer, call: Call, given: Given) -> str:
    a, shape = call.attrs, shape_of(call.args[0])
    data, indices = given
    if a.axis is None:
        data, axis, extent = w.reshape(data, [-1]), 0, int(np.prod(shape))
    else:
        axis, extent = a.axis % len(shape), shape[a.axis]
    if kind_of(call.args[1]).dtype not in ("int32", "int64"):
        indices = w.cast(indices, "int64")
    dtype = kind_of(call.args[1]).dtype if indices is given[1] else "int64"
    if a.mode == "clip":
        indices = w.node("Clip", [indices, w.scalar(0, dtype), w.scalar(extent - 1, dtype)])
    elif a.mode == "wrap":
        indices = w.node("Mod", [indices, w.scalar(extent, dtype)])
    return w.node("Gather", [data, indices], axis=axis)


def _gather(w: Writer, call: Call, given: Given) -> str:
    return w.node("GatherElements", [given[0], w.cast(given[1], "int64")], axis=call.attrs.axis)


def _tuples_last(w: Writer, call: Call, name: str) -> str:
    """Position tuples lie along the first axis here, and along the last one there."""
    rank = len(shape_of(call.args[1]))
    return w.transpose(w.cast(name, "int64"), [*range(1, rank), 0])


def _gather_nd(w: Writer, call: Call, given: Given) -> str:
    indices = _tuples_last(w, call, given[1])
    return w.node("GatherND", [given[0], indices], batch_dims=call.attrs.batch_dims)


def _reduction(w: Writer, call: Call) -> str | None:
    """Return what ONNX calls the way in which updates meet, None where they replace."""
    name = call.attrs.reduction
    if name == "update":
        return None
    first = 16 if name in ("add", "mul") else 18
    if w.opset < first:
        raise Unwritten(f"{call.op.name} ({name}, before opset {first})")
    return str(name)


def _scatter_elements(w: Writer, call: Call, given: Given) -> str:
    indices = w.cast(given[1], "int64")
    return w.node("ScatterElements", [given[0], indices, given[2]], axis=call.attrs.axis,
                  reduction=_reduction(w, call))  # fmt: skip


def _scatter_nd(w: Writer, call: Call, given: Given) -> str:
    indices = _tuples_last(w, call, given[1])
    return w.node("ScatterND", [given[0], indices, given[2]], reduction=_reduction(w, call))


def _one_hot(w: Writer, call: Call, given: Given) -> str:
    """A comparison with all classes: positions below zero count from the end there, not here."""
    a, kind = call.attrs, kind_of(call)
    axis = a.axis % kind.rank
    classes = np.arange(a.depth).reshape([-1 if i == axis else 1 for i in range(kind.rank)])
    indices = w.node("Unsqueeze", [w.cast(given[0], "int64"), w.whole(axis)])
    hit = w.node("Equal", [indices, w.constant(classes.astype("int64"))])
    return w.node("Where", [hit, *(w.scalar(v, kind.dtype) for v in (a.on_value, a.off_value))])


def _layout_transform(w: Writer, call: Call, given: Given) -> str:
    """Blocks are joined to whole axes, these cut into the new blocks."""
    source, target = (parse_layout(v) for v in (call.attrs.src_layout, call.attrs.dst_layout))
    whole = source.whole_shape(shape_of(call.args[0]))
    found_at = source.positions()
    order = [found_at[letter, depth] for letter in target.letters
             for depth in range(len(source.blocks_of(letter)) + 1)]  # fmt: skip
    split, where = [], []
    for letter in target.letters:
        extents = [whole[letter] // target.block_of(letter), *target.blocks_of(letter)]
        split += extents
        where += [(letter, depth) for depth in range(len(extents))]
    cut = w.reshape(w.transpose(given[0], order), split)
    wanted = sorted(target.positions().items(), key=lambda entry: entry[1])
    return w.transpose(cut, [where.index(key) for key, _ in wanted])


WRITERS: dict[str, Write] = {
    **dict.fromkeys(("reshape", "squeeze", "expand_dims", "nn.batch_flatten"), _reshaped),
    "transpose": _transpose, "strided_slice": _slice, "reverse": _reverse, "split": _split,
    "concatenate": _concatenate, "stack": _stack, "nn.pad": _pad, "tile": _tile,
    "repeat": _repeat, "broadcast_to": _broadcast_to, "full": _full, "arange": _arange,
    "shape_of": _shape, "take": _take, "gather": _gather, "gather_nd": _gather_nd,
    "scatter_elements": _scatter_elements, "scatter_nd": _scatter_nd, "one_hot": _one_hot,
    "layout_transform": _layout_transform,
}  # fmt: skip
