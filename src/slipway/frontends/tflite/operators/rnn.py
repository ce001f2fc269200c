"""Plain recurrent layers: activation(x by weights + hidden by recurrent weights + bias).

RNN is one step, the sequence operators loop over time.  The state is input and output of the model.
"""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.steps import run_steps
from slipway.frontends.tflite.converters import NodeView, array_constant, converter
from slipway.frontends.tflite.floating import activated, float_weights
from slipway.frontends.tflite.operators.lstm_float import Product, products_of


def _layer(
    node: NodeView,
    first: int,
    data: Any,
    *,
    other: Any = None,
    other_weights: int = -1,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """Return outputs (time, batch, units) and the last state of the layer with weights at `first`.

    Behind its weights are the recurrent ones, the bias and the state.
    """
    steps, batch, depth = data.tensor_type.shape
    units = node.tensor(first).shape[0]
    for position, shape in (
        (first, (units, depth)),
        (first + 1, (units, units)),
        (first + 2, (units,)),
        (first + 3, (batch, units)),
    ):
        if node.tensor(position).shape != shape:
            raise node.unsupported(
                f"its input {position} has the shape {node.tensor(position).shape}; {shape} fits "
                "its other inputs"
            )
    recurrent = Product(node, first + 1)
    bias = array_constant(float_weights(node, first + 2), "float32")

    def product(weights: int, values: Any) -> Any:
        flat = relay.reshape(values, (steps * batch, values.tensor_type.shape[2]))
        return products_of([Product(node, weights)], flat)[0]

    total = relay.add(product(first, data), bias)
    if other is not None:
        total = relay.add(total, product(other_weights, other))

    def step(states: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        back = products_of([recurrent], states[0])[0]
        new = activated(relay.add(x[0], back), node.activation)
        return [new], [new]

    sequence = relay.reshape(total, (steps, batch, units))
    (state,), (out,) = run_steps(step, [node[first + 3]], [sequence], reverse)
    return out, state


def _need(node: NodeView, rank: int) -> None:
    if not node.is_float:
        raise node.unsupported("it is supported on floating point data only")
    if len(node.shape()) != rank:
        raise node.unsupported(f"its data has the shape {node.shape()}, not {rank} axes")


@converter("RNN")
def rnn(node: NodeView) -> Any:
    """One step: data is (batch, inputs)."""
    _need(node, 2)
    out, state = _layer(node, 1, relay.expand_dims(node[0], 0))
    return [relay.squeeze(out, [0]), state]


@converter("UNIDIRECTIONAL_SEQUENCE_RNN")
def sequence_rnn(node: NodeView) -> Any:
    """Data is (batch, time, inputs), or (time, batch, inputs) with time_major."""
    _need(node, 3)
    early = bool(node.option("time_major"))
    out, state = _layer(node, 1, _time_first(node[0], early))
    return [_time_first(out, early), state]


@converter("BIDIRECTIONAL_SEQUENCE_RNN")
def both_ways(node: NodeView) -> Any:
    """Two layers, the second from the last step to the first.

    The auxiliary input is another input of both where it has weights; without weights it is the
    data of the second.
    """
    _need(node, 3)
    early = bool(node.option("time_major"))
    data = _time_first(node[0], early)
    backward, other = data, None
    if node.has(9):
        other = _time_first(node[9], early)
        if not node.has(10):
            backward, other = other, None
    one, state = _layer(node, 1, data, other=other, other_weights=10)
    two, last = _layer(node, 5, backward, other=other, other_weights=11, reverse=True)
    if node.option("merge_outputs"):
        return [_time_first(relay.concatenate([one, two], 2), early), state, last]
    return [_time_first(one, early), _time_first(two, early), state, last]


def _time_first(value: Any, early: bool) -> Any:
    """Exchange the first two axes, unless time is the first already."""
    return value if early else relay.transpose(value, (1, 0, 2))
