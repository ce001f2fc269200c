"""annotation.compiler_begin and compiler_end: where a part for an accelerator begins and ends.

They mean nothing to the values; `PartitionGraph` cuts the graph at them.
"""

from __future__ import annotations

from typing import Any

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, OpDefinition, OpPattern, register_op
from slipway.relay.ops.tensor.tensors import elementwise
from slipway.relay.types import TensorType, Type


@node
class CompilerAttrs(Attrs):
    """The name of the accelerator's code generator."""

    compiler: str = ""


def _register(which: str) -> OpDefinition:
    definition = register_op(
        f"annotation.compiler_{which}", "data", attrs=CompilerAttrs, pattern=OpPattern.ELEMWISE,
        doc=f"The value itself, where a part for an accelerator {which}s.",
    )  # fmt: skip

    @definition.type_relation
    def relation(attrs: CompilerAttrs, data: TensorType) -> Type:
        return data

    @definition.reference
    def reference(attrs: CompilerAttrs, data: Any) -> Any:
        return data

    @definition.compute
    def compute(attrs: CompilerAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
        (x,) = inputs
        return [elementwise(f"compiler_{which}", out_types[0].shape, lambda *i: x(*i))]

    @definition.make
    def make(data: Any, compiler: str) -> Call:
        return definition(data, attrs=CompilerAttrs(compiler))

    make.__name__, make.__doc__ = f"compiler_{which}", definition.doc
    definition.sample_case((2, 3), attrs=CompilerAttrs("accelerator"))
    return definition


compiler_begin: Any = _register("begin").make_function
compiler_end: Any = _register("end").make_function
