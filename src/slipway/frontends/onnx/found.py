"""Sizes of the model's own, for tensors whose size depends on the data (`values.Counted`).

Where a node cannot work on the whole room, a counted tensor becomes one of as many entries as were
found: its axis is an open dimension that the run tells (`relay.sized`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.onnx.counted import through_counted
from slipway.frontends.onnx.values import Counted
from slipway.relay.dims import SymbolDim
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.frontends.onnx.converters import Converter, NodeView
    from slipway.relay.expr import Expr

Settle = Callable[[Any, Any], Any]


class FoundSizes:
    """The dimensions of a model's counts: one count, one dimension."""

    def __init__(self) -> None:
        self.dims: dict[int, tuple[Expr, Any]] = {}  # by the id of the count, which is kept
        self.made: dict[int, tuple[Any, Any]] = {}  # of NonZero, by the id of its data
        self.inside = 0  # of how many loops and branches, which know sizes of inputs alone

    @contextmanager
    def inside_of_one(self) -> Iterator[None]:
        """Convert a loop's body or a branch."""
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    def once(self, view: NodeView, settle: Settle | None, shapes: Callable[[], Any]) -> Any:
        """Return what `settle` makes of a node; what is found in one tensor has one size."""
        if settle is None:
            return None
        if view.kind != "NonZero":
            return settle(view, shapes())
        data = view.inputs[0]
        if id(data) not in self.made:
            self.made[id(data)] = data, settle(view, shapes())
        return self.made[id(data)][1]

    def through(self, convert: Converter, view: NodeView) -> Any:
        """Convert a node with counted inputs.  Raises UnsupportedNode."""
        try:
            return through_counted(convert, view)
        except UnsupportedNode as error:
            if self.inside:
                raise
            view.inputs = [self.of(v, error) if isinstance(v, Counted) else v for v in view.inputs]
        return convert(view)

    def of(self, value: Counted, error: UnsupportedNode) -> Expr:
        """Return as much of a tensor as is there.  Raises `error` where nothing bounds it."""
        room = value.data.tensor_type.shape[value.axis]
        most = room.high if isinstance(room, SymbolDim) else room
        if most is None:
            raise error
        known = self.dims.get(id(value.count))
        if known is None:
            dim = relay.Dim(f"found{len(self.dims)}", 0, most)
            known = self.dims[id(value.count)] = (value.count, dim)
        return relay.sized(value.data, value.count, known[1], value.axis)


def positions_in_room(condition: Expr) -> tuple[Expr, Expr]:
    """Return the positions (int64) of the true elements of a bool vector, and their number (1,).

    There is room for all; what lies after the last is 0.
    """
    (total,) = condition.tensor_type.shape
    held = relay.cast(condition, "int32")
    zero = const(np.int32(0))
    position = relay.where(condition, relay.cumsum(held, 0), zero)  # those not found meet at 0
    every = relay.arange(0, total, 1, "int32")
    found = relay.scatter_elements(relay.zeros((total + 1,), "int32"), position, every, 0)
    first = relay.strided_slice(found, [1], [total + 1])
    return relay.cast(first, "int64"), relay.sum(relay.cast(held, "int64"), 0, keepdims=True)
