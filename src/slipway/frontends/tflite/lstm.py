"""UNIDIRECTIONAL_SEQUENCE_LSTM, a loop over time; its state is input and output of the model.

Float, and 8-bit or 16-bit activations with 8-bit weights in the steps of TensorFlow Lite Micro: the
gates' sums are 16-bit numbers in Q3.12, their activations Q0.15, the cell 16 bits with a scale that
is a power of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.steps import run_steps
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.floating import activated, float_weights
from slipway.frontends.tflite.sigmoid16 import logistic_of, tanh_of
from slipway.relay.ops.qnn.rescale import rescale_by

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

INPUT, FORGET, CELL, OUTPUT = range(4)
HIDDEN_STATE, CELL_STATE = 18, 19
VARIANTS = {
    "peephole connections": range(9, 12), "a projection": (16, 17),
    "layer normalisation": range(20, 24),
}  # fmt: skip


@converter("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(node: NodeView) -> Any:
    """Data is (batch, time, inputs), or (time, batch, inputs) with time_major."""
    for what, positions in VARIANTS.items():
        if any(node.has(i) for i in positions):
            raise node.unsupported(f"{what} are not supported")
    if not all(node.has(i) for i in (1, 5, 12)):
        raise node.unsupported("coupled input and forget gates are not supported")
    if len(node.shape()) != 3:
        raise node.unsupported(f"its data has the shape {node.shape()}, not three axes")
    axis = 0 if node.option("time_major") else 1
    steps = node.shape()[axis]
    if node.is_float:
        cell: Any = _FloatCell(node)
    else:
        node.need_dtype("int8", "int16")
        cell = _integer_cell(node)
    shapes = node.shape(HIDDEN_STATE), node.shape(CELL_STATE)
    rows = (node.shape()[1 - axis], node.tensor(1).shape[0])
    hidden = relay.reshape(node[HIDDEN_STATE], rows)
    state = relay.reshape(node[CELL_STATE], rows)
    data = node[0] if axis == 0 else relay.transpose(node[0], (1, 0, 2))
    flat = relay.reshape(data, (steps * rows[0], data.tensor_type.shape[2]))

    def once(states: list[Any], products: list[Any]) -> tuple[list[Any], list[Any]]:
        new = list(cell.step(products, *states))
        return new, new[:1]

    products = [relay.reshape(p, (steps, *rows)) for p in cell.products(flat)]
    (hidden, state), (out,) = run_steps(once, [hidden, state], products)
    if axis:
        out = relay.transpose(out, (1, 0, 2))
    return [out, relay.reshape(hidden, shapes[0]), relay.reshape(state, shapes[1])]


class _FloatCell:
    def __init__(self, node: NodeView) -> None:
        if node.tensor(1).dtype not in ("float32", "float16"):
            raise node.unsupported("hybrid weights are not supported")
        self.activation = node.activation
        self.clip = node.option("cell_clip")
        self.gates = [
            tuple(
                array_constant(float_weights(node, position + gate), "float32")
                for position in (1, 5, 12)
            )
            for gate in range(4)
        ]

    def products(self, data: Expr) -> list[Any]:
        """Return what each gate has of all steps' data (steps * batch, inputs)."""
        return [relay.nn.dense(data, weights) for weights, _, _ in self.gates]

    def _gate(self, gate: int, x: list[Any], hidden: Any) -> Any:
        _, recurrent, bias = self.gates[gate]
        total = relay.add(x[gate], relay.nn.dense(hidden, recurrent))
        total = relay.add(total, bias)
        return activated(total, self.activation) if gate == CELL else relay.sigmoid(total)

    def step(self, x: list[Any], hidden: Any, state: Any) -> tuple[Any, Any]:
        kept = relay.multiply(self._gate(FORGET, x, hidden), state)
        fresh = relay.multiply(self._gate(INPUT, x, hidden), self._gate(CELL, x, hidden))
        state = relay.add(kept, fresh)
        if self.clip > 0:
            state = relay.clip(state, -self.clip, self.clip)
        return relay.multiply(
            self._gate(OUTPUT, x, hidden), activated(state, self.activation)
        ), state


@dataclass(frozen=True)
class _Product:
    """One matrix product of a gate: packed weights, what is added to the sums, and their scale."""

    weights: Any
    added: Any
    real: float
    dtype: str

    def of(self, rows: Any) -> Any:
        total = relay.qnn.op.dense_packed(rows, self.weights, self.dtype)
        if self.added is not None:
            total = relay.add(total, self.added)
        return _narrowed(rescale_by(total, self.real))


def _narrowed(value: Expr) -> Any:
    return relay.clip(value, -32768, 32767)


@dataclass(frozen=True)
class _IntegerCell:
    gates: list[tuple[_Product, _Product]]
    state_scale: float
    hidden_scale: float
    hidden_zero: int
    dtype: str
    clip: int

    def products(self, data: Expr) -> list[Any]:
        """Return what each gate has of all steps' data, in the 16 bits that hold it."""
        return [relay.cast(of_data.of(data), "int16") for of_data, _ in self.gates]

    def _gate(self, gate: int, x: list[Any], hidden: Any) -> Any:
        _, of_hidden = self.gates[gate]
        given = of_hidden.of(hidden)
        data = relay.cast(x[gate], given.tensor_type.dtype)
        total = _narrowed(relay.add(data, given))
        argument = relay.multiply(total, relay.const(3, "int32"))
        found = tanh_of(argument) if gate == CELL else logistic_of(argument)
        return relay.cast(found, "int32")

    def step(self, x: list[Any], hidden: Any, state: Any) -> tuple[Any, Any]:
        unit = 2.0**-15
        wide = relay.cast(state, "int32")
        kept = relay.multiply(self._gate(FORGET, x, hidden), wide)
        kept = _narrowed(rescale_by(kept, unit * self.state_scale / self.state_scale))
        fresh = relay.multiply(self._gate(INPUT, x, hidden), self._gate(CELL, x, hidden))
        fresh = _narrowed(rescale_by(fresh, unit * unit / self.state_scale))
        wide = _narrowed(relay.add(kept, fresh))
        if self.clip > 0:
            wide = relay.clip(wide, -self.clip, self.clip)
        gated = relay.multiply(
            relay.cast(tanh_of(self._tanh_argument(wide)), "int32"), self._gate(OUTPUT, x, hidden)
        )
        info = np.iinfo(self.dtype)
        out = rescale_by(gated, unit * unit / self.hidden_scale)
        if self.hidden_zero:
            out = relay.add(out, relay.const(self.hidden_zero, "int32"))
        out = relay.cast(relay.clip(out, info.min, info.max), self.dtype)
        return out, relay.cast(wide, "int16")

    def _tanh_argument(self, state: Any) -> Any:
        left = 12 + round(math.log2(self.state_scale))
        if left >= 0:
            return relay.multiply(state, relay.const(3 << left, "int32"))
        tripled = relay.multiply(state, relay.const(3, "int32"))
        nudged = relay.add(tripled, relay.const(1 << (-left - 1), "int32"))
        return relay.right_shift(nudged, relay.const(-left, "int32"))


def _integer_cell(node: NodeView) -> _IntegerCell:
    hidden, cell = node.quantization(HIDDEN_STATE), node.quantization(CELL_STATE)
    if math.frexp(cell.scale)[0] != 0.5:
        raise node.unsupported(f"the cell's scale {cell.scale} is no power of two")
    dtype = node.tensor(0).dtype
    sums = "int32" if dtype == "int8" else "int64"

    def product(weight: int, source: Any, bias: int | None) -> _Product:
        scale = np.float32(source.scale) * np.float32(node.quantization(weight).scale)
        packed = node.constant(weight).T
        added = np.zeros(packed.shape[1], np.int64)
        if source.zero_point:
            added = -source.zero_point * packed.astype(np.int64).sum(axis=0)
        if bias is not None:
            added = added + node.constant(bias)
        constant = array_constant(added, sums) if added.any() else None
        return _Product(array_constant(packed, "int8"), constant, float(scale) / 2.0**-12, sums)

    gates = [
        (
            product(1 + gate, node.quantization(0), 12 + gate),
            product(5 + gate, hidden, None),
        )
        for gate in range(4)
    ]
    clip = int(min(max(node.option("cell_clip") / cell.scale, -32768.0), 32767.0))
    return _IntegerCell(gates, cell.scale, hidden.scale, hidden.zero_point, dtype, clip)
