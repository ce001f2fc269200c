"""Nodes that read a tensor whose size depends on the data (`values.Counted`).

What moves or converts elements works on the whole room, and its result has the same count; other
operators would see the filling, so they are declined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway import relay
from slipway.frontends.onnx.converters import Converter, NodeView
from slipway.frontends.onnx.values import Counted
from slipway.relay.dims import is_open

ELEMENTWISE = ("Cast", "Add", "Sub", "Mul", "Div", "Neg", "Abs", "Floor", "Ceil", "Round")


def through_counted(convert: Converter, node: NodeView) -> Any:
    """Convert a node with a counted input; return a Counted.  Raises UnsupportedNode."""
    positions = [i for i, value in enumerate(node.inputs) if isinstance(value, Counted)]
    given = node.inputs[positions[0]]
    if len(positions) != 1:
        raise node.unsupported("several inputs have a size that depends on the data")
    view = NodeView.__new__(NodeView)
    view.__dict__.update(node.__dict__)
    view.inputs = [v.data if isinstance(v, Counted) else v for v in node.inputs]
    axis = _axis(view, given.axis, positions[0])
    if axis is None:
        raise node.unsupported(
            f"the size of its input {positions[0]} depends on the data along axis {given.axis}"
        )
    return Counted(convert(view), given.count, axis)


def _axis(node: NodeView, axis: int, number: int) -> int | None:
    """Return the axis of the result along which it is counted; None if it is not so simple."""
    rank = node.rank(number)
    if node.kind in ELEMENTWISE:
        others = [v.tensor_type.rank for i, v in enumerate(node.inputs) if v and i != number]
        return axis if max(others, default=0) == 0 else None
    match node.kind:
        case "Transpose":
            order = [a % rank for a in node.attr("perm", tuple(range(rank))[::-1])]
            return order.index(axis)
        case "Gather":
            along = node.attr("axis", 0) % node.rank(0)
            if number == 1:
                return int(along + axis)
            if along == axis:
                return None
            return axis if axis < along else axis + node.rank(1) - 1
        case "Slice" if node.has(3):
            axes = {a % rank for a in node.ints(3, "the axes")}
            return None if axis in axes else axis
        case "Squeeze":
            axes = {a % rank for a in node.ints_from(1, "axes", "the axes") or (axis,)}
            return None if axis in axes else axis - sum(a < axis for a in axes)
        case "Unsqueeze":
            new = node.ints_from(1, "axes", "the axes") or ()
            axes = {a % (rank + len(new)) for a in new}
            kept = [a for a in range(rank + len(new)) if a not in axes]
            return kept[axis]
        case _:
            return None


def cut_to_declared(values: Sequence[Any], shapes: Sequence[tuple[int, ...] | None]) -> list[Any]:
    """Return the results with those cut to size whose shape the model declares.

    A shape of another rank says nothing of the axis.
    """
    found = []
    for value, shape in zip(values, shapes, strict=False):
        type_ = value.data.tensor_type if isinstance(value, Counted) else None
        if type_ is not None and shape is not None and len(shape) == type_.rank:
            room = type_.shape[value.axis]
            size = shape[value.axis] if is_open(room) else min(shape[value.axis], room)
            value = relay.strided_slice(value.data, [0], [size], axes=[value.axis])
        found.append(value)
    return found
