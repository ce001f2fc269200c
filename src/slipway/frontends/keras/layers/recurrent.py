"""LSTM, GRU and plain recurrent layers: a product with the whole sequence, then its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.activation import activated, number
from slipway.frontends.keras.layers.conv import dense
from slipway.frontends.steps import run_steps
from slipway.relay.expr import Constant

# f(layer, W x_t + b, states) -> new states, of which the first is the output
Step = Callable[[LayerView, Any, list[Any]], list[Any]]


def _product(view: LayerView, states: Any, bias: np.ndarray[Any, Any] | None = None) -> Any:
    kernel = view.need("recurrent_kernel")
    made = relay.nn.dense(states, view.weight("recurrent_kernel", kernel.T))
    if bias is not None:
        made = relay.nn.bias_add(made, view.weight("recurrent_bias", bias), axis=-1)
    return made


def _plain(view: LayerView, x: Any, states: list[Any]) -> list[Any]:
    return [activated(view, relay.add(x, _product(view, states[0])))]


def _lstm(view: LayerView, x: Any, states: list[Any]) -> list[Any]:
    """Gates in the order i, f, c, o."""
    h, c = states
    gates = relay.split(relay.add(x, _product(view, h)), 4, axis=1)
    inner = view.option("recurrent_activation")
    i, f, o = (activated(view, gates[n], inner) for n in (0, 1, 3))
    new = relay.add(relay.multiply(f, c), relay.multiply(i, activated(view, gates[2])))
    return [relay.multiply(o, activated(view, new)), new]


def _gru(view: LayerView, x: Any, states: list[Any]) -> list[Any]:
    """Gates in the order z, r, h; the reset gate comes after the product, or before it."""
    (h,) = states
    bias, units = view.array("bias"), int(view.option("units"))
    after = bool(view.option("reset_after"))
    inner = view.option("recurrent_activation")
    own = relay.split(x, 3, axis=1)
    if after:
        back = list(relay.split(_product(view, h, None if bias is None else bias[1]), 3, axis=1))
    else:
        kernel = view.need("recurrent_kernel")
        gates = view.weight("recurrent_gates", kernel[:, : 2 * units].T)
        back = list(relay.split(relay.nn.dense(h, gates), 2, axis=1))
    z, r = (activated(view, relay.add(own[n], back[n]), inner) for n in (0, 1))
    if after:
        recurrent = relay.multiply(r, back[2])
    else:
        last = view.weight("recurrent_candidate", view.need("recurrent_kernel")[:, 2 * units :].T)
        recurrent = relay.nn.dense(relay.multiply(r, h), last)
    new = activated(view, relay.add(own[2], recurrent))
    kept = relay.multiply(z, h)
    return [relay.add(kept, relay.multiply(relay.subtract(number(1, z), z), new))]


# class -> (its step, the number of its states)
CELLS: dict[str, tuple[Step, int]] = {
    "SimpleRNN": (_plain, 1), "LSTM": (_lstm, 2), "GRU": (_gru, 1),
}  # fmt: skip


@converter(*CELLS)
def _recurrent(view: LayerView) -> Any:
    if view.option("stateful", False):
        raise view.unsupported("it is stateful: give its states as inputs (initial_state)")
    if view.given.get("mask") is not None:
        raise view.unsupported("it is given a mask")
    outputs, states = _run(view)
    made = outputs if view.option("return_sequences") else states[0]
    return [made, *states] if view.option("return_state") else made


def _run(view: LayerView) -> tuple[Any, list[Any]]:
    """Return the outputs of all steps, (batch, steps, units), and the last states."""
    kind = type(view.layer).__name__
    step, count = CELLS[kind]
    x = relay.transpose(view.data, [1, 0, 2])
    total = dense(view, x, "kernel", view.need("kernel"))
    bias = view.array("bias")
    if bias is not None:
        first = bias[0] if bias.ndim == 2 else bias
        total = relay.nn.bias_add(total, view.weight("bias", first), axis=-1)
    zeros = np.zeros((int(view.shape[0]), int(view.option("units"))), x.tensor_type.dtype)
    states = view.inputs[1:] or [Constant(zeros) for _ in range(count)]

    def one(states: list[Any], sequence: list[Any]) -> tuple[list[Any], list[Any]]:
        new = step(view, sequence[0], states)
        return new, [new[0]]

    backwards = bool(view.option("go_backwards", False))
    last, (outputs,) = run_steps(one, states, [total], backwards)
    if backwards:  # Keras lists the steps in the order in which they were run
        outputs = relay.reverse(outputs, 0)
    return relay.transpose(outputs, [1, 0, 2]), last


@converter("Bidirectional")
def _bidirectional(view: LayerView) -> Any:
    if len(view.inputs) > 1 or view.option("return_state", False):
        raise view.unsupported("its states as inputs and outputs are not supported")
    inside = f"{view.name}."
    ahead = view.convert(view.option("forward_layer"), view.inputs, inside)
    back = view.convert(view.option("backward_layer"), view.inputs, inside)
    if view.option("return_sequences"):
        back = relay.reverse(back, 1)
    match view.option("merge_mode"):
        case "concat":
            return relay.concatenate([ahead, back], axis=-1)
        case "sum":
            return relay.add(ahead, back)
        case "mul":
            return relay.multiply(ahead, back)
        case "ave":
            return relay.multiply(relay.add(ahead, back), number(0.5, ahead))
        case None:
            return [ahead, back]
    raise view.unsupported(f"its merge_mode is {view.option('merge_mode')!r}")


@converter("TimeDistributed")
def _each_step(view: LayerView) -> Any:
    """The steps join the batch around the layer."""
    batch, steps, *rest = view.shape
    flat = relay.reshape(view.data, (batch * steps, *rest))
    made = view.convert(view.option("layer"), [flat], f"{view.name}.")
    made = made[0] if isinstance(made, list) else made
    return relay.reshape(made, (batch, steps, *made.tensor_type.shape[1:]))
