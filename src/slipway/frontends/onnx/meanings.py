"""What an ONNX file says of its inputs and outputs: scales of integers, and names of classes.

An integer input's scale is that of the DequantizeLinear or integer operator that reads it, an
output's that of the operator that makes it.  Names of classes are an entry of `metadata_props`,
which tools write in several ways; what cannot be read is left out.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from slipway.errors import SlipwayError
from slipway.frontends.onnx.reader import array_of
from slipway.relay.meaning import Meaning

# Operator -> which input is its first tensor, with the places of scale and zero point behind it.
_READERS = {
    "DequantizeLinear": ((0, 1, 2),),
    "QLinearConv": ((0, 1, 2),),
    "QLinearMatMul": ((0, 1, 2), (3, 4, 5)),
    "QLinearAdd": ((0, 1, 2), (3, 4, 5)),
    "QLinearMul": ((0, 1, 2), (3, 4, 5)),
}
_WRITERS = {
    "QuantizeLinear": (1, 2),
    "QLinearConv": (6, 7),
    "QLinearMatMul": (6, 7),
    "QLinearAdd": (6, 7),
    "QLinearMul": (6, 7),
}
_LABEL_KEYS = ("labels", "names", "classes", "class_names", "id2label")
_MAX_TEXT = 1 << 20


def port_meanings(
    proto: Any, outputs: Sequence[str], texts: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, Meaning], list[Meaning | None]]:
    """Return the meanings of a model's inputs by name, and of its outputs in order.

    `texts` are the classes of tensors whose numbers or columns stand for texts.
    """
    graph = proto.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            constants.update((node.output[0], a.t) for a in node.attribute if a.name == "value")
    declared = {info.name for info in graph.input}
    inputs = {name: Meaning(labels=texts[name]) for name in declared & texts.keys()}
    made: dict[str, Meaning] = {}

    def affine(node: Any, scale_at: int, zero_at: int) -> Meaning | None:
        names = [*node.input, "", "", ""]
        scale = _scalar(constants, names[scale_at])
        zero = _scalar(constants, names[zero_at]) if names[zero_at] else 0.0
        if not scale or zero is None or scale < 0 or not np.isfinite(scale):
            return None
        return Meaning(scale, int(zero), ties_to_even=True)

    for node in graph.node:
        for tensor_at, scale_at, zero_at in _READERS.get(node.op_type, ()):
            name = node.input[tensor_at] if tensor_at < len(node.input) else ""
            if name in declared and (found := affine(node, scale_at, zero_at)):
                inputs.setdefault(name, found)
        if node.op_type in _WRITERS and (found := affine(node, *_WRITERS[node.op_type])):
            made[node.output[0]] = found
    labels = _labels(proto)
    sizes = {info.name: _last(info) for info in graph.output}
    meanings: list[Meaning | None] = []
    for name in outputs:
        meaning = made.get(name, Meaning())
        if name in texts:
            meaning = meaning._replace(labels=texts[name])
        elif labels and sizes.get(name) == len(labels):
            meaning, labels = meaning._replace(labels=labels), ()
        meanings.append(meaning)
    return inputs, meanings


def _scalar(constants: Mapping[str, Any], name: str) -> float | None:
    """Return a constant of one element, or None."""
    if name not in constants or prod(constants[name].dims) != 1:
        return None
    try:
        return float(array_of(constants[name]).reshape(-1)[0])
    except SlipwayError:
        return None


def _last(info: Any) -> int:
    """Return the last dimension that the file declares, 0 where it leaves it open."""
    dims = info.type.tensor_type.shape.dim
    return int(dims[-1].dim_value) if dims else 0


def _labels(proto: Any) -> tuple[str, ...]:
    """Return the names of classes: a list or table as JSON or Python, or lines, or with commas."""
    properties = {entry.key.lower(): entry.value for entry in proto.metadata_props}
    text = next((properties[key] for key in _LABEL_KEYS if properties.get(key)), "").strip()
    if not text or len(text) > _MAX_TEXT:
        return ()
    value: Any = None
    if text[0] in "[{(":
        for read in (json.loads, ast.literal_eval):
            try:
                value = read(text)
                break
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                continue
    else:
        value = text.splitlines() if "\n" in text else text.split(",")
    if isinstance(value, dict):
        try:
            value = [value[key] for key in sorted(value, key=int)]
        except (ValueError, TypeError):
            return ()
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(str(entry).strip() for entry in value)
