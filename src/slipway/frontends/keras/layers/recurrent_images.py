"""ConvLSTM: an LSTM whose products are convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.keras.converters import LayerView, converter
from slipway.frontends.keras.layers.activation import activated
from slipway.frontends.keras.layers.conv import conv_of, first_channels, window_of
from slipway.frontends.keras.layers.recurrent import results_of
from slipway.relay.expr import Constant


@converter("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")
def _images(view: LayerView) -> Any:
    """Gates in the order i, f, c, o; the states are convolved with padding of their own."""
    if view.option("stateful", False) or view.given.get("mask") is not None:
        raise view.unsupported("states that it keeps, and masks, are not supported")
    cell = view.option("cell")
    inner = LayerView(cell, view.inputs, {}, view.weights, view.convert, f"{view.name}.")
    x, *given = view.inputs
    batch, steps, *rest = (int(d) for d in x.tensor_type.shape)
    flat = relay.reshape(x, (batch * steps, *rest))
    kernel = first_channels(inner.need("kernel"))
    total = conv_of(inner, flat, "kernel", kernel, 1, window_of(inner, flat, kernel.shape[2:]))
    bias = inner.array("bias")
    axis = -1 if inner.channels_last else 1
    if bias is not None:
        total = relay.nn.bias_add(total, inner.weight("bias", bias), axis=axis)
    shape = [int(d) for d in total.tensor_type.shape]
    total = relay.reshape(total, (batch, steps, *shape[1:]))
    total = relay.transpose(total, [1, 0, *range(2, len(shape) + 1)])
    own = [batch, *shape[1:]]
    own[axis] //= 4
    zeros = np.zeros(own, x.tensor_type.dtype)
    states = given or [Constant(zeros), Constant(zeros)]
    back = first_channels(inner.need("recurrent_kernel"))
    sizes = back.shape[2:]
    ones = [1] * len(sizes)
    sides = [(k - 1) // 2 for k in sizes] + [k - 1 - (k - 1) // 2 for k in sizes]
    gate = view.option("recurrent_activation")

    def step(states: list[Any], total: Any) -> list[Any]:
        h, c = states
        made = conv_of(inner, h, "recurrent_kernel", back, 1, (ones, ones, sides))
        gates = relay.split(relay.add(total, made), 4, axis=axis)
        i, f, o = (activated(inner, gates[n], gate) for n in (0, 1, 3))
        fresh = relay.multiply(i, activated(inner, gates[2]))
        new = relay.add(relay.multiply(f, c), fresh)
        return [relay.multiply(o, activated(inner, new)), new]

    return results_of(view, step, states, total)
