"""Integer convolutions and products on channels-last data, accumulated in int32 or int64.

The operators sum products of stored integers; the padding of a convolution holds `pad_value`, the
data's zero point.  Zero points are no part of the sums: with constant weights w,

    sum (x - zx) * (w - zw)  =  sum x * w  -  zw * sum x  -  zx * sum w  +  n * zx * zw

and with zw = 0, as formats with symmetric weights have it, only the constant - zx * sum w is left,
which importers fold into the bias.  What requantises the sums is their epilogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpDefinition, OpPattern, register_op
from slipway.relay.ops.checks import as_tuple, need_integral, need_rank, pad_amounts
from slipway.relay.ops.nn.conv import convolve
from slipway.relay.ops.nn.windows import conv_extents, pad_stage
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents
    from slipway.te.tensor import Tensor

ACCUMULATORS = ("int32", "int64")


@node
class IntegerConvAttrs(Attrs):
    """Geometry over height and width; `padding` is top, left, bottom, right."""

    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    pad_value: int = 0
    out_dtype: str = "int32"


def _check(attrs: Any, data: TensorType, weight: TensorType) -> None:
    need_integral("data", data)
    need_integral("weight", weight)
    if attrs.out_dtype not in ACCUMULATORS:
        raise BadArgument("out_dtype", f"is {attrs.out_dtype!r}; sums are int32 or int64")
    if not isinstance(attrs, IntegerConvAttrs) or not any(attrs.padding):
        return
    low, high = dtypes.int_range(data.dtype)
    if not low <= attrs.pad_value <= high:
        raise BadArgument("pad_value", f"is {attrs.pad_value}, which {data.dtype} data cannot hold")


def _extents(attrs: IntegerConvAttrs, data: TensorType, weight: TensorType) -> tuple[int, ...]:
    return conv_extents(
        data.shape[1:3], weight.shape[:2], attrs.strides, attrs.padding, attrs.dilation
    )


def _padded(attrs: IntegerConvAttrs, data: Tensor) -> Any:
    top, left, bottom, right = attrs.padding
    return pad_stage(data, (0, top, left, 0), (0, bottom, right, 0), attrs.pad_value)


def _padded_array(attrs: IntegerConvAttrs, data: Array) -> Any:
    top, left, bottom, right = attrs.padding
    widths = ((0, 0), (top, bottom), (left, right), (0, 0))
    return np.pad(data, widths, constant_values=attrs.pad_value)


CONV2D: OpDefinition = register_op(
    "qnn.conv2d_nhwc", "data", "weight", attrs=IntegerConvAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="Sums of products of stored integers: data (N, H, W, C), weight (kH, kW, C / groups, O).",
)  # fmt: skip


@CONV2D.type_relation
def _conv2d_type(attrs: IntegerConvAttrs, data: TensorType, weight: TensorType) -> Type:
    _check(attrs, data, weight)
    need_rank("data", data, 4)
    need_rank("weight", weight, 4)
    if weight.shape[2] * attrs.groups != data.shape[3] or weight.shape[3] % attrs.groups:
        raise BadArgument(
            "weight",
            f"is {weight}: with {attrs.groups} groups it does not fit the data's channels, {data}",
        )
    height, width = _extents(attrs, data, weight)
    return TensorType((data.shape[0], height, width, weight.shape[3]), attrs.out_dtype)


@CONV2D.reference
def _conv2d_reference(attrs: IntegerConvAttrs, data: Array, weight: Array) -> Any:
    # float64 holds the products of 16 by 8 bits exactly, and BLAS is fast.
    padded = _padded_array(attrs, data).transpose(0, 3, 1, 2).astype(np.float64)
    kernel = weight.transpose(3, 2, 0, 1).astype(np.float64)
    out = convolve(padded, kernel, attrs.strides, (0, 0, 0, 0), attrs.dilation, attrs.groups)
    return np.asarray(out.transpose(0, 2, 3, 1).astype(np.int64).astype(attrs.out_dtype), order="C")


@CONV2D.compute
def _conv2d_compute(
    attrs: IntegerConvAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, weight = inputs
    (out,) = out_types
    padded = _padded(attrs, data)
    kh, kw, per_group, channels = (size_of(d) for d in weight.shape)
    ry, rx, rc = (
        te().reduce_axis((0, extent), name=name)
        for extent, name in ((kh, "ry"), (kw, "rx"), (per_group, "rc"))
    )
    step = channels // attrs.groups
    (sy, sx), (dy, dx) = attrs.strides, attrs.dilation

    def element(n: PrimExpr, y: PrimExpr, x: PrimExpr, c: PrimExpr) -> Any:
        source = rc if attrs.groups == 1 else (c // step) * per_group + rc
        left = padded(n, y * sy + ry * dy, x * sx + rx * dx, source)
        product = left.astype(out.dtype) * weight(ry, rx, rc, c).astype(out.dtype)
        return te().sum(product, axis=[ry, rx, rc])

    return [te().compute(out.shape, element, name="conv", tag="qnn_conv2d_nhwc")]


@CONV2D.flops
def _conv2d_flops(attrs: IntegerConvAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * (ins[1].size // max(ins[1].shape[3], 1))


DEPTHWISE: OpDefinition = register_op(
    "qnn.depthwise_conv2d_nhwc", "data", "weight", attrs=IntegerConvAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="Depthwise sums: data (N, H, W, C), weight (kH, kW, C * M); output channel c reads c // M.",
)  # fmt: skip


@DEPTHWISE.type_relation
def _depthwise_type(attrs: IntegerConvAttrs, data: TensorType, weight: TensorType) -> Type:
    _check(attrs, data, weight)
    need_rank("data", data, 4)
    need_rank("weight", weight, 3)
    if weight.shape[2] % data.shape[3]:
        raise BadArgument("weight", f"is {weight}, no multiple of the data's channels, {data}")
    height, width = _extents(attrs, data, weight)
    return TensorType((data.shape[0], height, width, weight.shape[2]), attrs.out_dtype)


@DEPTHWISE.reference
def _depthwise_reference(attrs: IntegerConvAttrs, data: Array, weight: Array) -> Any:
    padded = _padded_array(attrs, data).transpose(0, 3, 1, 2).astype(np.int64)
    kernel = weight.transpose(2, 0, 1)[:, None].astype(np.int64)
    channels = data.shape[3]
    if channels == 1:  # one group: the general form would take it for a plain convolution
        out = convolve(padded, kernel, attrs.strides, (0, 0, 0, 0), attrs.dilation, 1)
    else:
        out = convolve(padded, kernel, attrs.strides, (0, 0, 0, 0), attrs.dilation, channels)
    return np.asarray(out.transpose(0, 2, 3, 1).astype(attrs.out_dtype), order="C")


@DEPTHWISE.compute
def _depthwise_compute(
    attrs: IntegerConvAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, weight = inputs
    (out,) = out_types
    padded = _padded(attrs, data)
    kh, kw, channels = (size_of(d) for d in weight.shape)
    multiplier = channels // size_of(data.shape[3])
    ry = te().reduce_axis((0, kh), name="ry")
    rx = te().reduce_axis((0, kw), name="rx")
    (sy, sx), (dy, dx) = attrs.strides, attrs.dilation

    def element(n: PrimExpr, y: PrimExpr, x: PrimExpr, c: PrimExpr) -> Any:
        source = c if multiplier == 1 else 0 if multiplier == channels else c // multiplier
        left = padded(n, y * sy + ry * dy, x * sx + rx * dx, source)
        product = left.astype(out.dtype) * weight(ry, rx, c).astype(out.dtype)
        return te().sum(product, axis=[ry, rx])

    return [te().compute(out.shape, element, name="conv", tag="qnn_depthwise_conv2d_nhwc")]


@DEPTHWISE.flops
def _depthwise_flops(attrs: IntegerConvAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * ins[1].shape[0] * ins[1].shape[1]


@node
class IntegerDenseAttrs(Attrs):
    """The dtype of the sums."""

    out_dtype: str = "int32"


DENSE: OpDefinition = register_op(
    "qnn.dense_packed", "data", "weight", attrs=IntegerDenseAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="data @ weight on stored integers: (..., K) with (K, units) gives (..., units).",
)  # fmt: skip


@DENSE.type_relation
def _dense_type(attrs: IntegerDenseAttrs, data: TensorType, weight: TensorType) -> Type:
    _check(attrs, data, weight)
    need_rank("weight", weight, 2)
    if data.rank < 1 or data.shape[-1] != weight.shape[0]:
        raise BadArgument("weight", f"is {weight}: its first axis must be the data's last, {data}")
    return TensorType((*data.shape[:-1], weight.shape[1]), attrs.out_dtype)


@DENSE.reference
def _dense_reference(attrs: IntegerDenseAttrs, data: Array, weight: Array) -> Any:
    product = data.astype(np.float64) @ weight.astype(np.float64)
    return product.astype(np.int64).astype(attrs.out_dtype)


@DENSE.compute
def _dense_compute(
    attrs: IntegerDenseAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, weight = inputs
    (out,) = out_types
    k = te().reduce_axis((0, size_of(weight.shape[0])), name="k")

    def element(*i: PrimExpr) -> Any:
        product = data(*i[:-1], k).astype(out.dtype) * weight(k, i[-1]).astype(out.dtype)
        return te().sum(product, axis=[k])

    return [te().compute(out.shape, element, name="dense", tag="qnn_dense")]


@DENSE.flops
def _dense_flops(attrs: IntegerDenseAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * out.size * ins[1].shape[0]


@CONV2D.make
def conv2d_nhwc(
    data: ExprLike, weight: ExprLike, strides: Extents = (1, 1), padding: Extents = (0, 0, 0, 0),
    dilation: Extents = (1, 1), groups: int = 1, pad_value: int = 0, out_dtype: str = "int32",
) -> Call:  # fmt: skip
    """Sum products of data (N, H, W, C) and weight (kH, kW, C / groups, O)."""
    return CONV2D(
        data, weight, attrs=conv_attrs(strides, padding, dilation, groups, pad_value, out_dtype)
    )


@DEPTHWISE.make
def depthwise_conv2d_nhwc(
    data: ExprLike, weight: ExprLike, strides: Extents = (1, 1), padding: Extents = (0, 0, 0, 0),
    dilation: Extents = (1, 1), pad_value: int = 0, out_dtype: str = "int32",
) -> Call:  # fmt: skip
    """Sum products of each channel of data (N, H, W, C) with weight (kH, kW, C * M)."""
    return DEPTHWISE(
        data, weight, attrs=conv_attrs(strides, padding, dilation, 1, pad_value, out_dtype)
    )


def conv_attrs(
    strides: Extents,
    padding: Extents,
    dilation: Extents,
    groups: int,
    pad_value: int,
    out_dtype: str,
) -> IntegerConvAttrs:
    """Return the attributes with every number a plain int."""
    return IntegerConvAttrs(
        as_tuple(strides, 2, "strides"), pad_amounts(padding, 2),
        as_tuple(dilation, 2, "dilation"), int(groups), int(pad_value), out_dtype,
    )  # fmt: skip


@DENSE.make
def dense_packed(data: ExprLike, weight: ExprLike, out_dtype: str = "int32") -> Call:
    """Multiply data (..., K) by weight (K, units)."""
    return DENSE(data, weight, attrs=IntegerDenseAttrs(out_dtype))


def _case(definition: OpDefinition, data: Any, weight: Any, attrs: Any, kind: str = "int8") -> None:
    definition.sample_case(data, weight, attrs=attrs, dtypes=(kind, "int8"), low=-128, high=127)


_case(
    CONV2D, (1, 7, 6, 3), (3, 3, 3, 8), conv_attrs((1, 1), (1, 1, 1, 1), (1, 1), 1, -128, "int32")
)
_case(CONV2D, (2, 8, 8, 4), (3, 2, 4, 20), conv_attrs((2, 2), (0, 0, 1, 1), (1, 1), 1, 5, "int32"))
_case(
    CONV2D, (1, 5, 5, 16), (1, 1, 16, 32), conv_attrs((1, 1), (0, 0, 0, 0), (1, 1), 1, 0, "int32")
)
_case(CONV2D, (1, 6, 6, 4), (3, 3, 2, 6), conv_attrs((1, 1), (2, 2, 2, 2), (2, 2), 2, 3, "int32"))
_case(CONV2D, (1, 5, 5, 4), (3, 3, 4, 5), IntegerConvAttrs(out_dtype="int64"), "int16")
_case(DEPTHWISE, (1, 7, 7, 8), (3, 3, 8), conv_attrs((1, 1), (1, 1, 1, 1), (1, 1), 1, -7, "int32"))
_case(DEPTHWISE, (1, 8, 8, 3), (3, 3, 6), conv_attrs((2, 2), (0, 0, 1, 1), (1, 1), 1, 4, "int32"))
_case(
    DEPTHWISE, (1, 9, 5, 1), (5, 3, 8), conv_attrs((2, 2), (2, 1, 2, 1), (1, 1), 1, -128, "int32")
)
_case(DEPTHWISE, (1, 5, 5, 4), (3, 3, 4), IntegerConvAttrs(out_dtype="int64"), "int16")
_case(DENSE, (3, 40), (40, 16), IntegerDenseAttrs())
_case(DENSE, (1, 33), (33, 5), IntegerDenseAttrs())
_case(DENSE, (2, 3, 24), (24, 8), IntegerDenseAttrs("int64"), "int16")
