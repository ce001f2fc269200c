"""annotation.compiler_begin, compiler_end, stop_fusion and checkpoint: marks in a graph.

They mean nothing to the values.  `PartitionGraph` cuts the graph at the first two, no kernel
reaches across the third, and the last is for a pass that makes gradients.
"""

from __future__ import annotations

from typing import Any

from slipway.ir.node import node
from slipway.relay.expr import Call, Tuple
from slipway.relay.op_registry import Attrs, OpDefinition, OpPattern, as_expr, register_op
from slipway.relay.ops.tensor.tensors import elementwise
from slipway.relay.types import TensorType, Type


@node
class CompilerAttrs(Attrs):
    """The name of the accelerator's code generator."""

    compiler: str = ""


@node
class MarkAttrs(Attrs):
    """None."""


def _mark(name: str, attrs: type[Attrs], pattern: OpPattern, doc: str) -> OpDefinition:
    definition = register_op(f"annotation.{name}", "data", attrs=attrs, pattern=pattern, doc=doc)

    @definition.type_relation
    def relation(attrs: Attrs, data: TensorType) -> Type:
        return data

    @definition.reference
    def reference(attrs: Attrs, data: Any) -> Any:
        return data

    @definition.compute
    def compute(attrs: Attrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
        (x,) = inputs
        return [elementwise(name, out_types[0].shape, lambda *i: x(*i))]

    return definition


def _register(which: str) -> OpDefinition:
    definition = _mark(
        f"compiler_{which}", CompilerAttrs, OpPattern.ELEMWISE,
        f"The value itself, where a part for an accelerator {which}s.",
    )  # fmt: skip

    @definition.make
    def make(data: Any, compiler: str) -> Call:
        return definition(data, attrs=CompilerAttrs(compiler))

    make.__name__, make.__doc__ = f"compiler_{which}", definition.doc
    definition.sample_case((2, 3), attrs=CompilerAttrs("accelerator"))
    return definition


compiler_begin: Any = _register("begin").make_function
compiler_end: Any = _register("end").make_function


def _plain(name: str, pattern: OpPattern, doc: str) -> Any:
    definition = _mark(name, MarkAttrs, pattern, doc)

    @definition.make
    def make(data: Any) -> Any:
        given = as_expr(data)
        if isinstance(given, Tuple):
            return Tuple(tuple(make(field) for field in given.fields))
        return definition(given, attrs=MarkAttrs())

    make.__name__, make.__doc__ = name, doc
    definition.sample_case((2, 3), attrs=MarkAttrs())
    return make


stop_fusion: Any = _plain(
    "stop_fusion", OpPattern.OPAQUE, "The value itself; kernels end and begin here."
)
checkpoint: Any = _plain(
    "checkpoint", OpPattern.ELEMWISE, "The value itself, which a gradient computes anew."
)
