"""Sizes of the model's own, for tensors whose size depends on the data (`values.Counted`).

Where a node cannot work on the whole room, a counted tensor becomes one of as many entries as were
found: its axis is an open dimension that the run tells (`relay.sized`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.dtypes import is_float
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.onnx.converters import DependsOnInputs
from slipway.frontends.onnx.counted import through_counted
from slipway.frontends.onnx.values import Counted, Value, mapped
from slipway.relay.analysis.size_bounds import bounds_of_values
from slipway.relay.analysis.size_values import SizeValues, is_small
from slipway.relay.dims import SymbolDim
from slipway.relay.expr import Call
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import children

if TYPE_CHECKING:
    from slipway.frontends.onnx.converters import Converter, NodeView
    from slipway.relay.expr import Expr, Var

LONGEST = 1 << 20  # a size that is told; there is room for as many flags
Settle = Callable[[Any, Any], Any]


class FoundSizes:
    """The dimensions of a model's counts: one count, one dimension."""

    def __init__(self) -> None:
        self.dims: dict[int, tuple[Expr, Any]] = {}  # by the id of the count, which is kept
        self.made: dict[int, tuple[Any, Any]] = {}  # of NonZero, by the id of its data
        self.told_sizes: dict[tuple[int, int], tuple[Expr, Any]] = {}  # by the tensor and element
        self.bounds: Mapping[str, Any] = {}  # of results of Range and of inputs, as the user says
        self.inputs: dict[int, tuple[Any, Any]] = {}  # the ends of their elements, by variable

    def enter(self, inputs: Sequence[Var]) -> None:
        """Note between which ends the elements of the inputs lie that `dims` speaks of."""
        for var in inputs:
            dim = self.bounds.get(var.name)
            if dim is not None:
                low, high = (dim.low, dim.high) if isinstance(dim, SymbolDim) else (dim, dim)
                shape = var.tensor_type.shape
                ends = np.full(shape, low, "float64"), np.full(shape, high, "float64")
                self.inputs[id(var)] = ends

    def once(
        self, convert: Converter, view: NodeView, settle: Settle | None, shapes: Callable[[], Any]
    ) -> Any:
        """Return what `settle` makes of a node; what is found in one tensor has one size."""
        if settle is None:
            return None
        if view.kind != "NonZero":
            made = settle(view, shapes())
            if made is None and not self._is_bounded(view):
                made = self.told(convert, view)
            return self.range(view) if made is None and view.kind == "Range" else made
        data = view.inputs[0]
        if id(data) not in self.made:
            self.made[id(data)] = data, settle(view, shapes())
        return self.made[id(data)][1]

    def told(self, convert: Converter, view: NodeView) -> Any:
        """Return a node whose sizes are computed from sizes in floats, as run-time sizes.

        None where nothing bounds them.
        """
        tellers: dict[str, Expr] = {}
        entered = []
        for value in view.inputs:
            type_ = getattr(value, "type", None)
            if value is None or not isinstance(type_, TensorType) or is_float(type_.dtype):
                continue
            if not is_small(value) or view.sizes.of(value) is not None:
                continue
            elements = self._elements(value, view.sizes, tellers)
            if elements is None:
                continue
            array = np.empty(len(elements), object)
            array[:] = elements
            entered.append(value)
            view.sizes.enter(value, array.reshape(type_.shape))
        if not tellers:
            return None
        try:
            made = convert(view)
        finally:
            for value in entered:  # for this node alone, which comes after what tells them
                view.sizes.known[id(value)] = None
        several = made if isinstance(made, list) else [made]
        return [mapped(m, lambda one: _after(one, list(tellers.values()))) for m in several]

    def _elements(
        self, value: Expr, sizes: SizeValues, tellers: dict[str, Expr]
    ) -> list[Any] | None:
        """Return the elements of a tensor of sizes; each that is not known is a dimension."""
        known = sizes.of(value)
        if known is not None:
            return list(known.flat)
        if isinstance(value, Call) and is_call_of(value, "concatenate"):
            parts = [self._elements(p, sizes, tellers) for p in children(value.args[0])]
            return None if any(p is None for p in parts) else [e for p in parts for e in p or ()]
        ends = bounds_of_values(value, sizes, self.inputs)
        if ends is None:
            return None
        made = []
        for index, (low, high) in enumerate(zip(*(end.flat for end in ends), strict=True)):
            if not 0 <= low <= high <= LONGEST:
                return None
            key = id(value), index
            if key not in self.told_sizes:
                dim = relay.Dim(f"told{len(self.told_sizes)}", int(low), int(high))
                self.told_sizes[key] = value, dim
            dim = self.told_sizes[key][1]
            if isinstance(dim, SymbolDim):
                flat = relay.cast(relay.reshape(value, (-1,)), "int64")
                count = relay.strided_slice(flat, [index], [index + 1])
                room = relay.zeros((int(high),), "bool")
                tellers[str(dim)] = relay.sized(room, count, dim)
            made.append(dim)
        return made

    def _is_bounded(self, view: NodeView) -> bool:
        return view.kind == "Range" and bool({view.name, *view.outputs} & self.bounds.keys())

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


def _after(value: Expr, tellers: Sequence[Expr]) -> Any:
    """Return a result behind what tells sizes, though nothing else reads that."""
    told = [relay.any(every, 0, False) for every in tellers]
    flag = told[0]
    for other in told[1:]:
        flag = relay.logical_or(flag, other)
    return relay.where(flag, relay.zeros_like(value), value)
