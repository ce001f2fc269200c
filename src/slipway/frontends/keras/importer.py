"""`from_keras`: a functional or sequential model of Keras 3 becomes a relay function.

Nodes are converted in Keras' order, in the layout that their layers have.  Under the layout "NCHW"
inputs and outputs with channels are those of that layout, and transposed at the model's border.
What cannot be converted is gathered and reported for the whole model in one error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slipway import relay
from slipway.errors import ArgumentTypeError, ArgumentValueError, ModelError, defects_named
from slipway.frontends.binding import check_input_names
from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.keras.converters import LayerView, LayerWeights, load_converters
from slipway.frontends.keras.masks import implied_masks
from slipway.frontends.told_shapes import told_shapes
from slipway.ir.function import IRModule
from slipway.relay.dims import is_open
from slipway.relay.expr import Expr, Function, Tuple, TupleWrapper, Var
from slipway.relay.types import TensorType
from slipway.runtime.ndarray import NDArray, array

LAYOUTS = ("NCHW", "NHWC", "NDHWC")
# Layers that compute nothing in inference.
IDENTITIES = (
    "ActivityRegularization", "AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise",
    "Identity", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D",
)  # fmt: skip

# Layers that know masks, and those whose results without training do not depend on one.
MASKED = {
    "AdditiveAttention", "Attention", "BatchNormalization", "Bidirectional", "GRU",
    "GlobalAveragePooling1D", "LSTM", "MultiHeadAttention", "RNN", "SimpleRNN", "TimeDistributed",
}  # fmt: skip


@defects_named("importing the model")
def from_keras(
    model: Any, shape: Mapping[str, Sequence[int]] | None = None, layout: str = "NCHW"
) -> tuple[IRModule, dict[str, NDArray]]:
    """Import a model of Keras 3: Sequential or functional, with weights of any backend.

    `shape` gives the shapes of inputs by name, in the layout asked for; a batch that it leaves open
    is 1.  A single name for a model of one input names that input.  With the layout "NCHW" (TVM's
    default) inputs and outputs of four or five dimensions have their channels first, whatever
    Keras has; "NHWC" and "NDHWC" leave them as the model has them.

    Returns the module and the weights by name.  Raises ModelError for what no model of Keras 3 is,
    and for everything that is not supported at once.
    """
    if layout not in LAYOUTS:
        raise ArgumentValueError(f"from_keras: layout is {layout!r}, not {' or '.join(LAYOUTS)}")
    importer = _Importer(model, told_shapes(shape), layout == "NCHW")
    function = importer.main()
    params = {name: array(values) for name, values in importer.weights.values.items()}
    return IRModule((("main", function),)), params


class _Importer:
    def __init__(self, model: Any, shapes: dict[str, Sequence[int]], first: bool) -> None:
        self.model = graph_of(model)
        self.shapes = shapes
        self.first = first  # channels at the border of the model
        self.weights = LayerWeights()
        self.converters = load_converters()
        self.defects: dict[str, None] = {}  # ordered, and each once

    def main(self) -> Function:
        """Return the function of the whole model."""
        tensors = _flat(self.model.inputs)
        names = [t._keras_history.operation.name for t in tensors]
        if len(names) == len(self.shapes) == 1:
            names = list(self.shapes)
        check_input_names(self.shapes, names)
        inputs = [
            Var(name, TensorType(self._shape(name, t), str(t.dtype)))
            for name, t in zip(names, tensors, strict=True)
        ]
        given = [_channels_last(v) if self.first else v for v in inputs]
        outputs = self.graph(self.model, given, "")
        if self.defects:
            raise ModelError(
                "the model uses what is not supported:\n  " + "\n  ".join(self.defects)
            )
        if self.first:
            outputs = [_channels_first(o) for o in outputs]
        body: Expr = outputs[0] if len(outputs) == 1 else Tuple(tuple(outputs))
        return Function((*inputs, *self.weights.variables.values()), body)

    def _shape(self, name: str, tensor: Any) -> tuple[int, ...]:
        own = list(tensor.shape)
        if self.first and len(own) in (4, 5):
            own = [own[0], own[-1], *own[1:-1]]
        given = [None if d is None or is_open(d) else int(d) for d in self.shapes.get(name, own)]
        fits = len(given) == len(own) and all(
            a is None or b is None or a == b for a, b in zip(given, own, strict=True)
        )
        if not fits:
            raise ModelError(
                f"the input {name!r} has the shape {tuple(own)} in the model, which {tuple(given)} "
                "does not fit"
            )
        whole = [b if a is None else a for a, b in zip(given, own, strict=True)]
        whole[:1] = [whole[0] or 1] if whole else []
        if None in whole:
            raise ModelError(
                f"the input {name!r} has open dimensions, {tuple(whole)}: give its shape, as "
                f"shape={{{name!r}: ...}}"
            )
        return tuple(whole)

    def graph(self, model: Any, inputs: Sequence[Expr], prefix: str) -> list[Any]:
        """Convert a model, the whole one or one inside of it; return its outputs."""
        values: dict[int, Any] = {
            id(t): v for t, v in zip(_flat(model.inputs), inputs, strict=True)
        }
        for depth in sorted(model._nodes_by_depth, reverse=True):
            for node in model._nodes_by_depth[depth]:
                tensors = _flat(node.outputs)
                if all(id(t) in values for t in tensors):
                    continue
                made = self.node(node, values, prefix)
                for tensor, value in zip(tensors, made or [None] * len(tensors), strict=True):
                    values[id(tensor)] = value
        return [values[id(t)] for t in _flat(model.outputs)]

    def node(self, node: Any, values: dict[int, Any], prefix: str) -> list[Any] | None:
        """Convert one use of a layer; None where it, or what it reads, cannot be."""
        inputs = [values.get(id(t)) for t in node.arguments.keras_tensors]
        if any(i is None for i in inputs):
            return None  # told for the layer that it comes from
        given = _named(node, values)
        for name, mask in implied_masks(node).items():
            given[name] = self.mask(mask, values, prefix)
        try:
            return _listed(self.layer(node.operation, inputs, prefix, given))
        except UnsupportedNode as error:
            self.defects[str(error)] = None
            return None

    def mask(self, mask: Any, values: dict[int, Any], prefix: str) -> Any:
        """Return a mask, which no layer of the graph may have asked for yet."""
        if isinstance(mask, list | tuple):
            return [self.mask(one, values, prefix) for one in mask]
        if mask is None or id(mask) in values:
            return None if mask is None else values[id(mask)]
        history = mask._keras_history
        node = history.operation._inbound_nodes[history.node_index]
        for tensor in node.arguments.keras_tensors:
            self.mask(tensor, values, prefix)
        tensors = _flat(node.outputs)
        made = self.node(node, values, prefix) or [None] * len(tensors)
        values.update((id(t), v) for t, v in zip(tensors, made, strict=True))
        return values[id(mask)]

    def layer(
        self, layer: Any, inputs: Sequence[Any], prefix: str, given: Mapping[str, Any] | None = None
    ) -> Any:
        """Convert a layer on these inputs."""
        if hasattr(layer, "_nodes_by_depth") or hasattr(layer, "_functional"):
            made = self.graph(graph_of(layer), inputs, f"{prefix}{layer.name}.")
            if any(m is None for m in made):
                raise UnsupportedNode(f"{prefix}{layer.name}: see the layers inside of it")
            return made
        name = type(layer).__name__
        if name in IDENTITIES:
            return inputs[0]
        view = LayerView(layer, inputs, given or {}, self.weights, self.layer, prefix)
        if view.given.get("mask") is not None and name not in MASKED:
            raise view.unsupported("it is given a mask")
        converter = self.converters.get(name)
        if converter is None:
            raise view.unsupported("there is no converter for it")
        return converter(view)


def graph_of(model: Any) -> Any:
    """Return the graph of a model of Keras 3; raise what is none."""
    home = type(model).__module__
    bases = {f"{b.__module__}.{b.__name__}" for b in type(model).__mro__}
    if not any(name.startswith(("keras.", "keras_core.")) for name in bases):
        raise ArgumentTypeError(f"from_keras takes a model of Keras 3, not {home}'s.")
    inner = getattr(model, "_functional", None)
    found = model if hasattr(model, "_nodes_by_depth") else inner
    if found is None:
        raise ModelError(
            f"{type(model).__name__} {getattr(model, 'name', '')!r} has no graph of layers: give a "
            "functional model, or a Sequential one that is built; for a model whose class has a "
            'call() of its own, model.export("model.onnx", format="onnx") and from_onnx'
        )
    return found


def _named(node: Any, values: Mapping[int, Any]) -> dict[str, Any]:
    """Return the arguments of a call: "args" in their order, and the named ones by name."""

    def value(item: Any) -> Any:
        if isinstance(item, list | tuple):
            return type(item)(value(i) for i in item)
        return values.get(id(item), item)

    return {
        "args": [value(a) for a in node.arguments.args],
        **{name: value(a) for name, a in node.arguments.kwargs.items() if name != "training"},
    }


def _flat(tensors: Any) -> list[Any]:
    if isinstance(tensors, Mapping):
        return [t for key in sorted(tensors) for t in _flat(tensors[key])]
    if isinstance(tensors, list | tuple):
        return [t for inner in tensors for t in _flat(inner)]
    return [tensors]


def _listed(made: Any) -> list[Any]:
    return list(made) if isinstance(made, list | tuple | TupleWrapper) else [made]


def _channels_last(value: Any) -> Any:
    rank = len(value.tensor_type.shape)
    return relay.transpose(value, [0, *range(2, rank), 1]) if rank in (4, 5) else value


def _channels_first(value: Any) -> Any:
    rank = len(value.tensor_type.shape)
    return relay.transpose(value, [0, rank - 1, *range(1, rank - 1)]) if rank in (4, 5) else value
