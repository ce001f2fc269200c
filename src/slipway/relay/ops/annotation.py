"""annotation.compiler_begin, compiler_end, stop_fusion, checkpoint and on_device; device_copy.

They are marks in a graph, and mean nothing to the values.  `PartitionGraph` cuts the graph at the
first two, no kernel reaches across the third, and the fourth is for a pass that makes gradients.
The last two say which device computes what, in a model that is built for several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway.ir.node import node
from slipway.relay.expr import Call, Expr, Tuple, TupleGetItem
from slipway.relay.op_registry import (
    Attrs,
    BadArgument,
    OpDefinition,
    OpPattern,
    as_expr,
    register_op,
)
from slipway.relay.ops.tensor.tensors import elementwise
from slipway.relay.types import TensorType, TupleType, Type
from slipway.runtime.devices import Device


@node
class CompilerAttrs(Attrs):
    """The name of the accelerator's code generator."""

    compiler: str = ""


@node
class MarkAttrs(Attrs):
    """None."""


@node
class OnDeviceAttrs(Attrs):
    """The kind of device, as DLPack counts them."""

    device_type: int = 1


@node
class DeviceCopyAttrs(Attrs):
    """The kinds of device, as DLPack counts them; 0: whichever the values are on."""

    src_device_type: int = 0
    dst_device_type: int = 1


def _mark(
    name: str, attrs: type[Attrs], pattern: OpPattern, doc: str, prefix: str = "annotation."
) -> OpDefinition:
    definition = register_op(prefix + name, "data", attrs=attrs, pattern=pattern, doc=doc)

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


def _on_parts(value: Expr, mark: Callable[[Expr], Any]) -> Any:
    """Return `value` marked: of a tuple each part."""
    if isinstance(value, Tuple):
        return Tuple(tuple(_on_parts(part, mark) for part in value.fields))
    if isinstance(value.type, TupleType):
        count = len(value.type.fields)
        return Tuple(tuple(_on_parts(TupleGetItem(value, n), mark) for n in range(count)))
    return mark(value)


def _register(which: str) -> OpDefinition:
    definition = _mark(
        f"compiler_{which}", CompilerAttrs, OpPattern.ELEMWISE,
        f"The value itself, where a part for an accelerator {which}s.",
    )  # fmt: skip

    @definition.make
    def make(data: Any, compiler: str) -> Any:
        return _on_parts(
            as_expr(data), lambda part: definition(part, attrs=CompilerAttrs(compiler))
        )

    make.__name__, make.__doc__ = f"compiler_{which}", definition.doc
    definition.sample_case((2, 3), attrs=CompilerAttrs("accelerator"))
    return definition


compiler_begin: Any = _register("begin").make_function
compiler_end: Any = _register("end").make_function


def _plain(name: str, pattern: OpPattern, doc: str) -> Any:
    definition = _mark(name, MarkAttrs, pattern, doc)

    @definition.make
    def make(data: Any) -> Any:
        return _on_parts(as_expr(data), lambda part: definition(part, attrs=MarkAttrs()))

    make.__name__, make.__doc__ = name, doc
    definition.sample_case((2, 3), attrs=MarkAttrs())
    return make


stop_fusion: Any = _plain(
    "stop_fusion", OpPattern.OPAQUE, "The value itself; kernels end and begin here."
)
checkpoint: Any = _plain(
    "checkpoint", OpPattern.ELEMWISE, "The value itself, which a gradient computes anew."
)

ON_DEVICE = _mark(
    "on_device", OnDeviceAttrs, OpPattern.ELEMWISE,
    "The value itself, which a device of that kind computes.",
)  # fmt: skip
DEVICE_COPY = _mark(
    "device_copy", DeviceCopyAttrs, OpPattern.ELEMWISE,
    "The value itself, copied to a device of that kind.", "",
)  # fmt: skip


def _kind_of(device: Any) -> int:
    """Return DLPack's number for ``tvm.opencl(0)``, "opencl" or that number."""
    if isinstance(device, int):
        return device
    if not isinstance(device, str) and not hasattr(device, "device_type"):
        raise BadArgument("device", f"is {device!r}; write a device, as tvm.opencl(0)")
    number: int = Device(device).device_type if isinstance(device, str) else device.device_type
    return number


@ON_DEVICE.make
def on_device(data: Any, device: Any) -> Any:
    """Let a device of a kind, ``tvm.opencl(0)`` or "opencl", compute a value.

    It computes what only this value is made from too, up to the next mark.
    """
    given = as_expr(data)
    if isinstance(given, Tuple):
        return Tuple(tuple(on_device(field, device) for field in given.fields))
    return ON_DEVICE(given, attrs=OnDeviceAttrs(_kind_of(device)))


@DEVICE_COPY.make
def device_copy(data: Any, src_dev: Any, dst_dev: Any) -> Call:
    """Copy a value from a device of one kind to one of another."""
    return DEVICE_COPY(data, attrs=DeviceCopyAttrs(_kind_of(src_dev), _kind_of(dst_dev)))


ON_DEVICE.sample_case((2, 3), attrs=OnDeviceAttrs())
DEVICE_COPY.sample_case((2, 3), attrs=DeviceCopyAttrs())
