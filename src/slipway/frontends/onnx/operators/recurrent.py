"""LSTM, GRU and RNN: the product with the whole sequence, then a loop over its steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.open_sizes import one_size_for
from slipway.frontends.onnx.operators.quant import in_own_range
from slipway.frontends.onnx.operators.recurrent_activations import ARGUMENTS, activation
from slipway.frontends.steps import run_steps
from slipway.relay.dims import SymbolDim, is_open
from slipway.relay.expr import Constant
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
SCALES = {1: 8, 2: 10}  # of quantised weights: which input is the scale of which
DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


class _Direction:
    """One direction of a recurrent layer: its weights, states and activations."""

    def __init__(self, node: NodeView, index: int) -> None:
        self.node = node
        self.gates = GATES[node.kind]
        self.hidden = node.type(2).shape[2]
        told = node.attr("hidden_size", self.hidden)
        if told != self.hidden:
            raise node.unsupported(f"hidden_size is {told}, and R is for {self.hidden} states")
        self.reverse = node.attr("direction", "forward") == "reverse" or index == 1
        self.weight = self.part(node.input(1), index)
        self.recurrence = self.part(node.input(2), index)
        self.scales = {
            weight: self.part(node.input(scale), index)
            for weight, scale in SCALES.items() if len(node.inputs) > scale
        }  # fmt: skip
        self.bias = self.part(node.optional(3), index)
        zeros = _zeros((node.type().shape[1], self.hidden), node.type().dtype)
        lstm = node.kind == "LSTM"
        states = (5, 6) if lstm else (5,)
        self.states = [self.part(node.input(i), index) if node.has(i) else zeros for i in states]
        self.peephole = self.part(node.optional(7), index) if lstm else None
        self.functions = _activations(node, index)

    @staticmethod
    def part(value: Any, index: int) -> Any:
        """Return the slice of one direction, without the direction axis."""
        if value is None:
            return None
        if value.tensor_type.shape[0] == 1:
            return relay.squeeze(value, [0])
        cut = relay.strided_slice(value, [index], [index + 1], axes=[0])
        return relay.squeeze(cut, [0])

    def product(self, x: Expr, number: int) -> Any:
        """Return x @ V.T for the weights V of an input; quantised ones multiply data of 8 bits."""
        weight = self.weight if number == 1 else self.recurrence
        if number not in self.scales:
            return relay.nn.dense(x, weight)
        level, scale, point = in_own_range(x)
        whole = relay.subtract(relay.cast(level, "int32"), relay.cast(point, "int32"))
        total = relay.cast(relay.nn.dense(whole, weight), "float32")
        return relay.multiply(total, relay.multiply(scale, self.scales[number]))

    def inner_bias(self) -> Any:
        """Return the recurrent bias of a GRU's hidden gate, or None."""
        if self.bias is None:
            return None
        return relay.strided_slice(self.bias, [5 * self.hidden], [6 * self.hidden])

    def input_gates(self) -> Any:
        """Return x @ W.T + biases of all steps, in one product."""
        steps, batch, width = self.node.type().shape
        product = self.product(relay.reshape(self.node.input(0), (steps * batch, width)), 1)
        if self.bias is not None:
            half = self.gates * self.hidden
            inside = relay.strided_slice(self.bias, [half], [2 * half])
            if self.gates == 3:  # the hidden gate of a GRU has the recurrent bias elsewhere
                used = relay.strided_slice(inside, [0], [2 * self.hidden])
                none = relay.zeros((self.hidden,), used.tensor_type.dtype)
                inside = relay.concatenate([used, none], 0)
            bias = relay.add(relay.strided_slice(self.bias, [0], [half]), inside)
            product = relay.nn.bias_add(product, bias, axis=-1)
        return relay.reshape(product, (steps, batch, self.gates * self.hidden))


def _activations(node: NodeView, index: int) -> list[Callable[[Any], Any]]:
    """Return the functions of one direction; their alpha and beta are taken in order of use."""
    per = len(DEFAULTS[node.kind])
    names = node.attr("activations") or DEFAULTS[node.kind] * 2
    if len(names) < (index + 1) * per:
        raise node.unsupported(f"it has {len(names)} activations for {index + 1} directions")
    given = {key: list(node.attr(f"activation_{key}") or ()) for key in ("alpha", "beta")}
    found = []
    for name in names[: (index + 1) * per]:
        values = {}
        for key in ARGUMENTS.get(name.lower(), {}):
            if given[key]:
                values[key] = given[key].pop(0)
        found.append(activation(node, name, values))
    return found[index * per :]


def _clipped(node: NodeView, value: Expr) -> Any:
    limit = node.attr("clip")
    return value if limit is None else relay.clip(value, -limit, limit)


def _lstm_step(d: _Direction, states: list[Any], x: Expr) -> list[Any]:
    """Gates in ONNX order i, o, f, c."""
    node = d.node
    h, cell_state = states
    gates = relay.split(relay.add(x, d.product(h, 2)), 4, axis=1)
    parts: list[relay.Expr] = list(gates)
    i, o, f, c = parts
    gate, cell, output = d.functions
    peep = list(relay.split(d.peephole, 3, axis=0)) if d.peephole is not None else None
    if peep:
        i = relay.add(i, relay.multiply(peep[0], cell_state))
        f = relay.add(f, relay.multiply(peep[2], cell_state))
    opened = gate(_clipped(node, i))
    if node.attr("input_forget", 0):
        kept = relay.subtract(node.like(1), opened)
    else:
        kept = gate(_clipped(node, f))
    new = relay.add(
        relay.multiply(kept, cell_state), relay.multiply(opened, cell(_clipped(node, c)))
    )
    if peep:
        o = relay.add(o, relay.multiply(peep[1], new))
    return [relay.multiply(gate(_clipped(node, o)), output(new)), new]


def _gru_step(d: _Direction, states: list[Any], x: Expr) -> list[Any]:
    """Gates in ONNX order z, r, h."""
    node, size = d.node, d.hidden
    gate, cell = d.functions
    (h,) = states
    bias = d.inner_bias()
    xs = relay.split(x, [2 * size], axis=1)
    if node.attr("linear_before_reset", 0):
        product = relay.split(relay.nn.dense(h, d.recurrence), [2 * size], axis=1)
        z, r = relay.split(gate(_clipped(node, relay.add(xs[0], product[0]))), 2, axis=1)
        inner = product[1] if bias is None else relay.nn.bias_add(product[1], bias, axis=-1)
        inner = relay.multiply(r, inner)
    else:
        rows = relay.split(d.recurrence, [2 * size], axis=0)
        both = relay.add(xs[0], relay.nn.dense(h, rows[0]))
        z, r = relay.split(gate(_clipped(node, both)), 2, axis=1)
        inner = relay.nn.dense(relay.multiply(r, h), rows[1])
        inner = inner if bias is None else relay.nn.bias_add(inner, bias, axis=-1)
    new = cell(_clipped(node, relay.add(xs[1], inner)))
    fresh = relay.multiply(relay.subtract(node.like(1), z), new)
    return [relay.add(fresh, relay.multiply(z, h))]


def _rnn_step(d: _Direction, states: list[Any], x: Expr) -> list[Any]:
    total = relay.add(x, relay.nn.dense(states[0], d.recurrence))
    return [d.functions[0](_clipped(d.node, total))]


STEPS = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN": _rnn_step}


def _sequence(d: _Direction, lengths: Any) -> tuple[list[Any], Any]:
    """Return the last states of one direction and its sequence (steps, batch, hidden)."""
    step = STEPS[d.node.kind]
    xs = [d.input_gates()]
    steps, batch, _ = xs[0].tensor_type.shape
    if lengths is not None:  # step t of entry b counts while t < lengths[b]
        xs.append(relay.reshape(_range(steps), (steps, 1, 1)))

    def once(states: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        new = step(d, states, slices[0])
        if lengths is None:
            return new, [new[0]]
        column = relay.reshape(relay.cast(lengths, "int32"), (batch, 1))
        runs = relay.broadcast_to(relay.less(slices[1], column), (batch, d.hidden))
        kept = [relay.where(runs, a, b) for a, b in zip(new, states, strict=True)]
        return kept, [relay.where(runs, new[0], relay.zeros_like(new[0]))]

    finals, (outputs,) = run_steps(once, d.states, xs, d.reverse)
    return finals, outputs


def _zeros(shape: tuple[int, ...], dtype: str) -> Any:
    if any(map(is_open, shape)):
        return relay.zeros(shape, dtype)
    return const(np.zeros(shape, dtype))


def _range(steps: int) -> Any:
    if is_open(steps):
        return relay.arange(0, steps, 1, "int32")
    return const(np.arange(steps, dtype="int32"))


@converter("LSTM", "GRU", "RNN")
def recurrent(node: NodeView) -> Any:
    """Outputs Y (steps, directions, batch, hidden), Y_h and, of an LSTM, Y_c."""
    if node.attr("layout", 0):
        return _batch_first(node)
    count = 2 if node.attr("direction", "forward") == "bidirectional" else 1
    _check_shapes(node, count)
    lengths = node.optional(4)
    if isinstance(lengths, Constant) and (lengths.array == node.type().shape[0]).all():
        lengths = None
    found = [_sequence(_Direction(node, index), lengths) for index in range(count)]
    join = partial(relay.stack, axis=0) if count > 1 else partial(_alone, axis=0)
    y = relay.stack([s for _, s in found], 1) if count > 1 else _alone([found[0][1]], 1)
    return [y, *(join(list(states)) for states in zip(*(f for f, _ in found), strict=True))]


@converter("com.microsoft.DynamicQuantizeLSTM")
def dynamic_quantize_lstm(node: NodeView) -> Any:
    """An LSTM with integer weights (directions, size, gates); data and states are of 8 bits.

    The data has one range, and the states of a step have one, as in ONNX Runtime on one thread.
    The products are of integers.
    """
    node.kind = "LSTM"
    for index, zero in ((1, 9), (2, 11)):
        whole = relay.cast(node.input(index), "int32")
        if node.has(zero):
            point = relay.cast(node.input(zero), "int32")  # one a direction, or each gate of it
            whole = relay.subtract(whole, relay.expand_dims(point, 1, 3 - point.tensor_type.rank))
        node.inputs[index] = relay.transpose(whole, (0, 2, 1))
    return recurrent(node)


def _check_shapes(node: NodeView, directions: int) -> None:
    """Refuse weights and states of other shapes than the data and each other ask for."""
    if node.rank() != 3 or node.rank(2) != 3:
        raise node.unsupported(
            f"X has {node.rank()} axes and R {node.rank(2)}; they are (steps, batch, size) and "
            "(directions, gates, states)"
        )
    _, batch, width = node.type().shape
    hidden = node.type(2).shape[2]
    rows = GATES[node.kind] * hidden
    wanted = {
        1: ("W", (directions, rows, width)), 2: ("R", (directions, rows, hidden)),
        3: ("B", (directions, 2 * rows)), 4: ("sequence_lens", (batch,)),
        5: ("initial_h", (directions, batch, hidden)),
    }  # fmt: skip
    if node.kind == "LSTM":
        wanted |= {
            6: ("initial_c", (directions, batch, hidden)),
            7: ("P", (directions, 3 * hidden)),
        }
    for index, (name, shape) in wanted.items():
        found = node.type(index).shape if node.has(index) else shape
        opened = any(is_open(d) for d in (*found, *shape))
        if len(found) != len(shape) or (not opened and found != shape):
            raise node.unsupported(f"{name} is of shape {tuple(found)}, and {shape} is needed")
        for one, other in zip(found, shape, strict=True):
            if isinstance(one, SymbolDim) and isinstance(other, SymbolDim) and one != other:
                raise node.unsupported(
                    f"{name} has the open size {one} where X has {other}, and they are one: "
                    f"{one_size_for(one, other)}"
                )


def _alone(values: list[Any], axis: int) -> Any:
    return relay.expand_dims(values[0], axis)


def _batch_first(node: NodeView) -> Any:
    """Layout 1: the batch is the first axis of data, states and results."""
    del node.attributes["layout"]
    states = (5, 6) if node.kind == "LSTM" else (5,)
    for index in (0, *states):
        if node.has(index):
            node.inputs[index] = relay.transpose(node.input(index), (1, 0, 2))
    y, *finals = recurrent(node)
    return [relay.transpose(y, (2, 0, 1, 3)), *(relay.transpose(f, (1, 0, 2)) for f in finals)]
