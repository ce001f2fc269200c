"""The LSTM cell on floating point data; weights that are stored as int8 multiply quantised rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, array_constant
from slipway.frontends.tflite.floating import activated, float_weights
from slipway.frontends.tflite.hybrid import quantized_rows
from slipway.frontends.tflite.operators.lstm_parts import CELL, FORGET, INPUT, OUTPUT, LstmParts
from slipway.relay.op_registry import const

GUARD = 1e-8  # beside the variance of layer normalisation


class Product:
    """Rows by a weight matrix of the file, by LiteRT's rule for how the matrix is stored."""

    def __init__(self, node: NodeView, position: int) -> None:
        self.symmetric = not node.option("asymmetric_quantize_inputs")
        tensor = node.tensor(position)
        self.diagonal = len(tensor.shape) == 1
        self.quantized = tensor.dtype in ("int8", "uint8") and not self.diagonal
        if self.quantized:
            values = node.constant(position).astype(np.uint8).view(np.int8)
            self.scale = float(np.float32(node.quantization(position).scale))
            self.matrix = array_constant(values.T, "int8")
        else:
            self.matrix = array_constant(float_weights(node, position), "float32")

    def rows(self, data: Any) -> Any:
        """Return data as `of` takes it; products with the same data share it."""
        return quantized_rows(data, self.symmetric) if self.quantized else data

    def of(self, rows: Any) -> Any:
        """Return the product of what `rows` gave."""
        if self.diagonal:
            return relay.multiply(rows, self.matrix)
        if not self.quantized:
            return relay.nn.dense(rows, self.matrix)
        total = relay.cast(relay.qnn.op.dense_packed(rows.data, self.matrix), "float32")
        factor = relay.multiply(rows.scales, const(self.scale, "float32"))
        return relay.multiply(total, factor)


def products_of(matrices: list[Product], data: Any) -> list[Any]:
    """Return the product of the same data with each matrix; data is quantised once."""
    shared: dict[bool, Any] = {}
    found = []
    for matrix in matrices:
        if matrix.quantized not in shared:
            shared[matrix.quantized] = matrix.rows(data)
        found.append(matrix.of(shared[matrix.quantized]))
    return found


class FloatCell:
    """The cell of one direction."""

    def __init__(self, node: NodeView, parts: LstmParts) -> None:
        self.gates = parts.gates(node)
        self.activation = node.activation
        self.clips = (node.option("cell_clip"), node.option("proj_clip"))
        self.weights = [Product(node, parts.weights + g) for g in self.gates]
        self.recurrent = [Product(node, parts.recurrent + g) for g in self.gates]
        self.aux = [Product(node, parts.aux + g) for g in self.gates if node.has(parts.aux + g)]

        def vector(position: int) -> Any:
            if not node.has(position):
                return None
            return array_constant(float_weights(node, position), "float32")

        self.bias = {g: vector(parts.bias + g) for g in self.gates}
        self.norm = {g: vector(parts.norm + g) for g in self.gates}
        self.peephole = {g: vector(parts.peephole_of(g)) for g in self.gates}
        has = node.has(parts.projection)
        self.projection = Product(node, parts.projection) if has else None
        self.projection_bias = vector(parts.projection + 1)

    def products(self, data: Any) -> list[Any]:
        """Return what each gate has of all steps' data (steps * batch, inputs)."""
        return products_of(self.weights, data)

    def with_other(self, products: list[Any], data: Any) -> list[Any]:
        """Add what each gate has of the auxiliary data."""
        more = products_of(self.aux, data)
        return [relay.add(a, b) for a, b in zip(products, more, strict=True)]

    def step(self, x: dict[int, Any], hidden: Any, state: Any) -> tuple[Any, Any]:
        """Return the new states of one step."""
        back = products_of(self.recurrent, hidden)
        total = {g: relay.add(x[g], b) for g, b in zip(self.gates, back, strict=True)}
        forget = self._gate(FORGET, total, state)
        if INPUT in total:
            gate = self._gate(INPUT, total, state)
        else:
            gate = relay.subtract(const(1.0, "float32"), forget)
        fresh = relay.multiply(gate, self._gate(CELL, total, state))
        state = relay.add(relay.multiply(forget, state), fresh)
        cell_clip, clip = self.clips
        if cell_clip > 0:
            state = relay.clip(state, -cell_clip, cell_clip)
        out = self._gate(OUTPUT, total, state)
        out = relay.multiply(out, activated(state, self.activation))
        if self.projection is not None:
            out = self.projection.of(self.projection.rows(out))
            if self.projection_bias is not None:
                out = relay.add(out, self.projection_bias)
            if clip > 0:
                out = relay.clip(out, -clip, clip)
        return out, state

    def _gate(self, gate: int, totals: dict[int, Any], state: Any) -> Any:
        total = totals[gate]
        norm, bias, peephole = self.norm[gate], self.bias[gate], self.peephole[gate]
        if bias is not None and norm is None:
            total = relay.add(total, bias)
        if peephole is not None:
            total = relay.add(total, relay.multiply(peephole, state))
        if norm is not None:
            total = relay.multiply(_normalized(total), norm)
            if bias is not None:
                total = relay.add(total, bias)
        return activated(total, self.activation) if gate == CELL else relay.sigmoid(total)


def _normalized(rows: Any) -> Any:
    off = relay.subtract(rows, relay.mean(rows, axis=1, keepdims=True))
    variance = relay.mean(relay.multiply(off, off), axis=1, keepdims=True)
    deviation = relay.sqrt(relay.add(variance, const(GUARD, "float32")))
    return relay.divide(off, deviation)
