"""Layers of several inputs."""

from __future__ import annotations

from functools import reduce
from typing import Any

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.activation import number

JOINS = {
    "Add": relay.add, "Subtract": relay.subtract, "Multiply": relay.multiply,
    "Maximum": relay.maximum, "Minimum": relay.minimum, "Divide": relay.divide,
    "TrueDivide": relay.divide, "Power": relay.power,
}  # fmt: skip


def operands(view: LayerView) -> list[Any]:
    """Return what is joined: the tensors, and the numbers among an operation's arguments."""
    args = view.given.get("args", [])
    if len(args) == 1 and isinstance(args[0], list | tuple):
        args = args[0]
    if len(args) < 2:
        return view.inputs
    like = view.data
    return [a if hasattr(a, "tensor_type") else number(a, like) for a in args]


@converter(*JOINS)
def _join(view: LayerView) -> Any:
    return reduce(JOINS[type(view.layer).__name__], operands(view))


@converter("Average")
def _average(view: LayerView) -> Any:
    total = reduce(relay.add, view.inputs)
    return relay.divide(total, number(len(view.inputs), total))


@converter("Concatenate")
def _concatenate(view: LayerView) -> Any:
    return relay.concatenate(view.inputs, axis=int(view.option("axis", -1)))


@converter("Dot")
def _dot(view: LayerView) -> Any:
    """Products along one axis of each, for every element of the batch."""
    a, b = view.inputs
    ranks = [len(x.tensor_type.shape) for x in (a, b)]
    axes = view.option("axes")
    first, second = (axes, axes) if isinstance(axes, int) else axes
    first, second = first % ranks[0], second % ranks[1]
    if max(ranks) > 3 or 0 in (first, second):
        raise view.unsupported("it joins tensors of two or three dimensions along one of them")
    if view.option("normalize", False):
        a, b = relay.nn.l2_normalize(a, 1e-12, [first]), relay.nn.l2_normalize(b, 1e-12, [second])
    a = relay.expand_dims(a, 1) if ranks[0] == 2 else _last(a, first)
    b = relay.expand_dims(b, 1) if ranks[1] == 2 else _last(b, second)
    made = relay.nn.batch_matmul(a, b)  # the second one is transposed
    gone = [axis for axis, rank in ((1, ranks[0]), (2, ranks[1])) if rank == 2]
    if len(gone) == 2:
        gone = [1]  # (batch, 1) is left
    return relay.squeeze(made, gone) if gone else made


def _last(x: Any, axis: int) -> Any:
    return x if axis == 2 else relay.transpose(x, [0, 2, 1])
