"""`RNN`: layers of LSTM, GRU or plain cells whose parameters lie in one vector.

First come the weights of all layers and directions, (gates * H, inputs) then (gates * H, H) for
each, and after them the two biases of each.  Gates are in cuDNN's order: i, f, g, o and r, z, n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway import relay
from slipway.frontends.mxnet.converters import NodeView, OpenFill, converter, shape_of
from slipway.frontends.mxnet.operators.slices import cut
from slipway.frontends.steps import run_steps
from slipway.relay.expr import Expr

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
# f(W x + b, R h + c, states) -> new states, of which the first is the output
Cell = Callable[[Any, Any, list[Any]], list[Any]]


def _lstm(x: Any, h: Any, states: list[Any]) -> list[Any]:
    i, f, g, o = relay.split(relay.add(x, h), 4, axis=1)
    kept = relay.multiply(relay.sigmoid(f), states[1])
    new = relay.add(kept, relay.multiply(relay.sigmoid(i), relay.tanh(g)))
    return [relay.multiply(relay.sigmoid(o), relay.tanh(new)), new]


def _gru(x: Any, h: Any, states: list[Any]) -> list[Any]:
    own, back = list(relay.split(x, 3, axis=1)), list(relay.split(h, 3, axis=1))
    r, z = (relay.sigmoid(relay.add(own[i], back[i])) for i in (0, 1))
    n = relay.tanh(relay.add(own[2], relay.multiply(r, back[2])))
    return [relay.add(n, relay.multiply(z, relay.subtract(states[0], n)))]


CELLS: dict[str, Cell] = {
    "lstm": _lstm,
    "gru": _gru,
    "rnn_tanh": lambda x, h, _: [relay.tanh(relay.add(x, h))],
    "rnn_relu": lambda x, h, _: [relay.nn.relu(relay.add(x, h))],
}


class _Parameters:
    """Takes weights and biases from the vector, one after the other."""

    def __init__(self, vector: Expr) -> None:
        self.vector = relay.reshape(vector, (-1,))
        self.at = 0

    def take(self, *shape: int) -> Any:
        count = 1
        for extent in shape:
            count *= extent
        made = cut(self.vector, 0, self.at, self.at + count)
        self.at += count
        return relay.reshape(made, shape)


@converter("RNN", "_npx_rnn")
def _rnn(node: NodeView) -> Any:
    mode, size = node.text("mode"), node.integer("state_size")
    layers, sides = node.integer("num_layers"), 2 if node.flag("bidirectional") else 1
    if mode not in GATES or node.flag("use_sequence_length") or node.has("projection_size"):
        raise node.unsupported(f"{mode} with a projection, or with lengths of sequences")
    _, batch, width = node.shape
    gates = GATES[mode] * size
    vector = _Parameters(node[1])
    weights = [
        (vector.take(gates, width if layer == 0 else size * sides), vector.take(gates, size))
        for layer in range(layers)
        for _ in range(sides)
    ]
    biases = [(vector.take(gates), vector.take(gates)) for _ in weights]
    starts = [
        s.closed((layers * sides, batch, size)) if isinstance(s, OpenFill) else s
        for s in node.inputs[2:]
    ]
    firsts = [_rows(s, layers * sides) for s in starts]
    x, lasts = node.data, []
    for layer in range(layers):
        outputs = []
        for side in range(sides):
            at = layer * sides + side
            states = [f[at] for f in firsts]
            made, final = _direction(mode, x, weights[at], biases[at], states, side == 1)
            outputs.append(made)
            lasts.append(final)
        x = outputs[0] if sides == 1 else relay.concatenate(outputs, axis=2)
    if not node.flag("state_outputs"):
        return x
    return [x, *(relay.stack([last[i] for last in lasts], 0) for i in range(len(firsts)))]


def _rows(states: Any, count: int) -> list[Any]:
    """Return the states of each layer and direction, (batch, H)."""
    return [relay.squeeze(cut(states, 0, i, i + 1), [0]) for i in range(count)]


def _direction(
    mode: str, x: Any, weights: tuple[Any, Any], biases: tuple[Any, Any], states: list[Any],
    reverse: bool,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Run one direction of one layer; return its outputs in order of time, and last states."""
    steps, batch, width = shape_of(x)
    rows = relay.nn.dense(relay.reshape(x, (steps * batch, width)), weights[0])
    rows = relay.nn.bias_add(rows, biases[0], axis=-1)
    inputs = relay.reshape(rows, (steps, batch, shape_of(rows)[1]))
    cell = CELLS[mode]

    def step(kept: list[Any], now: list[Any]) -> tuple[list[Any], list[Any]]:
        back = relay.nn.bias_add(relay.nn.dense(kept[0], weights[1]), biases[1], axis=-1)
        new = cell(now[0], back, kept)
        return new, [new[0]]

    final, (outputs,) = run_steps(step, states, [inputs], reverse)
    return outputs, final
