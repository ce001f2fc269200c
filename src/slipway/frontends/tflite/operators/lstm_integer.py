"""The LSTM cell on 8-bit or 16-bit data with 8-bit weights: LiteRT's arithmetic, and TFLM's.

In both the gates' sums are 16-bit numbers in Q3.12, their activations Q0.15, and the cell has 16
bits with a scale that is a power of two.  They differ in the activations: TensorFlow Lite Micro
reads a table of 256 places and interpolates, LiteRT computes in 16 bits (`fixed16`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant
from slipway.frontends.tflite.file_model import Quantization
from slipway.frontends.tflite.fixed_point.fixed16 import looked_up, sigmoid_table, tanh_table
from slipway.frontends.tflite.fixed_point.sigmoid16 import logistic_of, tanh_of
from slipway.frontends.tflite.operators.lstm_parts import (
    ABSENT,
    CELL,
    FORGET,
    INPUT,
    OUTPUT,
    LstmParts,
)
from slipway.relay.op_registry import const
from slipway.relay.ops.qnn.rescale import rescale_by

UNIT = 2.0**-15  # of a gate's activation
SUM_UNIT = 2.0**-12  # of a gate's sum


def _narrowed(value: Any) -> Any:
    return relay.clip(value, -32768, 32767)


@dataclass(frozen=True)
class _Product:
    """One matrix product: packed weights, what is added to the sums, and their scale."""

    weights: Any
    added: Any
    real: float
    dtype: str

    def of(self, rows: Any) -> Any:
        total = relay.qnn.op.dense_packed(rows, self.weights, self.dtype)
        if self.added is not None:
            total = relay.add(total, self.added)
        return rescale_by(total, self.real)


@dataclass(frozen=True)
class _Projection:
    product: _Product
    hidden: Quantization
    clip: int


@dataclass(frozen=True)
class _Cell:
    """What both runtimes have in common."""

    data: dict[int, _Product]
    recurrent: dict[int, _Product]
    state_scale: float
    hidden_scale: float
    hidden_zero: int
    dtype: str
    clip: int

    def products(self, data: Any) -> list[Any]:
        """Return what each gate has of all steps' data, in the 16 bits that hold it."""
        return [relay.cast(_narrowed(p.of(data)), "int16") for p in self.data.values()]

    def step(self, x: dict[int, Any], hidden: Any, state: Any) -> tuple[Any, Any]:
        """Return the new states of one step."""
        wide = relay.cast(state, "int32")
        forget = self.gate(FORGET, x, hidden, wide)
        if INPUT in self.data:
            gate = self.gate(INPUT, x, hidden, wide)
        else:
            gate = relay.subtract(const(32767, "int32"), forget)
        kept = _narrowed(rescale_by(relay.multiply(forget, wide), UNIT))
        fresh = relay.multiply(gate, self.gate(CELL, x, hidden, wide))
        fresh = _narrowed(rescale_by(fresh, UNIT * UNIT / self.state_scale))
        wide = _narrowed(relay.add(kept, fresh))
        if self.clip > 0:
            wide = relay.clip(wide, -self.clip, self.clip)
        gated = relay.multiply(self.bounded(wide), self.gate(OUTPUT, x, hidden, wide))
        return self.output(gated), relay.cast(wide, "int16")

    def output(self, gated: Any) -> Any:
        """Return the new hidden state from the output gate's product."""
        return self._stored(rescale_by(gated, UNIT * UNIT / self.hidden_scale), self.hidden_zero)

    def _stored(self, value: Any, zero: int) -> Any:
        info = np.iinfo(self.dtype)
        if zero:
            value = relay.add(value, const(zero, "int32"))
        return relay.cast(relay.clip(value, info.min, info.max), self.dtype)

    def gate(self, gate: int, x: dict[int, Any], hidden: Any, state: Any) -> Any:
        raise NotImplementedError

    def bounded(self, state: Any) -> Any:
        """Return the hyperbolic tangent of the cell's state."""
        raise NotImplementedError


class _MicroCell(_Cell):
    """TensorFlow Lite Micro's."""

    def gate(self, gate: int, x: dict[int, Any], hidden: Any, state: Any) -> Any:
        # Of 16 bits, so that a microcontroller's kernel of the product can end here.
        given = relay.cast(_narrowed(self.recurrent[gate].of(hidden)), "int16")
        total = relay.add(relay.cast(x[gate], "int32"), relay.cast(given, "int32"))
        total = _narrowed(total)
        argument = relay.multiply(total, const(3, "int32"))
        return relay.cast(tanh_of(argument) if gate == CELL else logistic_of(argument), "int32")

    def bounded(self, state: Any) -> Any:
        return relay.cast(tanh_of(self._tanh_argument(state)), "int32")

    def _tanh_argument(self, state: Any) -> Any:
        left = 12 + round(math.log2(self.state_scale))
        if left >= 0:
            return relay.multiply(state, const(3 << left, "int32"))
        tripled = relay.multiply(state, const(3, "int32"))
        nudged = relay.add(tripled, const(1 << (-left - 1), "int32"))
        return relay.right_shift(nudged, const(-left, "int32"))


@dataclass(frozen=True)
class _LiteCell(_Cell):
    """LiteRT's; it has peephole connections and a projection too."""

    peephole: dict[int, tuple[Any, float]]
    projection: _Projection | None

    def gate(self, gate: int, x: dict[int, Any], hidden: Any, state: Any) -> Any:
        given = self.recurrent[gate].of(hidden)
        total = _narrowed(relay.add(relay.cast(x[gate], "int32"), given))
        if gate in self.peephole:
            weights, real = self.peephole[gate]
            seen = rescale_by(relay.multiply(weights, state), real)
            total = _narrowed(relay.add(total, seen))
        return looked_up(tanh_table(3) if gate == CELL else sigmoid_table(), total)

    def bounded(self, state: Any) -> Any:
        return looked_up(tanh_table(15 + round(math.log2(self.state_scale))), state)

    def output(self, gated: Any) -> Any:
        if self.projection is None:
            return super().output(gated)
        hidden = self.projection.hidden
        # The zero point has the other sign here, in the file's meaning and in LiteRT.
        inner = self._stored(rescale_by(gated, UNIT * UNIT / hidden.scale), -hidden.zero_point)
        out = self._stored(self.projection.product.of(inner), self.hidden_zero)
        if self.projection.clip > 0:
            out = relay.clip(out, -self.projection.clip, self.projection.clip)
        return out


def integer_cell(node: NodeView, parts: LstmParts) -> Any:
    """Return the cell of an integer LSTM: LiteRT's where products round once, or TFLM lacks it."""
    node.need_dtype("int8", "int16")
    dtype = node.tensor(0).dtype
    gates = parts.gates(node)
    hidden, state = node.quantization(parts.hidden), node.quantization(parts.state)
    if math.frexp(state.scale)[0] != 0.5:
        raise node.unsupported(f"the cell's scale {state.scale} is no power of two")
    if any(node.has(parts.norm + g) for g in gates):
        raise node.unsupported("layer normalisation is supported on floating point data only")
    peepholes = [g for g in gates if node.has(parts.peephole_of(g))]
    projects = node.has(parts.projection)
    whole = not (peepholes or projects or parts.is_coupled(node))
    for position in (parts.weights + OUTPUT, parts.recurrent + OUTPUT):
        if node.tensor(position).dtype != "int8" or len(node.tensor(position).shape) != 2:
            raise node.unsupported("its weights are not matrices of int8")
    if dtype == "int16" and not whole:
        raise node.unsupported("on int16 data only the plain cell is supported, as in TFLM")
    if peepholes and parts.outputs(node) != parts.units(node):
        raise node.unsupported("it has integer peephole connections and a projection to another "
                               "size, where LiteRT's kernel reads past its rows")  # fmt: skip
    sums = "int32" if dtype == "int8" else "int64"
    float32 = np.float32

    def product(weight: int, zero: int, real: float, bias: int) -> _Product:
        packed = node.constant(weight).T
        added = np.zeros(packed.shape[1], np.int64)
        if zero:
            added = -zero * packed.astype(np.int64).sum(axis=0)
        if node.has(bias):
            added = added + node.constant(bias)
        constant = array_constant(added, sums) if added.any() else None
        return _Product(array_constant(packed, "int8"), constant, real, sums)

    def of_gate(weight: int, source: Quantization, bias: int) -> _Product:
        scale = float32(source.scale) * float32(node.quantization(weight).scale)
        return product(weight, source.zero_point, float(scale) / SUM_UNIT, bias)

    data = {g: of_gate(parts.weights + g, node.quantization(0), parts.bias + g) for g in gates}
    recurrent = {g: of_gate(parts.recurrent + g, hidden, ABSENT) for g in gates}
    clip = int(min(max(node.option("cell_clip") / state.scale, -32768.0), 32767.0))
    common = (data, recurrent, state.scale, hidden.scale, hidden.zero_point, dtype, clip)
    bits = 15 + round(math.log2(state.scale))
    if dtype == "int16" or (whole and not node.rounds_once):
        return _MicroCell(*common)
    if not 0 <= bits <= 6:
        raise node.unsupported(f"the cell's scale {state.scale} is not from 2**-15 to 2**-9")
    peephole = {}
    for gate in peepholes:
        position = parts.peephole_of(gate)
        real = float32(2.0 ** (bits - 15)) * float32(node.quantization(position).scale) / SUM_UNIT
        peephole[gate] = (array_constant(node.constant(position), "int32"), float(float32(real)))
    projection = None
    if projects:
        inner = _inner(node)
        scale = float32(node.quantization(parts.projection).scale) * float32(inner.scale)
        effective = float(scale / float32(hidden.scale))
        made = product(parts.projection, -inner.zero_point, effective, parts.projection + 1)
        most = node.option("proj_clip") / node.out_quantization().scale
        projection = _Projection(made, inner, int(min(max(most, -128.0), 127.0)))
    return _LiteCell(*common, peephole, projection)


def _inner(node: NodeView) -> Quantization:
    """Return the quantisation of what is projected, which is the fifth intermediate tensor."""
    listed = node.operator.intermediates
    found = (
        node.graph.tensors[listed[4]].quantization if len(listed) > 4 and listed[4] >= 0 else None
    )
    if found is None:
        raise node.unsupported("it does not say the scale of what it projects")
    return found
