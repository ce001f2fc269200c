"""Sizes of the model's own, for tensors whose size depends on the data (`values.Counted`).

Where a node cannot work on the whole room, a counted tensor becomes one of as many entries as were
found: its axis is an open dimension that the run tells (`relay.sized`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from slipway import relay
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.onnx.converters import DependsOnInputs
from slipway.frontends.onnx.counted import through_counted
from slipway.frontends.onnx.values import Counted, Value
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
        self.bounds: Mapping[str, Any] = {}  # of results of Range, as the user says

    def once(self, view: NodeView, settle: Settle | None, shapes: Callable[[], Any]) -> Any:
        """Return what `settle` makes of a node; what is found in one tensor has one size."""
        if settle is None:
            return None
        if view.kind != "NonZero":
            made = settle(view, shapes())
            return self.range(view) if made is None and view.kind == "Range" else made
        data = view.inputs[0]
        if id(data) not in self.made:
            self.made[id(data)] = data, settle(view, shapes())
        return self.made[id(data)][1]

    def range(self, view: NodeView) -> Any:
        """Return a Range up to a computed limit.  Raises UnsupportedNode without a bound."""
        called = view.outputs[0] if view.outputs[0] in self.bounds else view.name
        dim = self.bounds.get(called)
        if dim is None:
            raise DependsOnInputs(
                "its limit depends on the model's inputs: say how long it becomes, under the "
                "node's name, as in dims={'Range_0': (1, 512)} (--dim Range_0=1..512)"
            )
        start, limit, delta = (relay.reshape(view.input(i), ()) for i in range(3))
        dtype = start.tensor_type.dtype
        steps = relay.divide(*(relay.cast(x, "float64") for x in (limit - start, delta)))
        count = relay.cast(relay.maximum(relay.ceil(steps), const(0.0, "float64")), "int64")
        most = dim.high if isinstance(dim, SymbolDim) else dim
        room = relay.arange(0, 1 if most is None else most, 1, dtype)
        every = relay.sized(room, count, dim, name=called)
        return relay.add(start, relay.multiply(every, delta))

    def through(self, convert: Converter, view: NodeView) -> Any:
        """Convert a node with counted inputs.  Raises UnsupportedNode."""
        try:
            return through_counted(convert, view)
        except UnsupportedNode as error:
            view.inputs = [self.of(v, error) if isinstance(v, Counted) else v for v in view.inputs]
        return convert(view)

    def cut(self, value: Value) -> Value:
        """Return as much as is there of an output; with its count where nothing bounds it."""
        unbounded = UnsupportedNode("nothing bounds what is found")
        with suppress(UnsupportedNode):
            return self.of(value, unbounded) if isinstance(value, Counted) else value
        return value

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
