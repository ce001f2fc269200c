"""Softmax and log-softmax, in four stages: maximum, exponentials, their sum, quotient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, OpDefinition, OpPattern, register_op
from slipway.relay.ops.checks import need_float, normal_axis
from slipway.relay.ops.tensor.tensors import te, wide
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike


@node
class SoftmaxAttrs(Attrs):
    """The axis along which the results sum to one."""

    axis: int = -1


def _relation(attrs: SoftmaxAttrs, data: TensorType) -> Type:
    need_float("data", data)
    normal_axis(attrs.axis, data.rank)
    return data


def _stages(attrs: SoftmaxAttrs, x: Any) -> tuple[Any, Any, Any, Any]:
    """Return the row maximum, the exponentials, their sum, and a function that drops the axis."""
    shape = tuple(size_of(d) for d in x.shape)
    axis = attrs.axis % len(shape)
    rows = shape[:axis] + shape[axis + 1 :]

    def without(indices: tuple[Any, ...]) -> tuple[Any, ...]:
        return indices[:axis] + indices[axis + 1 :]

    k = te().reduce_axis((0, shape[axis]), name="k")
    maximum = te().compute(
        rows,
        lambda *i: te().max_of_numbers(x(*i[:axis], k, *i[axis:]), axis=[k]),
        name="T_softmax_maxelem",
    )
    exponentials = te().compute(
        shape,
        lambda *i: te().exp((x(*i) - maximum(*without(i))).astype(wide(x.dtype))),
        name="T_softmax_exp",
    )
    k2 = te().reduce_axis((0, shape[axis]), name="k")
    total = te().compute(
        rows,
        lambda *i: te().sum(exponentials(*i[:axis], k2, *i[axis:]), axis=[k2]),
        name="T_softmax_expsum",
    )
    return maximum, exponentials, total, without


def _register(name: str, doc: str) -> OpDefinition:
    definition = register_op(
        name, "data", attrs=SoftmaxAttrs, pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        flops_per_element=12, doc=doc,
    )  # fmt: skip
    definition.type_relation(_relation)
    definition.sample_case((2, 7))
    definition.sample_case((2, 3, 4), attrs=SoftmaxAttrs(1))
    return definition


SOFTMAX = _register("nn.softmax", "exp(data) over its sum along an axis.")
LOG_SOFTMAX = _register("nn.log_softmax", "The logarithm of softmax.")


@SOFTMAX.reference
def _softmax_reference(attrs: SoftmaxAttrs, data: Array) -> Any:
    exponentials = np.exp(
        (data - data.max(axis=attrs.axis, keepdims=True)).astype(wide(data.dtype.name))
    )
    return (exponentials / exponentials.sum(axis=attrs.axis, keepdims=True)).astype(data.dtype)


@SOFTMAX.compute
def _softmax_compute(
    attrs: SoftmaxAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    _, exponentials, total, without = _stages(attrs, inputs[0])
    return [
        te().compute(
            out_types[0].shape,
            lambda *i: (exponentials(*i) / total(*without(i))).astype(out_types[0].dtype),
            name="T_softmax_norm",
            tag="softmax_output",
            attrs={"axis": attrs.axis % out_types[0].rank},
        )
    ]


@SOFTMAX.make
def softmax(data: ExprLike, axis: int = -1) -> Call:
    """Return exp(data) over its sum along `axis`."""
    return SOFTMAX(data, attrs=SoftmaxAttrs(axis))


@LOG_SOFTMAX.reference
def _log_softmax_reference(attrs: SoftmaxAttrs, data: Array) -> Any:
    shifted = data - data.max(axis=attrs.axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=attrs.axis, keepdims=True))


@LOG_SOFTMAX.compute
def _log_softmax_compute(
    attrs: SoftmaxAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    x = inputs[0]
    maximum, _, total, without = _stages(attrs, x)
    return [
        te().compute(
            out_types[0].shape,
            lambda *i: (
                (x(*i) - maximum(*without(i))).astype(wide(x.dtype)) - te().log(total(*without(i)))
            ).astype(x.dtype),
            name="T_log_softmax_norm",
            tag="log_softmax_output",
            attrs={"axis": attrs.axis % out_types[0].rank},
        )
    ]


@LOG_SOFTMAX.make
def log_softmax(data: ExprLike, axis: int = -1) -> Call:
    """Return the logarithm of softmax along `axis`."""
    return LOG_SOFTMAX(data, attrs=SoftmaxAttrs(axis))
