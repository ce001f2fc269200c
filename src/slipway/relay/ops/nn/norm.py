"""Normalisations and dropout.

batch_norm and dropout of a trained model disappear in `SimplifyInference`; their computes exist
so that every graph can be built without optimisation too.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import is_open, size_of
from slipway.relay.expr import Call, TupleWrapper
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, const, register_op
from slipway.relay.ops.build import implied
from slipway.relay.ops.checks import (
    along_axis,
    need_dtype,
    need_float,
    need_shape,
    normal_axis,
    whole,
)
from slipway.relay.ops.tensor import binary, reduce, shape, unary
from slipway.relay.ops.tensor.tensors import elementwise, number, te, wide
from slipway.relay.types import TensorType, TupleType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, Axes, ExprLike


@node
class BatchNormAttrs(Attrs):
    """`axis` is the channel axis; without `scale` gamma is not used, without `center` beta."""

    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


BATCH_NORM = register_op(
    "nn.batch_norm", "data", "gamma", "beta", "moving_mean", "moving_var", attrs=BatchNormAttrs,
    pattern=OpPattern.BROADCAST, flops_per_element=2,
    doc="(data - mean) / sqrt(var + epsilon) * gamma + beta per channel; (result, mean, var).",
)  # fmt: skip


@BATCH_NORM.type_relation
def _batch_norm_type(attrs: BatchNormAttrs, data: TensorType, *rest: TensorType) -> Type:
    need_float("data", data)
    axis = normal_axis(attrs.axis, data.rank)
    for name, given in zip(BATCH_NORM.arguments[1:], rest, strict=True):
        need_shape(name, given, (data.shape[axis],), f"axis {axis} of the data")
        need_dtype(name, given, data.dtype, "the data")
    return TupleType((data, rest[2], rest[3]))


BATCH_NORM.implies(along_axis)


@BATCH_NORM.reference
def _batch_norm_reference(
    attrs: BatchNormAttrs, data: Array, gamma: Array, beta: Array, mean: Array, var: Array
) -> Any:
    shape = [1] * data.ndim
    shape[attrs.axis] = -1
    factor = 1 / np.sqrt(var + data.dtype.type(attrs.epsilon))
    if attrs.scale:
        factor = factor * gamma
    out = (data - mean.reshape(shape)) * factor.reshape(shape)
    if attrs.center:
        out = out + beta.reshape(shape)
    return out.astype(data.dtype), mean, var


@BATCH_NORM.compute
def _batch_norm_compute(
    attrs: BatchNormAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, gamma, beta, mean, var = inputs
    axis = attrs.axis % out_types[0].rank
    epsilon = te().const(attrs.epsilon, data.dtype)

    def element(*i: PrimExpr) -> Any:
        c = i[axis]
        value = (data(*i) - mean(c)) / te().sqrt(var(c) + epsilon)
        value = value * gamma(c) if attrs.scale else value
        return value + beta(c) if attrs.center else value

    kept = [elementwise("T_copy", t.shape, lambda i, t=t: t(i)) for t in (mean, var)]
    return [elementwise("T_batch_norm", out_types[0].shape, element, tag="broadcast"), *kept]


@BATCH_NORM.make
def batch_norm(
    data: ExprLike,
    gamma: ExprLike,
    beta: ExprLike,
    moving_mean: ExprLike,
    moving_var: ExprLike,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> TupleWrapper:
    """Normalise with the statistics of training; returns (result, moving_mean, moving_var)."""
    attrs = BatchNormAttrs(axis, float(epsilon), bool(center), bool(scale))
    return TupleWrapper(BATCH_NORM(data, gamma, beta, moving_mean, moving_var, attrs=attrs), 3)


BATCH_NORM.sample_case((2, 3, 4, 5), (3,), (3,), (3,), (3,), low=0.1, high=2)


@node
class NormAttrs(Attrs):
    """The first (layer norm) or channel (instance and group norm) axis, and epsilon."""

    axis: int = -1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


def _moments(x: Any, axes: list[int], count: int, name: str) -> tuple[Any, Any]:
    """Return te stages of the mean and the variance of `x` over `axes`, indexed by the others."""
    shape = [size_of(d) for d in x.shape]
    rows = [d for a, d in enumerate(shape) if a not in axes]
    dtype = wide(x.dtype)
    if is_open(count):
        scale = te().div(te().const(1.0, dtype), number(count, dtype))
    else:
        scale = te().const(1.0 / max(count, 1), dtype)

    def source(i: tuple[Any, ...], taps: list[Any]) -> list[Any]:
        rest, inner = iter(i), iter(taps)
        return [next(inner) if a in axes else next(rest) for a in range(len(shape))]

    taps = [te().reduce_axis((0, shape[a]), name=f"k{a}") for a in axes]
    total = te().compute(
        rows, lambda *i: te().sum(x(*source(i, taps)).astype(dtype), axis=taps), name=f"{name}_sum"
    )
    mean = te().compute(rows, lambda *i: total(*i) * scale, name=f"{name}_mean")
    again = [te().reduce_axis((0, shape[a]), name=f"k{a}") for a in axes]

    def square(*i: Any) -> Any:
        centred = x(*source(i, again)).astype(dtype) - mean(*i)
        return te().sum(centred * centred, axis=again)

    squares = te().compute(rows, square, name=f"{name}_squares")
    return mean, te().compute(rows, lambda *i: squares(*i) * scale, name=f"{name}_var")


LAYER_NORM = register_op(
    "nn.layer_norm", "data", "gamma", "beta", attrs=NormAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE, flops_per_element=8,
    doc="(data - mean) / sqrt(var + epsilon) * gamma + beta, moments along one axis.",
)  # fmt: skip


@LAYER_NORM.type_relation
def _layer_norm_type(
    attrs: NormAttrs, data: TensorType, gamma: TensorType, beta: TensorType
) -> Type:
    need_float("data", data)
    axis = normal_axis(attrs.axis, data.rank)
    for name, given in (("gamma", gamma), ("beta", beta)):
        need_shape(name, given, (data.shape[axis],), f"axis {axis} of the data")
        need_dtype(name, given, data.dtype, "the data")
    return data


LAYER_NORM.implies(along_axis)


@LAYER_NORM.reference
def _layer_norm_reference(attrs: NormAttrs, data: Array, gamma: Array, beta: Array) -> Any:
    shape = [1] * data.ndim
    shape[attrs.axis] = -1
    wide = data.astype(np.float64)
    mean = wide.mean(axis=attrs.axis, keepdims=True)
    var = wide.var(axis=attrs.axis, keepdims=True)
    out = (wide - mean) / np.sqrt(var + attrs.epsilon)
    out = out * gamma.reshape(shape) if attrs.scale else out
    out = out + beta.reshape(shape) if attrs.center else out
    return out.astype(data.dtype)


@LAYER_NORM.compute
def _layer_norm_compute(
    attrs: NormAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, gamma, beta = inputs
    (out,) = out_types
    axis = attrs.axis % out.rank
    mean, var = _moments(data, [axis], out.shape[axis], "layer_norm")
    epsilon = te().const(attrs.epsilon, wide(data.dtype))

    def element(*i: PrimExpr) -> Any:
        row = i[:axis] + i[axis + 1 :]
        value = (data(*i).astype(wide(data.dtype)) - mean(*row)) * te().rsqrt(var(*row) + epsilon)
        value = value * gamma(i[axis]) if attrs.scale else value
        return (value + beta(i[axis]) if attrs.center else value).astype(out.dtype)

    return [te().compute(out.shape, element, name="T_layer_norm", tag="layer_norm")]


@LAYER_NORM.make
def layer_norm(
    data: ExprLike, gamma: ExprLike, beta: ExprLike, axis: int = -1, epsilon: float = 1e-5,
    center: bool = True, scale: bool = True,
) -> Call:  # fmt: skip
    """Normalise along `axis`, then scale by gamma and shift by beta."""
    attrs = NormAttrs(axis, float(epsilon), bool(center), bool(scale))
    return LAYER_NORM(data, gamma, beta, attrs=attrs)


LAYER_NORM.sample_case((2, 3, 8), (8,), (8,))

INSTANCE_NORM = register_op(
    "nn.instance_norm", "data", "gamma", "beta", attrs=NormAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE, flops_per_element=8,
    doc="Each channel of each sample normalised by its own moments, then gamma and beta.",
)  # fmt: skip


def _channel_params(
    attrs: NormAttrs, data: TensorType, gamma: TensorType, beta: TensorType
) -> Type:
    need_float("data", data)
    axis = normal_axis(attrs.axis, data.rank)
    if axis == 0:
        raise BadArgument("axis", "is 0, the batch; give the channel axis")
    for name, given in (("gamma", gamma), ("beta", beta)):
        need_shape(name, given, (data.shape[axis],), f"axis {axis} of the data")
        need_dtype(name, given, data.dtype, "the data")
    return data


INSTANCE_NORM.type_relation(_channel_params)


INSTANCE_NORM.implies(along_axis)


@INSTANCE_NORM.reference
def _instance_norm_reference(attrs: NormAttrs, data: Array, gamma: Array, beta: Array) -> Any:
    axis = attrs.axis % data.ndim
    shape = [1] * data.ndim
    shape[axis] = -1
    axes = tuple(a for a in range(1, data.ndim) if a != axis)
    wide = data.astype(np.float64)
    mean, var = wide.mean(axis=axes, keepdims=True), wide.var(axis=axes, keepdims=True)
    out = (wide - mean) / np.sqrt(var + attrs.epsilon)
    return (out * gamma.reshape(shape) + beta.reshape(shape)).astype(data.dtype)


@INSTANCE_NORM.compute
def _instance_norm_compute(
    attrs: NormAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, gamma, beta = inputs
    (out,) = out_types
    axis = attrs.axis % out.rank
    axes = [a for a in range(1, out.rank) if a != axis]
    count = prod([out.shape[a] for a in axes])
    mean, var = _moments(data, axes, count, "instance_norm")
    epsilon = te().const(attrs.epsilon, wide(data.dtype))

    def element(*i: PrimExpr) -> Any:
        c = i[axis]
        scale = te().rsqrt(var(i[0], c) + epsilon) * gamma(c)
        value = (data(*i).astype(wide(data.dtype)) - mean(i[0], c)) * scale + beta(c)
        return value.astype(out.dtype)

    return [te().compute(out.shape, element, name="T_instance_norm", tag="instance_norm")]


@INSTANCE_NORM.make
def instance_norm(
    data: ExprLike, gamma: ExprLike, beta: ExprLike, axis: int = 1, epsilon: float = 1e-5,
    center: bool = True, scale: bool = True,
) -> Call:  # fmt: skip
    """Normalise each channel of each sample by itself."""
    attrs = NormAttrs(axis, float(epsilon), bool(center), bool(scale))
    return INSTANCE_NORM(data, gamma, beta, attrs=attrs)


INSTANCE_NORM.sample_case((2, 3, 4, 5), (3,), (3,), attrs=NormAttrs(1))


@node
class LrnAttrs(Attrs):
    """Window of `size` channels; (bias + alpha / size * sum of squares) ** beta divides."""

    size: int = 5
    axis: int = 1
    bias: float = 2.0
    alpha: float = 1e-5
    beta: float = 0.75


LRN = register_op(
    "nn.lrn", "data", attrs=LrnAttrs, pattern=OpPattern.OPAQUE, flops_per_element=20,
    doc="Local response normalisation across neighbouring channels.",
)  # fmt: skip


@LRN.type_relation
def _lrn_type(attrs: LrnAttrs, data: TensorType) -> Type:
    need_float("data", data)
    if attrs.size < 1:
        raise BadArgument("size", f"is {attrs.size}; it is the number of channels summed, from 1")
    normal_axis(attrs.axis, data.rank)
    return data


@LRN.reference
def _lrn_reference(attrs: LrnAttrs, data: Array) -> Any:
    moved = np.moveaxis(data, attrs.axis, 0).astype(np.float64)
    before, after = (attrs.size - 1) // 2, attrs.size // 2
    squares = np.stack(
        [
            (moved[max(c - before, 0) : c + after + 1] ** 2).sum(axis=0)
            for c in range(moved.shape[0])
        ]
    )
    out = moved / (attrs.bias + attrs.alpha / attrs.size * squares) ** attrs.beta
    return np.moveaxis(out, 0, attrs.axis).astype(data.dtype)


def _power(x: PrimExpr, exponent: float) -> Any:
    """X to a power; through roots where the usual ones are all there is to it."""
    if exponent == 0.75:
        root = te().sqrt(x)
        return root * te().sqrt(root)
    return te().sqrt(x) if exponent == 0.5 else te().power(x, te().const(exponent, x.dtype))


@LRN.compute
def _lrn_compute(attrs: LrnAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (data,) = inputs
    (out,) = out_types
    axis = attrs.axis % out.rank
    before, channels = (attrs.size - 1) // 2, out.shape[axis]
    k = te().reduce_axis((0, attrs.size), name="k")

    def window(*i: PrimExpr) -> Any:
        c = i[axis] + k - before
        inside = te().all(c >= 0, c < channels)
        value = te().if_then_else(
            inside, data(*i[:axis], c, *i[axis + 1 :]), te().const(0, data.dtype)
        )
        return te().sum(value * value, axis=[k])

    squares = te().compute(out.shape, window, name="lrn_squares")
    bias, alpha = (te().const(v, data.dtype) for v in (attrs.bias, attrs.alpha / attrs.size))
    return [
        te().compute(
            out.shape,
            lambda *i: data(*i) / _power(bias + alpha * squares(*i), attrs.beta),
            name="T_lrn",
        )
    ]


@LRN.make
def lrn(
    data: ExprLike,
    size: int = 5,
    axis: int = 1,
    bias: float = 2.0,
    alpha: float = 1e-5,
    beta: float = 0.75,
) -> Call:
    """Divide by the energy of `size` neighbouring channels."""
    attrs = LrnAttrs(int(size), int(axis), float(bias), float(alpha), float(beta))
    return LRN(data, attrs=attrs)


LRN.sample_case((1, 7, 3, 2), attrs=LrnAttrs(3, 1, 1.0, 0.1, 0.75))


@node
class DropoutAttrs(Attrs):
    """The share of elements dropped in training; inference ignores it."""

    rate: float = 0.5


DROPOUT = register_op(
    "nn.dropout", "data", attrs=DropoutAttrs, pattern=OpPattern.ELEMWISE,
    doc="The data itself (inference); the second result is an all-true mask.",
)  # fmt: skip


@DROPOUT.type_relation
def _dropout_type(attrs: DropoutAttrs, data: TensorType) -> Type:
    return TupleType((data, TensorType(data.shape, "bool")))


@DROPOUT.reference
def _dropout_reference(attrs: DropoutAttrs, data: Array) -> Any:
    return data, np.ones(data.shape, bool)


@DROPOUT.compute
def _dropout_compute(
    attrs: DropoutAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,) = inputs
    return [
        elementwise("T_copy", x.shape, lambda *i: x(*i)),
        elementwise("T_mask", x.shape, lambda *i: te().const(True, "bool")),
    ]


@DROPOUT.make
def dropout(data: ExprLike, rate: float = 0.5) -> Any:
    """Return the data: nothing is dropped in inference."""
    return TupleWrapper(DROPOUT(data, attrs=DropoutAttrs(float(rate))), 2)[0]


DROPOUT.sample_case((2, 3))


def l2_normalize(data: ExprLike, eps: float = 1e-12, axis: Axes = None) -> Call:
    """Return data / sqrt(max(sum of squares over `axis`, eps)), through smaller operators."""
    squares = reduce.sum_(binary.multiply(data, data), axis=axis, keepdims=True)
    floor = const(eps, squares.tensor_type.dtype)
    return binary.divide(data, unary.sqrt(binary.maximum(squares, floor)))  # type: ignore[no-any-return]


def group_norm(
    data: ExprLike,
    gamma: ExprLike,
    beta: ExprLike,
    num_groups: int,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Any:
    """Normalise groups of channels (axis 1) by their own moments, through smaller operators."""
    data = as_expr(data)
    given = data.tensor_type
    if given.rank < 2:
        raise BadArgument("data", f"must have a batch and channels, got {given}")
    num_groups = whole("num_groups", num_groups, 1, 2**31 - 1)
    if axis != 1 or given.shape[1] % num_groups:
        raise BadArgument(
            "num_groups", f"is {num_groups}: it must divide axis 1 of {given}, the only axis served"
        )
    grouped = shape.reshape(data, (given.shape[0], num_groups, -1))
    ones = const(np.ones(num_groups, given.dtype))
    zeros = const(np.zeros(num_groups, given.dtype))
    even = shape.reshape(instance_norm(grouped, ones, zeros, 1, epsilon), given.shape)
    column = (-1,) + (1,) * (given.rank - 2)
    gamma, beta = (implied(v, (given.shape[1],), given.dtype) for v in (gamma, beta))
    even = binary.multiply(even, shape.reshape(gamma, column)) if scale else even
    return binary.add(even, shape.reshape(beta, column)) if center else even
