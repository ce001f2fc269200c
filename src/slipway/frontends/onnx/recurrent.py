"""LSTM, GRU and RNN, unrolled over the (static) sequence."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter


def _activation(node: NodeView, name: str) -> Any:
    known = {"sigmoid": relay.sigmoid, "tanh": relay.tanh, "relu": relay.nn.relu}
    found = known.get(name.lower())
    if found is None:
        raise node.unsupported(f"activation {name!r}")
    return found


class _Direction:
    """One direction of a recurrent layer: its weights, states and activations."""

    def __init__(self, node: NodeView, index: int, gates: int) -> None:
        self.node = node
        self.hidden = int(node.attr("hidden_size", node.type(2).shape[2]))
        self.reverse = node.attr("direction", "forward") == "reverse" or index == 1
        self.weight = self.part(node.input(1), index)
        self.recurrence = self.part(node.input(2), index)
        self.bias = self.part(node.optional(3), index)
        batch = node.type().shape[1]
        zeros = relay.const(np.zeros((batch, self.hidden), node.type().dtype))
        self.h = self.part(node.optional(5), index) if node.has(5) else zeros
        self.c = self.part(node.optional(6), index) if gates == 4 and node.has(6) else zeros
        self.peephole = self.part(node.optional(7), index) if gates == 4 and node.has(7) else None
        per = {4: 3, 3: 2, 1: 1}[gates]
        defaults = {4: ("Sigmoid", "Tanh", "Tanh"), 3: ("Sigmoid", "Tanh"), 1: ("Tanh",)}[gates]
        names = node.attr("activations") or defaults * 2
        self.functions = [_activation(node, n) for n in names[index * per : (index + 1) * per]]

    @staticmethod
    def part(value: Any, index: int) -> Any:
        """Return the slice of one direction, without the direction axis."""
        if value is None:
            return None
        if value.tensor_type.shape[0] == 1:
            return relay.squeeze(value, [0])
        cut = relay.strided_slice(value, [index], [index + 1], axes=[0])
        return relay.squeeze(cut, [0])

    @cached_property
    def reset_parts(self) -> tuple[Any, Any]:
        """Of a GRU: (weights of update and reset, of the candidate), and the biases (or None).

        Made once: every step reads the same constants.
        """
        size = self.hidden
        weights = relay.split(self.recurrence, [2 * size], axis=0)
        if self.bias is None:
            return weights, None
        bias = relay.strided_slice(self.bias, [3 * size], [6 * size])
        return weights, relay.split(bias, [2 * size], axis=0)

    def input_gates(self, gates: int) -> list[Any]:
        """Return x_t @ W.T + bias for each step: one product for the whole sequence."""
        steps, batch, width = self.node.type().shape
        flat = relay.reshape(self.node.input(0), (steps * batch, width))
        product = relay.nn.dense(flat, self.weight)
        if self.bias is not None:
            half = gates * self.hidden
            bias = relay.strided_slice(self.bias, [0], [half])
            if gates != 3:  # a GRU may need the recurrent bias of its hidden gate apart
                bias = relay.add(bias, relay.strided_slice(self.bias, [half], [2 * half]))
            product = relay.nn.bias_add(product, bias, axis=-1)
        if steps == 1:
            return [product]
        return list(relay.split(product, steps, axis=0))


def _clipped(node: NodeView, value: Any) -> Any:
    limit = node.attr("clip")
    return value if limit is None else relay.clip(value, -limit, limit)


def _lstm_step(d: _Direction, x: Any) -> Any:
    """Gates in ONNX order i, o, f, c."""
    node = d.node
    total = _clipped(node, relay.add(x, relay.nn.dense(d.h, d.recurrence)))
    i, o, f, c = relay.split(total, 4, axis=1)
    gate, cell, output = d.functions
    peep = list(relay.split(d.peephole, 3, axis=0)) if d.peephole is not None else None
    if peep:
        i = relay.add(i, relay.multiply(peep[0], d.c))
        f = relay.add(f, relay.multiply(peep[2], d.c))
    new = relay.add(relay.multiply(gate(f), d.c), relay.multiply(gate(i), cell(c)))
    if peep:
        o = relay.add(o, relay.multiply(peep[1], new))
    d.c = new
    d.h = relay.multiply(gate(o), output(new))
    return d.h


def _gru_step(d: _Direction, x: Any) -> Any:
    """Gates in ONNX order z, r, h."""
    node, size = d.node, d.hidden
    gate, cell = d.functions
    rows, biases = d.reset_parts
    xs = relay.split(x, [2 * size], axis=1)
    both = relay.add(xs[0], relay.nn.dense(d.h, rows[0]))
    if biases is not None:
        both = relay.nn.bias_add(both, biases[0], axis=-1)
    z, r = relay.split(gate(_clipped(node, both)), 2, axis=1)
    if node.attr("linear_before_reset", 0):
        inner = relay.nn.dense(d.h, rows[1])
        inner = inner if biases is None else relay.nn.bias_add(inner, biases[1], axis=-1)
        inner = relay.multiply(r, inner)
    else:
        inner = relay.nn.dense(relay.multiply(r, d.h), rows[1])
        inner = inner if biases is None else relay.nn.bias_add(inner, biases[1], axis=-1)
    new = cell(_clipped(node, relay.add(xs[1], inner)))
    one = node.like(1)
    d.h = relay.add(relay.multiply(relay.subtract(one, z), new), relay.multiply(z, d.h))
    return d.h


def _rnn_step(d: _Direction, x: Any) -> Any:
    d.h = d.functions[0](_clipped(d.node, relay.add(x, relay.nn.dense(d.h, d.recurrence))))
    return d.h


@converter("LSTM", "GRU", "RNN")
def recurrent(node: NodeView) -> Any:
    """Outputs Y (steps, directions, batch, hidden), Y_h and, of an LSTM, Y_c."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[node.kind]
    step = {4: _lstm_step, 3: _gru_step, 1: _rnn_step}[gates]
    if node.attr("layout", 0):
        return _batch_first(node)
    steps = node.type().shape[0]
    if node.has(4):
        lengths = node.constant(4, "the sequence lengths")
        if not (lengths == steps).all():
            raise node.unsupported("sequences of different lengths")
    if node.attr("input_forget", 0):
        raise node.unsupported("input_forget is set")
    count = 2 if node.attr("direction", "forward") == "bidirectional" else 1
    sequences, finals, cells = [], [], []
    for index in range(count):
        direction = _Direction(node, index, gates)
        xs = direction.input_gates(gates)
        if direction.reverse:
            xs = xs[::-1]
        hs = [step(direction, x) for x in xs]
        if direction.reverse:
            hs = hs[::-1]
        sequences.append(relay.stack(hs, axis=0))
        finals.append(direction.h)
        cells.append(direction.c)
    y = relay.stack(sequences, axis=1) if count > 1 else relay.expand_dims(sequences[0], 1)
    results = [y, relay.stack(finals, 0) if count > 1 else relay.expand_dims(finals[0], 0)]
    if gates == 4:
        results.append(relay.stack(cells, 0) if count > 1 else relay.expand_dims(cells[0], 0))
    return results


def _batch_first(node: NodeView) -> Any:
    """Layout 1: the batch is the first axis of data, states and results."""
    del node.attributes["layout"]
    states = (5, 6) if node.kind == "LSTM" else (5,)
    for index in (0, *states):
        if node.has(index):
            node.inputs[index] = relay.transpose(node.input(index), (1, 0, 2))
    y, *finals = recurrent(node)
    return [relay.transpose(y, (2, 0, 1, 3)), *(relay.transpose(f, (1, 0, 2)) for f in finals)]
