"""The LSTM operators, loops over time; their states are inputs and outputs of the model.

UNIDIRECTIONAL_SEQUENCE_LSTM, LSTM (one step) and BIDIRECTIONAL_SEQUENCE_LSTM, with every part that
the file may leave out: input gate, peephole connections, projection, layer normalisation.
"""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.steps import run_steps
from slipway.frontends.tflite.converters import NodeView, converter
from slipway.frontends.tflite.operators.lstm_float import FloatCell
from slipway.frontends.tflite.operators.lstm_integer import integer_cell
from slipway.frontends.tflite.operators.lstm_parts import (
    BACKWARD,
    FORWARD,
    OUTPUT,
    WHOLE,
    LstmParts,
)


@converter("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(node: NodeView) -> Any:
    """Data is (batch, time, inputs), or (time, batch, inputs) with time_major."""
    if len(node.shape()) not in (2, 3):
        raise node.unsupported(f"its data has the shape {node.shape()}, not two or three axes")
    early = len(node.shape()) == 2 or bool(node.option("time_major"))
    data = _sequence(node[0], early)
    return _one_way(node, data, early, len(node.shape()) == 3)


@converter("LSTM")
def lstm_step(node: NodeView) -> Any:
    """One step: data is (batch, inputs)."""
    if node.option("kernel_type") == 1 or len(node.operator.inputs) < 20:
        raise node.unsupported("its kernel is the basic one of five inputs, of the first TFLite")
    if len(node.shape()) != 2:
        raise node.unsupported(f"its data has the shape {node.shape()}, not two axes")
    if len(node.operator.outputs) != 1:
        raise node.unsupported("it gives its states as outputs, as the first TFLite did")
    return _one_way(node, _sequence(node[0], True), True, False)


def _one_way(node: NodeView, data: Any, early: bool, keeps_time: bool) -> Any:
    cell: Any = FloatCell(node, WHOLE) if node.is_float else integer_cell(node, WHOLE)
    out, hidden, state = _run(node, WHOLE, cell, data)
    return [_given(out, early, keeps_time), hidden, state]


def _sequence(data: Any, early: bool) -> Any:
    """Return data as (time, batch, inputs)."""
    if data.tensor_type.rank == 2:
        return relay.expand_dims(data, 0)
    return data if early else relay.transpose(data, (1, 0, 2))


def _given(out: Any, early: bool, keeps_time: bool = True) -> Any:
    if not keeps_time:
        return relay.squeeze(out, [0])
    return out if early else relay.transpose(out, (1, 0, 2))


def _run(
    node: NodeView, parts: LstmParts, cell: Any, data: Any, other: Any = None, reverse: bool = False
) -> list[Any]:
    """Return the outputs (time, batch, units) and both states, in the shapes of the file."""
    steps, batch = data.tensor_type.shape[:2]
    parts.check(node, data.tensor_type.shape[2])
    shapes = node.shape(parts.hidden), node.shape(parts.state)
    units, given = parts.units(node), parts.outputs(node)
    hidden = relay.reshape(node[parts.hidden], (batch, given))
    state = relay.reshape(node[parts.state], (batch, units))

    def flat(value: Any) -> Any:
        return relay.reshape(value, (steps * batch, value.tensor_type.shape[2]))

    products = cell.products(flat(data))
    if other is not None:
        products = cell.with_other(products, flat(other))

    def once(states: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        new = list(cell.step(dict(zip(parts.gates(node), x, strict=True)), *states))
        return new, new[:1]

    sequences = [relay.reshape(p, (steps, batch, units)) for p in products]
    (hidden, state), (out,) = run_steps(once, [hidden, state], sequences, reverse)
    return [out, relay.reshape(hidden, shapes[0]), relay.reshape(state, shapes[1])]


@converter("BIDIRECTIONAL_SEQUENCE_LSTM")
def both_ways(node: NodeView) -> Any:
    """Two cells, the second from the last step to the first; floating point data.

    The auxiliary input is another input of both cells where it has weights; without weights it is
    the data of the second cell.
    """
    if not node.is_float:
        raise node.unsupported("it is supported on floating point data only")
    if len(node.shape()) != 3:
        raise node.unsupported(f"its data has the shape {node.shape()}, not three axes")
    early = bool(node.option("time_major", 1))
    data = _sequence(node[0], early)
    backward, other = data, None
    if node.has(39):
        other = _sequence(node[39], early)
        if not node.has(FORWARD.aux + OUTPUT):
            backward, other = other, None
    cells = [FloatCell(node, parts) for parts in (FORWARD, BACKWARD)]
    one = _run(node, FORWARD, cells[0], data, other)
    two = _run(node, BACKWARD, cells[1], backward, other, reverse=True)
    if node.option("merge_outputs"):
        found = [_given(relay.concatenate([one[0], two[0]], 2), early)]
    else:
        found = [_given(one[0], early), _given(two[0], early)]
    return [*found, *one[1:], *two[1:]]
