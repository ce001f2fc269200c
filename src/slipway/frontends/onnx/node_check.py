"""What ONNX's own definition of an operator says against a node, before a converter sees it.

Converters read attributes and inputs as the definition promises them: this is where the promise is
kept, for all of them.  `objection_to` asks the onnx package itself, after a converter has failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from slipway.frontends.converter_table import UnsupportedNode
from slipway.frontends.onnx.attribute_check import check_attributes, check_axis, check_windows
from slipway.frontends.onnx.converters import NodeView
from slipway.frontends.onnx.functions import schema_of, type_proto
from slipway.frontends.onnx.graph_check import names_read
from slipway.frontends.onnx.isolated import objection
from slipway.frontends.onnx.reader import onnx_package
from slipway.frontends.onnx.values import Value
from slipway.relay.expr import Constant, Expr
from slipway.relay.types import ANY

TYPE_NAMES = {
    1: "a float", 2: "an integer", 3: "a string", 4: "a tensor", 5: "a graph",
    6: "a list of floats", 7: "a list of integers", 8: "a list of strings", 9: "a list of tensors",
    10: "a list of graphs", 11: "a sparse tensor", 12: "a list of sparse tensors", 13: "a type",
    14: "a list of types",
}  # fmt: skip
FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings"}

LARGEST_VALUE_BYTES = 1 << 12  # of a constant that goes along with the question


def check_node(node: Any, opset: int) -> None:
    """Raise UnsupportedNode where a node does not fit the definition of its operator.

    Its attributes must be known, complete and of their types, and as many inputs and outputs given
    as there may be.  Operators without a definition (other domains) are checked by their converter.
    """
    schema = schema_of(node.op_type, node.domain, opset)
    check_attributes(node)
    if schema is None:
        return
    given = {a.name: a for a in node.attribute if not a.ref_attr_name}
    for name, attribute in given.items():
        known = schema.attributes.get(name)
        if known is None:
            # ONNX leaves these names to others; one that is no UTF-8 comes as bytes.
            if isinstance(name, str) and name.startswith("__"):
                continue
            raise UnsupportedNode(
                f"it has the attribute {name!r}, which {_said(schema)} does not have"
            )
        wanted = known.type.value
        if (attribute.type or wanted) != wanted:
            raise UnsupportedNode(
                f"its attribute {name!r} is {TYPE_NAMES.get(attribute.type, 'of an unknown type')}"
                f", where {_said(schema)} has {TYPE_NAMES.get(wanted, 'another type')}"
            )
        if wanted in (3, 8):
            _check_text(name, [attribute.s] if wanted == 3 else attribute.strings)
    for name, known in schema.attributes.items():
        if known.required and name not in given:
            raise UnsupportedNode(f"its attribute {name!r} is missing; {_said(schema)} needs it")
    _check_count("input", len(node.input), schema.min_input, schema.max_input, schema)
    _check_count("output", len(node.output), schema.min_output, schema.max_output, schema)
    for formal, name in zip(schema.inputs, node.input, strict=False):
        if formal.option.name == "Single" and not name:
            raise UnsupportedNode(
                f"its input {formal.name!r} is left out; {_said(schema)} needs it"
            )


def _check_text(name: str, values: Any) -> None:
    for value in values:
        try:
            value.decode()
        except UnicodeDecodeError:
            raise UnsupportedNode(f"its attribute {name!r} is no UTF-8 text: {value!r}") from None


def _check_count(what: str, count: int, minimum: int, most: int, schema: Any) -> None:
    if not minimum <= count <= most:
        wanted = f"{minimum}" if minimum == most else f"{minimum} to {most}"
        raise UnsupportedNode(f"it has {count} {what}s, where {_said(schema)} has {wanted}")


def _said(schema: Any) -> str:
    return f"{schema.name} of opset {schema.since_version}"


# Inputs that are scales: those that are multiplied by, and those that are divided by.
SCALES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "QuantizeLinear": ((), (1,)), "DequantizeLinear": ((1,), ()), "QLinearConv": ((1, 4), (6,)),
    "QLinearMatMul": ((1, 4), (6,)), "QLinearAdd": ((1, 4), (6,)), "QLinearMul": ((1, 4), (6,)),
    "QLinearSigmoid": ((1,), (3,)), "QLinearLeakyRelu": ((1,), (3,)), "QGemm": ((1, 4), (7,)),
    "QLinearGlobalAveragePool": ((1,), (3,)), "QLinearAveragePool": ((1,), (3,)),
    "QLinearSoftmax": ((1,), (3,)), "QLinearWhere": ((2, 5), (7,)),
}  # fmt: skip
AT_POSITIONS = ("Gather", "GatherElements", "Scatter", "ScatterElements")
AT_TUPLES = ("GatherND", "ScatterND")


def check_values(view: NodeView) -> None:
    """Raise UnsupportedNode where constant inputs say what the operator cannot mean.

    Scales are numbers, and not zero where they divide; positions lie inside the data; windows have
    a number for each axis.
    """
    check_axis(view)
    check_windows(view)
    factors, divisors = SCALES.get(view.kind, ((), ()))
    for index in (*factors, *divisors):
        scale = _known(view, index)
        if scale is None or not scale.size:
            continue
        values = scale.astype(np.float64)
        if not np.isfinite(values).all() or (index in divisors and not values.all()):
            bad = values[~np.isfinite(values) | (values == 0)].reshape(-1)[0]
            raise view.unsupported(f"its scale (input {index}) is {bad}, which scales nothing")
    if not isinstance(view.inputs[0] if view.inputs else None, Expr):
        return  # its size depends on the data
    if view.kind in AT_POSITIONS:
        positions, shape = _known(view, 1), view.type().shape
        axis = int(view.attr("axis", 0))
        if positions is not None and -len(shape) <= axis < len(shape):
            _check_positions(view, positions, shape[axis], axis % len(shape))
    elif view.kind in AT_TUPLES:
        positions, shape = _known(view, 1), view.type().shape
        first = int(view.attr("batch_dims", 0)) if view.kind == "GatherND" else 0
        if positions is not None and positions.ndim and first + positions.shape[-1] <= len(shape):
            for i in range(positions.shape[-1]):
                _check_positions(view, positions[..., i], shape[first + i], first + i)


def _known(view: NodeView, index: int) -> np.ndarray[Any, Any] | None:
    found = view.inputs[index] if index < len(view.inputs) else None
    return found.array if isinstance(found, Constant) else None


def _check_positions(
    view: NodeView, positions: np.ndarray[Any, Any], extent: int, axis: int
) -> None:
    if extent is ANY or not positions.size or positions.dtype.kind not in "iu":
        return
    low, high = int(positions.min()), int(positions.max())
    if low < -extent or high >= extent:
        bad = low if low < -extent else high
        raise view.unsupported(
            f"it reads position {bad} of axis {axis}, which has {extent} elements"
        )


def objection_to(node: Any, values: Mapping[str, Value], opset: int) -> str:
    """Return what ONNX's checker and strict shape inference hold against a node, "" for nothing."""
    onnx = onnx_package()
    model = onnx.ModelProto(ir_version=10)
    model.graph.name = "node"
    model.graph.node.append(node)
    read = [n for n in names_read(node) if n in values]  # bodies read names from outside, too
    for name in dict.fromkeys(n for n in (*node.input, *read) if n):
        value = values[name]
        info = model.graph.input.add()
        info.name = name
        info.type.CopyFrom(type_proto(value))
        if isinstance(value, Constant) and value.array.nbytes <= LARGEST_VALUE_BYTES:
            model.graph.initializer.append(_tensor(name, value.array, info))
    for name in node.output:
        model.graph.output.add().name = name
    model.opset_import.append(onnx.helper.make_opsetid("", opset))
    if node.domain not in ("", "ai.onnx"):
        model.opset_import.append(onnx.helper.make_opsetid(node.domain, 1))
    lines = [line.strip() for line in objection(model).splitlines() if line.strip()]
    return lines[0][:300] if lines else ""


def _tensor(name: str, array: np.ndarray[Any, Any], info: Any) -> Any:
    """Return a small TensorProto; the bytes of ml_dtypes' types are those of the file."""
    made = onnx_package().TensorProto(name=name, data_type=info.type.tensor_type.elem_type)
    made.dims.extend(array.shape)
    made.raw_data = array.tobytes()
    return made
