"""LSTM, GRU and RNN layers: a product with the whole sequence, then a loop over its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from slipway import relay
from slipway.frontends.steps import run_steps
from slipway.frontends.torch.converters import NodeView, converter, like
from slipway.relay.expr import Expr

# f(W x_t + b, states, cell) -> new states, of which the first is the output
Step = Callable[[Expr, list[Expr], "_Cell"], list[Expr]]


class _Cell:
    """The weights of one direction of one layer."""

    def __init__(self, weights: Sequence[Expr]) -> None:
        self.inner, self.recurrent, *others = weights
        self.bias = tuple(others[:2]) if len(others) >= 2 else None
        self.projection = others[-1] if len(others) % 2 else None

    def inputs(self, x: Expr, both_biases: bool) -> Expr:
        """Return W x_t + b of all steps, in one product for the whole sequence (T, B, I)."""
        steps, batch, width = x.tensor_type.shape
        product = relay.nn.dense(relay.reshape(x, (steps * batch, width)), self.inner)
        if self.bias is not None:
            bias = relay.add(*self.bias) if both_biases else self.bias[0]
            product = relay.nn.bias_add(product, bias, axis=-1)
        made: Expr = relay.reshape(product, (steps, batch, product.tensor_type.shape[1]))
        return made


def _lstm(x: Expr, states: list[Expr], cell: _Cell) -> list[Expr]:
    """Gates in torch's order i, f, g, o."""
    h, c = states
    total = relay.add(x, relay.nn.dense(h, cell.recurrent))
    i, f, g, o = relay.split(total, 4, axis=1)
    kept = relay.multiply(relay.sigmoid(f), c)
    new = relay.add(kept, relay.multiply(relay.sigmoid(i), relay.tanh(g)))
    output = relay.multiply(relay.sigmoid(o), relay.tanh(new))
    if cell.projection is not None:
        output = relay.nn.dense(output, cell.projection)
    return [output, new]


def _gru(x: Expr, states: list[Expr], cell: _Cell) -> list[Expr]:
    """Gates in torch's order r, z, n; the reset gate is applied after the product."""
    (h,) = states
    hidden = relay.nn.dense(h, cell.recurrent)
    if cell.bias is not None:
        hidden = relay.nn.bias_add(hidden, cell.bias[1], axis=-1)
    r1, z1, n1 = relay.split(x, 3, axis=1)
    r2, z2, n2 = relay.split(hidden, 3, axis=1)
    reset, update = relay.sigmoid(relay.add(r1, r2)), relay.sigmoid(relay.add(z1, z2))
    new = relay.tanh(relay.add(n1, relay.multiply(reset, n2)))
    fresh = relay.multiply(relay.subtract(like(1, new), update), new)
    return [relay.add(fresh, relay.multiply(update, h))]


def _rnn(function: Any) -> Step:
    def step(x: Expr, states: list[Expr], cell: _Cell) -> list[Expr]:
        return [function(relay.add(x, relay.nn.dense(states[0], cell.recurrent)))]

    return step


STEPS: dict[str, Step] = {
    "lstm": _lstm, "gru": _gru, "rnn_tanh": _rnn(relay.tanh), "rnn_relu": _rnn(relay.nn.relu),
}  # fmt: skip


@converter(*STEPS)
def recurrent(node: NodeView) -> Any:
    """Stacked layers in one or two directions; the results are the sequence and last states."""
    if "data" in node.arguments:
        raise node.unsupported("packed sequences are not served")
    x = node.input("input")
    states = node.arguments["hx"]
    states = list(states) if isinstance(states, (list, tuple)) else [states]
    weights, biased = list(node.arguments["params"]), bool(node.arg("has_biases", True))
    layers, both = int(node.arg("num_layers", 1)), bool(node.arg("bidirectional", False))
    first = bool(node.arg("batch_first", False))
    single = x.tensor_type.rank == 2
    if single:
        x = relay.expand_dims(x, 1)
        states = [relay.expand_dims(s, 1) for s in states]
    elif first:
        x = relay.transpose(x, (1, 0, 2))
    directions = 2 if both else 1
    per = len(weights) // (layers * directions)
    if per - (4 if biased else 2) not in (0, 1):
        raise node.unsupported(f"{per} weights for each direction of a layer")
    finals: list[list[Expr]] = [[] for _ in states]
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            start = [_slice(s, at) for s in states]
            cell = _Cell(weights[at * per : (at + 1) * per])
            last, output = _run(node.kind, x, start, cell, backwards=direction == 1)
            outputs.append(output)
            for kept, state in zip(finals, last, strict=True):
                kept.append(state)
        x = outputs[0] if directions == 1 else relay.concatenate(outputs, 2)
    lasts = [relay.stack(kept, 0) for kept in finals]
    if single:
        x, lasts = relay.squeeze(x, [1]), [relay.squeeze(s, [1]) for s in lasts]
    elif first:
        x = relay.transpose(x, (1, 0, 2))
    return [x, *lasts]


def _slice(states: Expr, index: int) -> Expr:
    if states.tensor_type.shape[0] != 1:
        states = relay.strided_slice(states, [index], [index + 1], axes=[0])
    made: Expr = relay.squeeze(states, [0])
    return made


def _run(
    kind: str, x: Expr, start: list[Expr], cell: _Cell, backwards: bool
) -> tuple[list[Expr], Expr]:
    """Step through the sequence (T, B, I); return the last states and the outputs (T, B, H)."""

    def once(states: list[Expr], slices: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        new = STEPS[kind](slices[0], states, cell)
        return new, new[:1]

    gates = cell.inputs(x, both_biases=kind != "gru")
    last, (output,) = run_steps(once, start, [gates], backwards)
    return last, output
