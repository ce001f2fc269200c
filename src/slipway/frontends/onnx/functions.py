"""Operators that are defined through others: model-local functions, and ONNX function bodies.

The onnx package knows many operators (Attention, SoftmaxCrossEntropyLoss, ...) as graphs of smaller
ones, some of them made for the given attributes and input types.  An operator without a converter
is imported through its body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from slipway.frontends.onnx.reader import DTYPE_OF, onnx_package
from slipway.frontends.onnx.values import Optional, Value
from slipway.frontends.onnx.values import Sequence as SequenceValue
from slipway.relay.dims import is_open
from slipway.relay.types import ANY


class Called(Protocol):
    """A function of a model, or a node that calls one."""

    domain: str


CODE_OF = {dtype: code for code, dtype in DTYPE_OF.items()}


def called(of: Called, name: str) -> tuple[str, str, str]:
    """Return what tells the functions of a model apart; `of` is one of them, or a call."""
    return of.domain, name, getattr(of, "overload", "")  # since onnx 1.16


def has_body(kind: str, domain: str, opset: int) -> bool:
    """Return whether ONNX defines the operator through others."""
    schema = schema_of(kind, domain, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def schema_of(kind: str, domain: str, opset: int) -> Any:
    """Return ONNX's definition of an operator in an opset of its domain, or None."""
    onnx = onnx_package()
    try:
        return onnx.defs.get_schema(kind, opset, "" if domain == "ai.onnx" else domain)
    except (onnx.defs.SchemaError, TypeError):  # unknown, or an opset number beyond any
        return None


def body_of(node: Any, inputs: Sequence[Value], opset: int) -> Any:
    """Return the FunctionProto that `node` stands for, or None."""
    onnx = onnx_package()
    schema = schema_of(node.op_type, node.domain, opset)
    if schema is None:
        return None
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= opset]
        data = schema.get_function_with_opset_version(versions[-1]) if versions else None
    elif schema.has_context_dependent_function:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        types = [type_proto(x).SerializeToString() for x in inputs]
        data = None
        if versions:
            data = schema.get_context_dependent_function_with_opset_version(
                versions[-1], node.SerializeToString(), types
            )
    else:
        return None
    if not data:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    return function


def type_proto(expr: Value) -> Any:
    """Return the TypeProto of a value."""
    onnx = onnx_package()
    if isinstance(expr, Optional):
        return onnx.helper.make_optional_type_proto(type_proto(expr.value))
    if isinstance(expr, SequenceValue):
        element = onnx.helper.make_tensor_type_proto(CODE_OF.get(expr.dtype, 1), None)
        return onnx.helper.make_sequence_type_proto(element)
    if expr is None:
        return onnx.TypeProto()
    given = expr.tensor_type
    shape = [None if d is ANY else str(d) if is_open(d) else d for d in given.shape]
    return onnx.helper.make_tensor_type_proto(CODE_OF[given.dtype], shape)


def bound_nodes(function: Any, call: Any, opset: int) -> list[Any]:
    """Return the function's nodes with references to the call's attributes filled in.

    An attribute that the call leaves out has the function's default, or is left out too.
    """
    onnx = onnx_package()
    schema = schema_of(call.op_type, call.domain, opset)
    given = {}
    if schema is not None:
        for name, attribute in schema.attributes.items():
            if attribute.default_value.type:
                given[name] = attribute.default_value
    given.update((a.name, a) for a in function.attribute_proto)
    given.update((a.name, a) for a in call.attribute)
    prefix = call.name or call.op_type
    nodes = []
    for number, inner in enumerate(function.node):
        node = onnx.NodeProto()
        node.CopyFrom(inner)
        node.name = f"{prefix}/{inner.name or f'{inner.op_type}_{number}'}"
        _fill(node, given)
        nodes.append(node)
    return nodes


def _fill(node: Any, given: dict[str, Any]) -> None:
    """Replace attribute references in `node`, and in its subgraphs."""
    kept = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            found = given.get(attribute.ref_attr_name)
            if found is None:
                continue
            name = attribute.name
            attribute.CopyFrom(found)
            attribute.name = name
        if attribute.type == 5:
            for inner in attribute.g.node:
                _fill(inner, given)
        kept.append(attribute)
    if len(kept) != len(node.attribute):
        copies = []
        for attribute in kept:
            copy = type(attribute)()
            copy.CopyFrom(attribute)
            copies.append(copy)
        del node.attribute[:]
        node.attribute.extend(copies)
