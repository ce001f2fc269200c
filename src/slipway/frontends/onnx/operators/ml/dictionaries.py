"""Inputs that are dictionaries: the graph takes the row of numbers that the model makes of one.

No tensor holds keys. DictVectorizer and CastMap lay the values of a dictionary into a row, at the
places of their keys; that row is the input here, and its columns have the keys' names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slipway.frontends.onnx.node_check import FIELDS
from slipway.frontends.onnx.operators.ml.texts import without_texts

_DOMAIN = "ai.onnx.ml"
_NUMBERS = {1, 6, 7, 11}  # float, int32, int64, double of TensorProto.DataType
_CASTS = {"TO_FLOAT": 1, "TO_INT64": 7}


def without_dictionaries(proto: Any) -> tuple[Any, Mapping[str, tuple[str, ...]]]:
    """Return the model with rows for dictionaries, and the names of their columns by input.

    It is the same model where it has none, or where one is read by anything else.
    """
    wanted = [
        info.name for info in proto.graph.input if info.type.WhichOneof("value") == "map_type"
    ]
    readers = {name: [node for node in proto.graph.node if name in node.input] for name in wanted}
    keys = {name: _keys(nodes[0]) for name, nodes in readers.items() if len(nodes) == 1}
    if not wanted or {name for name, found in keys.items() if found} != {*wanted}:
        return proto, {}
    made = type(proto)()
    made.CopyFrom(proto)
    kinds = {}
    for info in made.graph.input:
        if info.name in keys:
            kind = info.type.map_type.value_type.tensor_type.elem_type
            if kind not in _NUMBERS:
                return proto, {}
            kinds[info.name] = info.type.tensor_type.elem_type = kind
            for size in (1, len(keys[info.name])):
                info.type.tensor_type.shape.dim.add().dim_value = size
    for node in made.graph.node:
        if node.input[:1] and node.input[0] in keys:
            to = _attributes(node).get("cast_to", "TO_FLOAT") if node.op_type == "CastMap" else ""
            node.op_type, node.domain = "Cast", ""
            del node.attribute[:]
            number = _CASTS.get(to, kinds[node.input[0]])
            node.attribute.add(name="to", type=2, i=number)
    return made, keys


def texts_of(proto: Any) -> Mapping[str, tuple[str, ...]]:
    """Return what positions or columns stand for, in inputs and other tensors of a model."""
    proto, columns = without_dictionaries(proto)
    return {**without_texts(proto)[1], **columns}


def _attributes(node: Any) -> dict[str, Any]:
    values = {a.name: getattr(a, FIELDS[a.type]) for a in node.attribute if a.type in FIELDS}
    return {n: v.decode(errors="replace") if isinstance(v, bytes) else v for n, v in values.items()}


def _keys(node: Any) -> tuple[str, ...]:
    """Return the keys in order of the row that an operator makes; none where that is open."""
    if node.domain != _DOMAIN:
        return ()
    attributes = _attributes(node)
    if node.op_type == "DictVectorizer":
        texts = attributes.get("string_vocabulary", ())
        numbers = attributes.get("int64_vocabulary", ())
        return tuple(text.decode(errors="replace") for text in texts) or tuple(map(str, numbers))
    is_row = node.op_type == "CastMap" and attributes.get("map_form", "DENSE") == "SPARSE"
    if is_row and attributes.get("cast_to", "TO_FLOAT") in _CASTS:
        return tuple(map(str, range(attributes.get("max_map", 1))))
    return ()
