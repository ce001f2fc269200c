"""`from_darknet`: a network of Darknet becomes a relay function.

The outputs are the last layer's, and those of all layers that find boxes with what is needed to
read them, in the order that TVM gave them: of the last such layer its mask, anchors and attributes,
then of the one before it its output, mask, anchors and attributes, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from slipway.errors import ArgumentTypeError, ModelError, defects_named
from slipway.frontends.darknet.converters import CONVERTERS, DarknetView
from slipway.frontends.darknet.kinds import ACTIVATION, LAYERTYPE
from slipway.frontends.darknet.network import load_network
from slipway.ir.function import IRModule
from slipway.relay.expr import Expr, Function, Tuple, Var
from slipway.relay.types import TensorType
from slipway.relay.visit import free_vars
from slipway.runtime.ndarray import NDArray, array

__all__ = ["ACTIVATION", "LAYERTYPE", "from_darknet", "load_network"]


class DarknetNetwork(Protocol):
    """A network as Darknet's library and `load_network` give it: `n` layers in `layers`."""

    layers: Any
    n: Any


@defects_named("importing the model")
def from_darknet(
    net: DarknetNetwork,
    shape: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """Import a network of Darknet.

    `net` is what `load_network(cfg, weights)` returns, here or in Darknet's library through cffi.
    `shape` is that of the input "data", (1, channels, height, width) of the network if not given.
    Networks are of float32.

    Returns the module and the weights by name.  Raises ModelError for what is not supported.
    """
    if not hasattr(net, "layers") or not hasattr(net, "n"):
        raise ArgumentTypeError(
            f"from_darknet takes a network, not {type(net).__name__}: "
            'relay.frontend.darknet.load_network("model.cfg", "model.weights") reads one'
        )
    if dtype != "float32":
        raise ModelError(f"networks of Darknet are of float32, not {dtype}")
    if isinstance(shape, Mapping):
        shape = shape["data"] if "data" in shape else next(iter(shape.values()), None)
    importer = _Importer(net, tuple(int(d) for d in shape or _own_shape(net)))
    function = importer.main()
    params = {name: array(values) for name, values in importer.params.items()}
    return IRModule((("main", function),)), params


def _own_shape(net: Any) -> tuple[int, ...]:
    return (1, net.c, net.h, net.w) if net.h else (1, net.inputs)


class _Importer:
    def __init__(self, net: Any, shape: tuple[int, ...]) -> None:
        self.net = net
        self.data = Var("data", TensorType(shape, "float32"))
        self.params: dict[str, np.ndarray[Any, Any]] = {}
        self.variables: dict[str, Var] = {}
        self.values: list[Expr] = []
        self.found: list[Expr] = []  # boxes and what reads them
        self.states: list[Expr] = []
        self._check(shape)

    def _check(self, shape: tuple[int, ...]) -> None:
        first = self.net.layers[0]
        own = (first.c, first.h, first.w) if first.h * first.w > 1 else (first.inputs,)
        if shape[1:] != own and int(np.prod(shape[1:])) != first.inputs:
            raise ModelError(
                f"the data has the shape {shape}, the network reads {(1, *own)}: give that one, or "
                "change width= and height= of the .cfg file and load it again"
            )

    def main(self) -> Function:
        for number in range(self.net.n):
            self.values.append(self.layer(number, self.net.layers[number]))
        outputs = [self.values[-1], *self.found, *self.states]
        body = outputs[0] if len(outputs) == 1 else Tuple(tuple(outputs))
        return Function(tuple(_data_first(free_vars(body), self.data)), body)

    def layer(self, number: int, layer: Any) -> Expr:
        """Return the output of a layer."""
        kind = LAYERTYPE(layer.type)
        before = self.values[-1] if self.values else self.data
        if kind == LAYERTYPE.RNN:
            return self.recurrent(number, layer, before)
        if kind not in CONVERTERS:
            location = getattr(layer, "location", f"layer {number}")
            raise ModelError(
                f"{location}: layers of the type {kind.name.lower()} are not supported"
            )
        inputs = [before]
        if kind == LAYERTYPE.ROUTE:
            inputs = [self.values[layer.input_layers[i]] for i in range(layer.n)]
        view = DarknetView(layer, number, inputs, self.params, self.variables)
        if kind == LAYERTYPE.SHORTCUT:
            own = getattr(layer, "location", None) is not None
            sources = list(layer.input_layers) if own else [layer.index]
            view.inputs += [self.values[i] for i in sources]
            view.sources = [self.net.layers[i] for i in sources]
        out = CONVERTERS[kind](view)
        if kind in (LAYERTYPE.REGION, LAYERTYPE.YOLO):
            self.boxes(view, out, last=number == self.net.n - 1)
        return out

    def boxes(self, view: DarknetView, out: Expr, last: bool) -> None:
        """Put what reads the boxes of a layer before what was found so far."""
        layer = view.layer
        yolo = view.type == LAYERTYPE.YOLO
        total = layer.total if yolo else layer.n
        sizes = [layer.n, layer.out_c, layer.out_h, layer.out_w, layer.classes]
        sizes += [layer.total] if yolo else [layer.coords, layer.background]
        made: list[Expr] = [] if last else [out]
        if yolo:
            mask = np.array([layer.mask[i] for i in range(layer.n)], np.int32)
            made.append(view.parameter("mask", mask))
        made.append(view.parameter("bias", view.floats("biases", 2 * total)))
        made.append(view.parameter("attr", np.array(sizes, np.int32)))
        self.found = made + self.found

    def recurrent(self, number: int, layer: Any, data: Expr) -> Expr:
        """Return the output of a recurrent layer; its state is an input and an output."""

        def connected(inner: Any, name: str, value: Expr) -> Expr:
            view = DarknetView(inner, f"_{name}_{number}", [value], self.params, self.variables)
            return CONVERTERS[LAYERTYPE.CONNECTED](view)

        states = sum(LAYERTYPE(self.net.layers[i].type) == LAYERTYPE.RNN for i in range(number))
        state: Expr = Var(f"rnn{states}_state", TensorType((1, layer.outputs), "float32"))
        for _ in range(max(layer.steps, 1)):
            given = connected(layer.input_layer, "input", data)
            state = given + connected(layer.self_layer, "self", state)
            self.states.append(state)
            data = connected(layer.output_layer, "output", state)
        return data


def _data_first(variables: Sequence[Var], data: Var) -> list[Var]:
    return [data, *(v for v in variables if v is not data)]
