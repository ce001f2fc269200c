"""Running sums and products along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, OpDefinition, OpPattern, register_op
from slipway.relay.ops.checks import need_number, normal_axis
from slipway.relay.ops.tensors import te
from slipway.relay.types import TensorType, Type


@node
class ScanAttrs(Attrs):
    """The axis; `exclusive` leaves the element itself out, `reverse` runs from the end."""

    axis: int = 0
    exclusive: bool = False
    reverse: bool = False


def _register(name: str, multiply: bool) -> OpDefinition:
    definition = register_op(
        name, "data", attrs=ScanAttrs, pattern=OpPattern.OPAQUE, flops_per_element=1,
        doc=f"The running {'product' if multiply else 'sum'} along an axis.",
    )  # fmt: skip

    @definition.type_relation
    def relation(attrs: ScanAttrs, data: TensorType) -> Type:
        need_number("data", data)
        normal_axis(attrs.axis, data.rank)
        return data

    @definition.reference
    def evaluate(attrs: ScanAttrs, data: Any) -> Any:
        moved = np.moveaxis(data, attrs.axis, -1)
        moved = moved[..., ::-1] if attrs.reverse else moved
        out = (np.cumprod if multiply else np.cumsum)(moved, axis=-1, dtype=data.dtype)
        if attrs.exclusive:
            start = np.full((*out.shape[:-1], 1), 1 if multiply else 0, data.dtype)
            out = np.concatenate([start, out[..., :-1]], axis=-1)
        out = out[..., ::-1] if attrs.reverse else out
        return np.ascontiguousarray(np.moveaxis(out, -1, attrs.axis))

    @definition.compute
    def compute(attrs: ScanAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
        # Each result reduces its own prefix: quadratic in the extent, but free of dependences.
        (x,), (out,) = inputs, out_types
        axis = attrs.axis % out.rank
        k = te().reduce_axis((0, out.shape[axis]), name="k")
        neutral = te().const(1 if multiply else 0, x.dtype)

        def element(*i: Any) -> Any:
            if attrs.reverse:
                counted = k > i[axis] if attrs.exclusive else k >= i[axis]
            else:
                counted = k < i[axis] if attrs.exclusive else k <= i[axis]
            value = te().if_then_else(counted, x(*i[:axis], k, *i[axis + 1 :]), neutral)
            return te().prod(value, axis=[k]) if multiply else te().sum(value, axis=[k])

        return [te().compute(out.shape, element, name=f"T_{name}", tag="comm_reduce")]

    @definition.face
    def face(data: Any, axis: int = 0, dtype: str | None = None, exclusive: bool = False) -> Call:
        return definition(data, attrs=ScanAttrs(int(axis or 0), bool(exclusive), False))

    face.__name__, face.__doc__ = name, definition.doc
    for attrs in (
        ScanAttrs(1),
        ScanAttrs(0, True),
        ScanAttrs(-1, True, True),
        ScanAttrs(1, False, True),
    ):
        definition.sample_case((3, 4), attrs=attrs)
    return definition


CUMSUM, CUMPROD = _register("cumsum", False), _register("cumprod", True)
cumsum: Any = CUMSUM.face_function
cumprod: Any = CUMPROD.face_function
