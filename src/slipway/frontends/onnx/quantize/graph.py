"""An ONNX graph made ready to quantise: plain initialisers, folded normalisation, unique names."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from slipway.errors import ModelError
from slipway.frontends.binding import Constants, bound_constant, check_input_names
from slipway.frontends.onnx.isolated import ModelRefused, converted
from slipway.frontends.onnx.reader import array_of, load_model, onnx_package, value_type
from slipway.frontends.onnx.sparse import dense_array

Array = np.ndarray[Any, Any]
MIN_OPSET = 13  # per-channel scales
INT16_OPSET = 21


class Graph:
    """Nodes in order, constants by name, who makes and who reads each tensor."""

    def __init__(self, proto: Any) -> None:
        self.proto = proto
        self.nodes: list[Any] = list(proto.graph.node)
        self.constants: dict[str, Array] = {t.name: array_of(t) for t in proto.graph.initializer}
        self.outputs = [o.name for o in proto.graph.output]
        self.inputs = [i.name for i in proto.graph.input if i.name not in self.constants]

    @property
    def readers(self) -> dict[str, list[Any]]:
        """The nodes that read each tensor."""
        found: dict[str, list[Any]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.input):
                found.setdefault(name, []).append(node)
        return found

    def attribute(self, node: Any, name: str, default: Any = None) -> Any:
        """Return an attribute's value."""
        for entry in node.attribute:
            if entry.name == name:
                return onnx_package().helper.get_attribute_value(entry)
        return default

    def model(self) -> Any:
        """Return a ModelProto of the graph as it is now."""
        onnx = onnx_package()
        made = onnx.ModelProto()
        made.CopyFrom(self.proto)
        del made.graph.node[:]
        made.graph.node.extend(self.nodes)
        del made.graph.initializer[:]
        used = {name for node in self.nodes for name in node.input} | set(self.outputs)
        for node in self.nodes:
            used |= _names_in_subgraphs(node)
        made.graph.initializer.extend(
            onnx.numpy_helper.from_array(np.asarray(a, order="C"), n)
            for n, a in self.constants.items()
            if n in used
        )
        kept = [i for i in made.graph.input if i.name in self.inputs]
        del made.graph.input[:]
        made.graph.input.extend(kept)
        del made.graph.value_info[:]
        return made


def _names_in_subgraphs(node: Any) -> set[str]:
    found: set[str] = set()
    graphs = [a.g for a in node.attribute if a.type == 5]
    while graphs:
        graph = graphs.pop()
        for inner in graph.node:
            found.update(inner.input)
            graphs += [a.g for a in inner.attribute if a.type == 5]
        found.update(o.name for o in graph.output)
    return found


def bound(model: Any, constants: Constants) -> Any:
    """Return a ModelProto whose inputs named in `constants` are initialisers.

    Raises ModelError for a name that is no input, and for a value that does not fit it.
    """
    if not constants:
        return model
    onnx = onnx_package()
    proto = onnx.ModelProto()
    proto.CopyFrom(load_model(model))
    weights = {t.name for t in proto.graph.initializer}
    inputs = {i.name: i for i in proto.graph.input if i.name not in weights}
    check_input_names(constants, list(inputs))
    for name, value in constants.items():
        array = bound_constant(name, value, *value_type(name, inputs[name].type)).array
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        proto.graph.input.remove(inputs[name])
    return proto


def _check_names(graph: Any) -> None:
    """Raise ModelError for a name that is no UTF-8, which comes as bytes and cannot be given."""
    for node in graph.node:
        for name in (node.name, node.op_type, *node.input, *node.output):
            if not isinstance(name, str):
                raise ModelError(
                    f"the node {str(node.name)!r} ({node.op_type!s}) has a name that is no UTF-8 "
                    f"text: {name!r}; the model is damaged"
                )


def prepare(model: Any, min_opset: int = MIN_OPSET) -> Graph:
    """Return the graph of a model (path, bytes or ModelProto), which is not changed itself.

    Constant nodes become initialisers, Identity goes, BatchNormalization after a convolution is
    folded into its weights, and every node has a name of its own.  Raises ModelError for a model
    that is quantised already or that cannot be brought to an opset with scales per channel.
    """
    onnx = onnx_package()
    proto = onnx.ModelProto()
    proto.CopyFrom(load_model(model))
    if any(n.op_type in ("QuantizeLinear", "QLinearConv") for n in proto.graph.node):
        raise ModelError("the model is quantised already: it holds QuantizeLinear or QLinearConv")
    _check_names(proto.graph)
    proto = _upgraded(proto, min_opset)
    graph = Graph(proto)
    _constants(graph)
    _drop_identities(graph)
    _fold_batch_norms(graph)
    taken: Counter[str] = Counter()
    for node in graph.nodes:
        base = node.name or (node.output[0] if node.output else node.op_type)
        taken[base] += 1
        node.name = base if taken[base] == 1 else f"{base}_{taken[base]}"
    return graph


def _upgraded(proto: Any, minimum: int) -> Any:
    version = next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), 1)
    if version >= minimum:
        return proto
    try:
        made = converted(proto, minimum)
    except ModelRefused as error:
        reason = (str(error).splitlines() or ["its converter came to no end"])[0][:200]
        raise ModelError(
            f"the model has opset {version}, quantising needs {minimum}, and onnx cannot convert "
            f"it: {reason}. Export it with opset {minimum} or later."
        ) from error
    made.ir_version = max(made.ir_version, 10 if minimum >= INT16_OPSET else 7)
    return made


def _constants(graph: Graph) -> None:
    kept = []
    for node in graph.nodes:
        is_known = node.op_type == "Constant" and node.domain in ("", "ai.onnx")
        value = graph.attribute(node, "value") if is_known else None
        sparse = graph.attribute(node, "sparse_value") if is_known else None
        if value is not None:
            graph.constants[node.output[0]] = array_of(value)
        elif sparse is not None:
            graph.constants[node.output[0]] = dense_array(sparse, node.name or node.output[0])
        else:
            kept.append(node)
    graph.nodes = kept


def _drop_identities(graph: Graph) -> None:
    """Readers of an Identity read what it copies; one that makes a result stays."""
    renamed: dict[str, str] = {}
    kept = []
    for node in graph.nodes:
        for position, name in enumerate(node.input):
            node.input[position] = renamed.get(name, name)
        plain = node.op_type == "Identity" or (
            node.op_type == "Dropout" and len([o for o in node.output if o]) == 1
        )
        if plain and node.output[0] not in graph.outputs and not node.domain:
            if len(node.input) > 2 and node.op_type == "Dropout":
                kept.append(node)  # it may be told to train
                continue
            renamed[node.output[0]] = node.input[0]
        else:
            kept.append(node)
    subgraph_names = set().union(*(_names_in_subgraphs(n) for n in kept)) if kept else set()
    for old, new in renamed.items():
        if old in subgraph_names:
            node = onnx_package().helper.make_node("Identity", [new], [old])
            kept.insert(0, node)
    graph.nodes = kept


def _fold_batch_norms(graph: Graph) -> None:
    """BatchNormalization(Conv(x, w, b))  ->  Conv(x, w * s, (b - mean) * s + shift)."""
    readers = graph.readers
    makers = {name: node for node in graph.nodes for name in node.output}
    gone: set[int] = set()
    for norm in graph.nodes:
        if norm.op_type != "BatchNormalization" or graph.attribute(norm, "training_mode", 0):
            continue
        conv = makers.get(norm.input[0])
        if conv is None or conv.op_type not in ("Conv", "ConvTranspose"):
            continue
        weights = [graph.constants.get(n) for n in (conv.input[1], *norm.input[1:5])]
        single = len(readers.get(conv.output[0], ())) == 1 and conv.output[0] not in graph.outputs
        bias_name = conv.input[2] if len(conv.input) > 2 else ""
        bias = graph.constants.get(bias_name, None if bias_name else np.zeros((), np.float32))
        if any(w is None for w in weights) or not single or bias is None:
            continue
        kernel, scale, shift, mean, variance = (
            w.astype(np.float64) for w in weights if w is not None
        )
        factor = scale / np.sqrt(variance + graph.attribute(norm, "epsilon", 1e-5))
        group = graph.attribute(conv, "group", 1)
        if conv.op_type == "Conv":
            kernel = kernel * factor.reshape(-1, *(1,) * (kernel.ndim - 1))
        else:  # (in, out / group, ...): the inputs of one group meet that group's outputs
            per_group = np.repeat(factor.reshape(group, -1), kernel.shape[0] // group, axis=0)
            kernel = kernel * per_group.reshape(*kernel.shape[:2], *(1,) * (kernel.ndim - 2))
        names = (f"{conv.input[1]}_with_{norm.output[0]}", f"{norm.output[0]}_bias")
        graph.constants[names[0]] = kernel.astype(np.float32)
        graph.constants[names[1]] = ((bias - mean) * factor + shift).astype(np.float32)
        data = conv.input[0]
        del conv.input[:]
        conv.input.extend([data, *names])
        conv.output[0] = norm.output[0]
        gone.add(id(norm))
    graph.nodes = [n for n in graph.nodes if id(n) not in gone]
