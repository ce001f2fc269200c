"""Parts of arrays: slices, equal parts, crops."""

from __future__ import annotations

import ast
from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, converter, shape_of
from slipway.relay.expr import Expr


def cut(x: Expr, axis: int, begin: int, end: int) -> Any:
    """Return a part of a tensor along one axis."""
    return relay.strided_slice(x, [begin], [end], [1], axes=[axis])


@converter("slice", "crop", "_npi_slice")
def _slice(node: NodeView) -> Any:
    """Slice the first axes; None stands for an end of the axis."""
    begins, ends, steps = ([*_maybe(node, n)] for n in ("begin", "end", "step"))
    cuts = [
        range(extent)[slice(b, e, s)]
        for extent, b, e, s in zip(
            node.shape, begins, ends, steps or [None] * len(begins), strict=False
        )
    ]
    made = node.data
    for axis, part in enumerate(cuts):
        if part.step > 0:
            made = relay.strided_slice(made, [part.start], [part.stop], [part.step], [axis])
        else:
            stop = part.stop if part.stop >= 0 else -node.shape[axis] - 1
            made = relay.strided_slice(made, [part.start], [stop], [part.step], [axis])
    return made


def _maybe(node: NodeView, name: str) -> list[int | None]:
    text = node.text(name)
    if not text:
        return []
    found = ast.literal_eval(text)
    return list(found) if isinstance(found, tuple | list) else [found]


@converter("slice_axis")
def _slice_axis(node: NodeView) -> Any:
    axis = node.axis("axis", 0)
    extent = node.shape[axis]
    position = range(extent)[slice(node.value("begin"), node.value("end"))]
    return cut(node.data, axis, position.start, position.stop)


@converter("slice_like")
def _slice_like(node: NodeView) -> Any:
    other, made = shape_of(node[1]), node.data
    axes = [a % len(node.shape) for a in node.ints("axes")] or range(len(other))
    for axis in axes:
        made = cut(made, axis, 0, other[axis])
    return made


@converter("SliceChannel", "split")
def _parts(node: NodeView) -> Any:
    axis, count = node.axis("axis", 1), node.integer("num_outputs")
    made = list(relay.split(node.data, count, axis)) if count > 1 else [node.data]
    if node.flag("squeeze_axis"):
        made = [relay.squeeze(m, [axis]) for m in made]
    return made


@converter("_split_v2", "_npi_split", "_npi_array_split")
def _split_positions(node: NodeView) -> Any:
    """Split at places (which begin with 0), or into equal parts."""
    axis, count = node.axis("axis", 0), node.integer("sections", 0)
    if count:
        made = list(relay.split(node.data, count, axis)) if count > 1 else [node.data]
    else:
        begins = node.ints("indices")
        begins = begins if begins[:1] == [0] else [0, *begins]
        ends = [*begins[1:], node.shape[axis]]
        made = [cut(node.data, axis, b, e) for b, e in zip(begins, ends, strict=True)]
    if node.flag("squeeze_axis"):
        made = [relay.squeeze(m, [axis]) for m in made]
    return made


@converter("Crop")
def _crop(node: NodeView) -> Any:
    """Crop images to a size or to that of the second input, from a place or in the middle."""
    like = node.integer("num_args", 1) == 2
    height, width = shape_of(node[1])[2:] if like else tuple(node.ints("h_w", [0, 0]))
    top, left = node.ints("offset", [0, 0])
    if node.flag("center_crop"):
        top, left = (node.shape[2] - height) // 2, (node.shape[3] - width) // 2
    return cut(cut(node.data, 2, top, top + height), 3, left, left + width)
