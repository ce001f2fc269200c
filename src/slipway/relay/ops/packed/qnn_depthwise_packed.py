"""Integer depthwise convolutions whose weights are packed by fours of taps.

A step adds the products of `d` neighbouring taps of a row to the sum of each channel; a backend
chooses `d`.  With G = ceil(kW / d) of these steps a row, the first d * G elements of the data hold
the windows of R neighbouring results, which start one stride apart; the weights of a result that
starts later begin with zeros::

    data    (N, H, W, C)
    weight  (kH, G, R, C, d)      R = (d * G - kW) / stride + 1, rounded down
    result  (N, OH, OW, C)

So R results share the data of a step.  The data is copied with its padding, as wide as steps reach,
in the weight's dtype where that is wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import is_open
from slipway.relay.expr import Call
from slipway.relay.op_registry import BadArgument, OpDefinition, OpPattern, get, register_op
from slipway.relay.ops.checks import as_tuple, need_integral, need_rank, need_window, pad_amounts
from slipway.relay.ops.nn.windows import conv_extents, pad_stage
from slipway.relay.ops.packed.qnn_packed import data_kind
from slipway.relay.ops.qnn.conv import IntegerConvAttrs
from slipway.relay.ops.tensor.tensors import shape_of, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import ExprLike, Extents

Array = np.ndarray[Any, Any]


@node
class PackedDepthwiseAttrs(IntegerConvAttrs):
    """Geometry, and the width of the window, which the packed weights do not tell."""

    window: int = 1


PACKED: OpDefinition = register_op(
    "qnn.contrib_depthwise_packed", "data", "weight", attrs=PackedDepthwiseAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="qnn.depthwise_conv2d_nhwc with weight (kH, G, R, C, d), packed for steps of d taps.",
)  # fmt: skip


def together(window: int, stride: int, depth: int) -> int:
    """Return how many neighbouring results the data of one row of steps holds."""
    return (-(-window // depth) * depth - window) // stride + 1


def pack_weights(weight: Array, stride: int, depth: int, results: int) -> Array:
    """Bring weights (kH, kW, C) into the packed order, for `results` that share data."""
    kh, kw, channels = weight.shape
    steps = -(-kw // depth)
    rows = np.zeros((kh, results, steps * depth, channels), weight.dtype)
    for r in range(results):
        rows[:, r, r * stride : r * stride + kw] = weight
    parts = rows.reshape(kh, results, steps, depth, channels).transpose(0, 2, 1, 4, 3)
    return np.asarray(parts, order="C")


@PACKED.type_relation
def packed_type(attrs: PackedDepthwiseAttrs, data: TensorType, weight: TensorType) -> Type:
    """The channels of data and weight agree."""
    need_window(attrs, 2)
    need_integral("data", data)
    need_integral("weight", weight)
    need_rank("data", data, 4)
    need_rank("weight", weight, 5)
    kh, steps, results, channels, depth = weight.shape
    most = together(attrs.window, attrs.strides[1], depth)
    if channels != data.shape[3] or steps * depth < attrs.window or not 1 <= results <= most:
        raise BadArgument("weight", f"is {weight}: it does not fit the data, {data}, or the window")
    if tuple(attrs.dilation) != (1, 1):
        raise BadArgument("dilation", f"is {attrs.dilation}; packed taps are neighbours")
    height, width = conv_extents(
        data.shape[1:3], (kh, attrs.window), attrs.strides, attrs.padding, attrs.dilation
    )
    return TensorType((data.shape[0], height, width, channels), attrs.out_dtype)


@PACKED.reference
def packed_reference(attrs: PackedDepthwiseAttrs, data: Array, weight: Array) -> Any:
    """The plain convolution with the weights of the first of the results together."""
    kh, steps, _, channels, depth = weight.shape
    plain = weight[:, :, 0].transpose(0, 1, 3, 2).reshape(kh, steps * depth, channels)
    return get("qnn.depthwise_conv2d_nhwc").evaluate(attrs, data, plain[:, : attrs.window])


@PACKED.compute
def packed_compute(
    attrs: PackedDepthwiseAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """Sums over rows of the window and steps of taps."""
    data, weight = inputs
    (out,) = out_types
    kh, steps, results, _, depth = shape_of(weight)
    (sy, sx), (top, left, bottom, right) = attrs.strides, attrs.padding
    width = out.shape[2]
    # What the steps of the last results read beyond the image; of an open one as much as it can be.
    beyond = right + steps * depth - attrs.window + (results - 1) * sx
    if not (is_open(width) or is_open(shape_of(data)[2])):
        reach = (-(-width // results) - 1) * results * sx + steps * depth
        beyond = max(right, reach - shape_of(data)[2] - left)
    kind = data_kind(data.dtype, weight.dtype)
    if kind != data.dtype:
        given = data
        data = te().compute(
            shape_of(given), lambda *i: given(*i).astype(kind), name="wide", tag="injective"
        )
    padded = pad_stage(data, (0, top, left, 0), (0, bottom, beyond, 0), attrs.pad_value)
    ky, step, tap = (
        te().reduce_axis((0, extent), name=name)
        for extent, name in ((kh, "ky"), (steps, "step"), (depth, "tap"))
    )

    def element(b: PrimExpr, y: PrimExpr, x: PrimExpr, c: PrimExpr) -> Any:
        first, own = (x * sx, 0) if results == 1 else (
            te().floordiv(x, results) * (results * sx), te().floormod(x, results))  # fmt: skip
        value = padded(b, y * sy + ky, first + step * depth + tap, c).astype(out.dtype)
        return te().sum(
            value * weight(ky, step, own, c, tap).astype(out.dtype), axis=[ky, step, tap]
        )

    return [te().compute(out.shape, element, name="sums", tag="packed_depthwise")]


@PACKED.flops
def packed_flops(attrs: PackedDepthwiseAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    """Two for each multiply-add of the window."""
    return 2.0 * out.size * ins[1].shape[0] * attrs.window


@PACKED.work
def packed_work(attrs: PackedDepthwiseAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    """Products of bytes are summed in fours."""
    return packed_flops(attrs, ins, out) / 4


@PACKED.make
def contrib_depthwise_packed(
    data: ExprLike,
    weight: ExprLike,
    window: int,
    strides: Extents = (1, 1),
    padding: Extents = (0, 0, 0, 0),
    pad_value: int = 0,
    out_dtype: str = "int32",
) -> Call:
    """Sum products of data (N, H, W, C) and packed weights (kH, G, R, C, d), a channel each."""
    attrs = PackedDepthwiseAttrs(
        as_tuple(strides, 2, "strides"),
        pad_amounts(padding, 2),
        (1, 1),
        1,
        pad_value,
        out_dtype,
        window,
    )
    return PACKED(data, weight, attrs=attrs)


def _case(
    data: tuple[int, ...], kh: int, window: int, attrs: tuple[Any, ...], results: int
) -> None:
    def make(rng: np.random.Generator) -> Any:
        plain = rng.integers(-128, 128, (kh, window, data[3])).astype("int8")
        packed = pack_weights(plain, attrs[0][1], 4, results)
        return [rng.integers(0, 256, data).astype("uint8"), packed]

    kind = PackedDepthwiseAttrs(attrs[0], attrs[1], (1, 1), 1, 9, "int32", window)
    shape = (kh, -(-window // 4), results, data[3], 4)
    PACKED.sample_case(data, shape, attrs=kind, dtypes=("uint8", "int8"), make=make)


_case((1, 6, 8, 70), 3, 3, ((1, 1), (1, 1, 1, 1)), 2)
_case((2, 7, 9, 35), 3, 3, ((2, 2), (0, 0, 1, 1)), 1)
_case((1, 9, 9, 64), 5, 5, ((2, 2), (2, 2, 2, 2)), 1)
