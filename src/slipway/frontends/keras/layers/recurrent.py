"""LSTM, GRU and plain recurrent layers: a product with the whole sequence, then its steps."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
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
    mask = mask_of(view)
    x, *given = [v for v in view.inputs if v is not mask]
    step, count = CELLS[type(view.layer).__name__]
    total = _inputs(view, relay.transpose(x, [1, 0, 2]))
    zeros = np.zeros((int(view.shape[0]), int(view.option("units"))), x.tensor_type.dtype)
    states = given or [Constant(zeros) for _ in range(count)]

    def one(states: list[Any], own: Any) -> list[Any]:
        return step(view, own, states)

    return results_of(view, one, states, total, mask)


def mask_of(view: LayerView) -> Any:
    """Return the mask of the steps that a layer is given, None without one."""
    mask = view.given.get("mask")
    if isinstance(mask, list | tuple):
        mask = mask[0]
    if mask is not None and view.option("zero_output_for_mask", False):
        raise view.unsupported("it is given a mask and gives zeros where steps are left out")
    return mask


def _inputs(view: LayerView, x: Any) -> Any:
    """Return W x_t + b of a cell for (..., width)."""
    total = dense(view, x, "kernel", view.need("kernel"))
    bias = view.array("bias")
    if bias is None:
        return total
    first = bias[0] if bias.ndim == 2 else bias
    return relay.nn.bias_add(total, view.weight("bias", first), axis=-1)


def results_of(
    view: LayerView, step: Callable[[list[Any], Any], list[Any]], states: list[Any], x: Any,
    mask: Any = None, output: int = 0,
) -> Any:  # fmt: skip
    """Run a layer over its steps (steps, batch, ...); return what its options ask for.

    A step that a mask leaves out changes no state, and gives the output before it again.
    `output` is the state that is given.
    """
    if mask is not None and any(not isinstance(state, Constant) for state in states):
        raise view.unsupported("it is given a mask and states")
    sequences = [x]
    if mask is not None:
        rest = [1] * (len(x.tensor_type.shape) - 2)
        seen = relay.transpose(mask, [1, 0])
        sequences.append(relay.reshape(seen, (*seen.tensor_type.shape, *rest)))

    def one(states: list[Any], sequence: list[Any]) -> tuple[list[Any], list[Any]]:
        new = step(states, sequence[0])
        if len(sequence) > 1:
            seen = sequence[1]
            new = [relay.where(seen, n, old) for n, old in zip(new, states, strict=True)]
        return new, [new[output]]

    backwards = bool(view.option("go_backwards", False))
    last, (outputs,) = run_steps(one, states, sequences, backwards)
    if backwards:  # Keras lists the steps in the order in which they were run
        outputs = relay.reverse(outputs, 0)
    rank = len(outputs.tensor_type.shape)
    outputs = relay.transpose(outputs, [1, 0, *range(2, rank)])
    made = outputs if view.option("return_sequences") else last[output]
    return [made, *last] if view.option("return_state") else made


@converter("RNN")
def _cells(view: LayerView) -> Any:
    """A layer of one cell, or of several of which each takes the output of the one before."""
    cell = view.option("cell")
    cells = list(getattr(cell, "cells", None) or [cell])
    kinds = [type(one).__name__.removesuffix("Cell") for one in cells]
    if not all(kind in CELLS for kind in kinds) or view.option("stateful", False):
        raise view.unsupported("cells of its own, or states that it keeps, are not supported")
    mask = mask_of(view)
    x, *given = [v for v in view.inputs if v is not mask]
    inner = [
        LayerView(one, [x], {}, view.weights, view.convert, f"{view.name}.{number}.")
        for number, one in enumerate(cells)
    ]
    batch, dtype = int(view.shape[0]), x.tensor_type.dtype
    states = given or [
        Constant(np.zeros((batch, int(one.units)), dtype))
        for one, kind in zip(cells, kinds, strict=True)
        for _ in range(CELLS[kind][1])
    ]

    def step(states: list[Any], own: Any) -> list[Any]:
        after: list[Any] = []
        for one, kind in zip(inner, kinds, strict=True):
            advance, count = CELLS[kind]
            new = advance(one, _inputs(one, own), states[len(after) : len(after) + count])
            own = new[0]
            after += new
        return after

    last = sum(CELLS[kind][1] for kind in kinds[:-1])
    return results_of(view, step, states, relay.transpose(x, [1, 0, 2]), mask, last)


@converter("Bidirectional")
def _bidirectional(view: LayerView) -> Any:
    mask = mask_of(view)
    inputs = [x for x in view.inputs if x is not mask]
    if len(inputs) > 1 or view.option("return_state", False):
        raise view.unsupported("its states as inputs and outputs are not supported")
    inside, given = f"{view.name}.", {} if mask is None else {"mask": mask}
    ahead = view.convert(view.option("forward_layer"), inputs, inside, given)
    back = view.convert(view.option("backward_layer"), inputs, inside, given)
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
    """The steps join the batch around the layer; a mask only says which results are read."""
    inner = view.option("layer")
    if view.given.get("mask") is not None and "mask" in signature(inner.call).parameters:
        raise view.unsupported("it gives the layer inside a mask")
    batch, steps, *rest = view.shape
    flat = relay.reshape(view.data, (batch * steps, *rest))
    made = view.convert(inner, [flat], f"{view.name}.")
    made = made[0] if isinstance(made, list) else made
    return relay.reshape(made, (batch, steps, *made.tensor_type.shape[1:]))
