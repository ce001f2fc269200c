"""Integer convolutions whose weights are packed for steps that add several products to each sum.

A step multiplies `depth` neighbouring elements of the data by as many of the weights of each of
`lanes` output channels: pairs of int16, fours of bytes, whose data may be unsigned.  A backend
chooses both.  With o and d for lanes and depth::

    data    (N, H, W, C)
    weight  (O/o, kH, kW, ceil(C/d), o, d)     missing channels are zeros
    result  (N, OH, OW, O)

In several groups the filters of one are whole blocks, and its channels whole steps.
Where the weights are wider than the data, or it has a padding or too few channels, it is copied.
Data of int32 is four unsigned bytes a word, as `qnn.contrib_words` makes them; for a depth of two
the copy takes them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.relay.expr import Call
from slipway.relay.op_registry import BadArgument, OpDefinition, OpPattern, get, register_op
from slipway.relay.ops.checks import need_integral, need_rank
from slipway.relay.ops.nn.windows import conv_extents
from slipway.relay.ops.qnn.conv import IntegerConvAttrs, conv_attrs
from slipway.relay.ops.qnn.words import BYTES, bytes_of
from slipway.relay.ops.tensor.tensors import shape_of, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import ExprLike, Extents
    from slipway.relay.op_registry import Attrs

Array = np.ndarray[Any, Any]

PACKED: OpDefinition = register_op(
    "qnn.contrib_conv2d_packed", "data", "weight", attrs=IntegerConvAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="qnn.conv2d_nhwc with weight (O / o, kH, kW, ceil(C / d), o, d), packed for o sums of d.",
)  # fmt: skip


def pack_weights(weight: Array, lanes: int, depth: int, dtype: str) -> Array:
    """Bring weights (kH, kW, C, O) into the packed order; O is a multiple of `lanes`."""
    kh, kw, channels, out = weight.shape
    full = np.pad(weight, ((0, 0), (0, 0), (0, -channels % depth), (0, 0)))
    parts = full.reshape(kh, kw, -1, depth, out // lanes, lanes).transpose(4, 0, 1, 2, 5, 3)
    return np.asarray(parts.astype(dtype), order="C")


@PACKED.type_relation
def packed_type(attrs: IntegerConvAttrs, data: TensorType, weight: TensorType) -> Type:
    """The data's channels must be those of the weight, less than one step missing."""
    need_integral("data", data)
    need_integral("weight", weight)
    need_rank("data", data, 4)
    need_rank("weight", weight, 6)
    blocks, kh, kw, chunks, lanes, depth = weight.shape
    words = data.dtype == "int32"
    if words and depth != BYTES and (depth, weight.dtype) != (2, "int16"):
        raise BadArgument("weight", f"is {weight}, but a word of data has {BYTES} bytes")
    steps = -(-data.shape[3] * (BYTES if words else 1) // depth)
    if chunks * attrs.groups != steps or blocks % attrs.groups:
        raise BadArgument("weight", f"is {weight}: it does not fit the data's channels, {data}")
    height, width = conv_extents(
        data.shape[1:3], (kh, kw), attrs.strides, attrs.padding, attrs.dilation
    )
    return TensorType((data.shape[0], height, width, blocks * lanes), attrs.out_dtype)


@PACKED.reference
def packed_reference(attrs: IntegerConvAttrs, data: Array, weight: Array) -> Any:
    """The plain convolution with the weights unpacked."""
    blocks, kh, kw, chunks, lanes, depth = weight.shape
    if data.dtype == np.int32:
        data = bytes_of(data)
    plain = weight.transpose(1, 2, 3, 5, 0, 4).reshape(kh, kw, chunks * depth, blocks * lanes)
    return get("qnn.conv2d_nhwc").evaluate(
        attrs, data, plain[:, :, : data.shape[3] // attrs.groups]
    )


def _repeated(byte: int) -> int:
    """Return the word, as int32, of four equal bytes."""
    return int(np.array([byte] * BYTES, np.uint8).view("<i4")[0])


def data_kind(data: str, weight: str) -> str:
    """Return the dtype in which data meets weights: its own, or theirs where that is wider."""
    return weight if dtypes.bits_of(weight) > dtypes.bits_of(data) else data


def copied(attrs: IntegerConvAttrs, data: Any, weight: Any) -> Any:
    """Return the data as the sums read it: with its padding, channels up to whole steps."""
    from slipway.te.hardware import byte_of

    n, height, width, channels = shape_of(data)
    words = data.dtype == "int32"
    apart = words and shape_of(weight)[5] < BYTES
    if apart:
        words, channels = False, channels * BYTES
    full = shape_of(weight)[3] * attrs.groups * (1 if words else shape_of(weight)[5])
    kind = "int16" if apart else data_kind(data.dtype, weight.dtype)
    top, left, bottom, right = attrs.padding
    if kind == data.dtype and full == channels and not any(attrs.padding):
        return data
    fill = te().const(_repeated(attrs.pad_value) if words else attrs.pad_value, kind)

    def element(b: Any, y: Any, x: Any, c: Any) -> Any:
        tests = [
            test
            for needed, test in (
                (top, y >= top), (bottom, y < height + top), (left, x >= left),
                (right, x < width + left),
            )
            if needed
        ]  # fmt: skip
        if apart:
            value = byte_of(data(b, y - top, x - left, te().floordiv(c, BYTES)), c % BYTES)
        else:
            value = data(b, y - top, x - left, c)
        value = value.astype(kind)
        if full > channels:  # nothing to read there
            value = te().if_then_else(c < channels, value, te().const(0, kind))
            fill_here = te().if_then_else(c < channels, fill, te().const(0, kind))
        else:
            fill_here = fill
        return te().if_then_else(te().all(*tests), value, fill_here) if tests else value

    shape = (n, height + top + bottom, width + left + right, full)
    return te().compute(shape, element, name="copied", tag="injective,copy")


def packed_product(
    attrs: IntegerConvAttrs,
    inputs: Sequence[Any],
    out_types: Sequence[Any],
    grouped: bool,
    by_lines: bool = False,
) -> list[Any]:
    """Sums over positions as one axis and blocks of channels, brought to their places.

    With `grouped` they read the data through a stage of its own, (N, kH, kW, OH * OW, C).  With
    `by_lines` positions have two axes, as an image of open size needs: OH, OW for OH * OW.
    """
    from slipway.te.hardware import byte_of

    weight = inputs[1]
    data = copied(attrs, *inputs)
    (out,) = out_types
    n, height, width, _ = out.shape
    blocks, kh, kw, chunks, lanes, depth = shape_of(weight)
    (sy, sx), (dy, dx) = attrs.strides, attrs.dilation
    ky, kx, chunk, part = (
        te().reduce_axis((0, extent), name=name)
        for extent, name in ((kh, "ky"), (kw, "kx"), (chunks, "kc"), (depth, "k"))
    )

    def datum(b: Any, y: Any, x: Any, c: Any, row: Any, column: Any) -> Any:
        """What the position (row, column) is multiplied by at (y, x) of the window."""
        return data(b, row * sy + y * dy, column * sx + x * dx, c)

    positions = (height, width) if by_lines else (height * width,)

    def at(*p: PrimExpr) -> tuple[Any, ...]:
        return p if by_lines else (te().floordiv(p[0], width), te().floormod(p[0], width))

    def gathered(b: Any, y: Any, x: Any, *rest: Any) -> Any:
        *p, c = rest
        return datum(b, y, x, c, *at(*p))

    groups: Any = None
    if grouped:
        groups = te().compute(
            (n, kh, kw, *positions, shape_of(data)[3]), gathered, name="groups",
            tag="packed_groups",
        )  # fmt: skip

    def read(b: Any, c: Any, *p: Any) -> Any:
        if grouped:
            return groups(b, ky, kx, *p, c)
        return datum(b, ky, kx, c, *at(*p))

    def element(b: Any, *rest: Any) -> Any:
        *p, o, lane = rest
        step: Any = chunk
        if attrs.groups > 1:
            step = te().floordiv(o, blocks // attrs.groups) * chunks + chunk
        if data.dtype == "int32":
            left = byte_of(read(b, step, *p), part.var)
        else:
            left = read(b, step * depth + part, *p).astype(out.dtype)
        right = weight(o, ky, kx, chunk, lane, part).astype(out.dtype)
        return te().sum(left * right, axis=[ky, kx, chunk, part])

    shape = (n, *positions, blocks, lanes)
    sums = te().compute(shape, element, name="sums", tag="packed_sums")

    def stored(b: Any, y: Any, x: Any, c: Any) -> Any:
        p = (y, x) if by_lines else (y * width + x,)
        return sums(b, *p, te().floordiv(c, lanes), te().floormod(c, lanes))

    return [te().compute(out.shape, stored, name="conv2d_packed", tag="injective")]


@PACKED.compute
def packed_compute(
    attrs: IntegerConvAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """Sums over positions as one axis and blocks of channels, brought to their places."""
    return packed_product(attrs, inputs, out_types, grouped=False)


@PACKED.flops
def packed_flops(attrs: Attrs | None, ins: Sequence[TensorType], out: TensorType) -> float:
    """Two for each multiply-add."""
    _, _, _, chunks, _, depth = ins[1].shape
    channels = ins[0].shape[3] * (BYTES if ins[0].dtype == "int32" else 1)
    channels = min(channels, chunks * depth)  # those of a group
    return 2.0 * out.size * ins[1].shape[1] * ins[1].shape[2] * channels


@PACKED.work
def packed_work(attrs: Attrs | None, ins: Sequence[TensorType], out: TensorType) -> float:
    """Products of bytes are summed in fours."""
    return packed_flops(attrs, ins, out) / 4


@PACKED.make
def contrib_conv2d_packed(
    data: ExprLike, weight: ExprLike, strides: Extents = (1, 1), padding: Extents = (0, 0, 0, 0),
    dilation: Extents = (1, 1), groups: int = 1, pad_value: int = 0, out_dtype: str = "int32",
) -> Call:  # fmt: skip
    """Sum products of data (N, H, W, C) and packed weights (O/o, kH, kW, ceil(C/d), o, d)."""
    return PACKED(
        data, weight, attrs=conv_attrs(strides, padding, dilation, groups, pad_value, out_dtype)
    )


def _case(
    data: tuple[int, ...], weight: tuple[int, ...], attrs: IntegerConvAttrs, *kinds: str
) -> None:
    PACKED.sample_case(data, weight, attrs=attrs, dtypes=kinds, low=-128, high=127)


_PADDED = IntegerConvAttrs((1, 1), (1, 1, 1, 1), pad_value=-8)
_case((1, 7, 6, 3), (2, 3, 3, 2, 8, 2), _PADDED, "int8", "int16")
_UNEVEN = IntegerConvAttrs((2, 2), (0, 0, 1, 1), pad_value=5)
_case((2, 8, 8, 6), (3, 3, 2, 2, 4, 4), _UNEVEN, "int8", "int8")
_case((2, 8, 8, 6), (3, 3, 2, 2, 16, 4), _UNEVEN, "uint8", "int8")
_case((1, 5, 5, 16), (4, 1, 1, 8, 8, 2), IntegerConvAttrs(), "int8", "int16")
_case((1, 9, 8, 1), (2, 3, 3, 1, 16, 4), _PADDED.replace(pad_value=200), "int32", "int8")
_case((1, 9, 8, 1), (2, 3, 3, 2, 8, 2), _PADDED.replace(pad_value=200), "int32", "int16")
_case((1, 5, 5, 16), (4, 1, 1, 4, 8, 4), IntegerConvAttrs(), "uint8", "int8")
_case((1, 5, 6, 16), (4, 3, 3, 2, 4, 4), _PADDED.replace(groups=2), "int8", "int8")
_case((1, 5, 5, 24), (3, 1, 1, 4, 8, 2), IntegerConvAttrs(groups=3), "int8", "int16")
