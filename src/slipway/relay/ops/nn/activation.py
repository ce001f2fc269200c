"""Activation functions: relu and its kin, clip, prelu."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, register_op
from slipway.relay.ops.checks import along_axis, need_float, need_number, normal_axis
from slipway.relay.ops.tensor.tensors import elementwise, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike

RELU = register_op(
    "nn.relu", "data", pattern=OpPattern.ELEMWISE, flops_per_element=1, doc="max(data, 0)."
)


@RELU.type_relation
def _relu_type(attrs: None, data: TensorType) -> Type:
    need_number("data", data)
    return data


@RELU.reference
def _relu_reference(attrs: None, data: Array) -> Any:
    return np.maximum(data, data.dtype.type(0))


@RELU.compute
def _relu_compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,) = inputs
    zero = te().const(0, x.dtype)
    return [elementwise("T_relu", x.shape, lambda *i: te().max(x(*i), zero))]


@RELU.make
def relu(data: ExprLike) -> Call:
    """Rectify: max(data, 0)."""
    return RELU(data)


RELU.sample_case((1, 8))
RELU.sample_case((3, 5, 7), dtypes=("int8",), low=-9, high=9)


@node
class LeakyReluAttrs(Attrs):
    """The slope of the negative side."""

    alpha: float = 0.01


LEAKY_RELU = register_op(
    "nn.leaky_relu", "data", attrs=LeakyReluAttrs, pattern=OpPattern.ELEMWISE, flops_per_element=2,
    doc="data where positive, else alpha * data.",
)  # fmt: skip


@LEAKY_RELU.type_relation
def _leaky_relu_type(attrs: LeakyReluAttrs, data: TensorType) -> Type:
    need_float("data", data)
    return data


@LEAKY_RELU.reference
def _leaky_relu_reference(attrs: LeakyReluAttrs, data: Array) -> Any:
    return np.where(data >= 0, data, data * data.dtype.type(attrs.alpha))


@LEAKY_RELU.compute
def _leaky_relu_compute(
    attrs: LeakyReluAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,) = inputs
    zero, slope = te().const(0, x.dtype), te().const(attrs.alpha, x.dtype)

    def element(*i: PrimExpr) -> Any:
        return te().select(x(*i) >= zero, x(*i), x(*i) * slope)

    return [elementwise("T_leaky_relu", x.shape, element)]


@LEAKY_RELU.make
def leaky_relu(data: ExprLike, alpha: float = 0.01) -> Call:
    """Return data where positive, else alpha * data."""
    return LEAKY_RELU(data, attrs=LeakyReluAttrs(float(alpha)))


LEAKY_RELU.sample_case((2, 5))
LEAKY_RELU.sample_case((3, 2, 2), attrs=LeakyReluAttrs(0.2))


@node
class PReluAttrs(Attrs):
    """The axis that `alpha` runs along."""

    axis: int = 1


PRELU = register_op(
    "nn.prelu", "data", "alpha", attrs=PReluAttrs, pattern=OpPattern.BROADCAST, flops_per_element=2,
    doc="data where positive, else alpha * data with one alpha per channel.",
)  # fmt: skip


@PRELU.type_relation
def _prelu_type(attrs: PReluAttrs, data: TensorType, alpha: TensorType) -> Type:
    need_float("data", data)
    axis = normal_axis(attrs.axis, data.rank)
    if alpha.shape != (data.shape[axis],) or alpha.dtype != data.dtype:
        wanted = TensorType((data.shape[axis],), data.dtype)
        raise BadArgument("alpha", f"must be {wanted} (axis {axis} of the data), got {alpha}")
    return data


PRELU.implies(along_axis)


@PRELU.reference
def _prelu_reference(attrs: PReluAttrs, data: Array, alpha: Array) -> Any:
    shape = [1] * data.ndim
    shape[attrs.axis] = -1
    return np.where(data >= 0, data, data * alpha.reshape(shape))


@PRELU.compute
def _prelu_compute(attrs: PReluAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    x, alpha = inputs
    axis = attrs.axis % out_types[0].rank
    zero = te().const(0, x.dtype)

    def element(*i: PrimExpr) -> Any:
        return te().select(x(*i) >= zero, x(*i), x(*i) * alpha(i[axis]))

    return [elementwise("T_prelu", x.shape, element, tag="broadcast")]


@PRELU.make
def prelu(data: ExprLike, alpha: ExprLike, axis: int = 1) -> Call:
    """Return data where positive, else alpha * data with one alpha per entry of `axis`."""
    return PRELU(data, alpha, attrs=PReluAttrs(axis))


PRELU.sample_case((2, 3, 4), (3,))


@node
class ClipAttrs(Attrs):
    """The closed interval to stay in."""

    a_min: float = 0.0
    a_max: float = 6.0


CLIP = register_op(
    "clip", "a", attrs=ClipAttrs, pattern=OpPattern.ELEMWISE, flops_per_element=2,
    doc="min(max(a, a_min), a_max).",
)  # fmt: skip


@CLIP.type_relation
def _clip_type(attrs: ClipAttrs, a: TensorType) -> Type:
    need_number("a", a)
    return a


def _bounds(attrs: ClipAttrs, dtype: str) -> tuple[Any, Any]:
    """The bounds as numbers of `dtype`; an integer type's own range bounds them too."""
    if dtypes.is_float(dtype):
        return attrs.a_min, attrs.a_max
    low, high = dtypes.int_range(dtype)
    return (
        int(min(max(attrs.a_min, low), high)),
        int(max(min(attrs.a_max, high), low)),
    )


@CLIP.reference
def _clip_reference(attrs: ClipAttrs, a: Array) -> Any:
    low, high = _bounds(attrs, a.dtype.name)
    return np.minimum(np.maximum(a, a.dtype.type(low)), a.dtype.type(high))


@CLIP.compute
def _clip_compute(attrs: ClipAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,) = inputs
    low, high = (te().const(v, x.dtype) for v in _bounds(attrs, x.dtype))
    return [elementwise("T_clip", x.shape, lambda *i: te().min(te().max(x(*i), low), high))]


@CLIP.make
def clip(a: ExprLike, a_min: float, a_max: float) -> Call:
    """Keep each element in [a_min, a_max]."""
    return CLIP(a, attrs=ClipAttrs(float(a_min), float(a_max)))


CLIP.sample_case((3, 4), low=-3, high=9)
CLIP.sample_case((3, 4), attrs=ClipAttrs(-2.0, 3.0), dtypes=("int8",), low=-9, high=9)
