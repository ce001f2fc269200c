"""Operators on blocked layouts: layout_transform, and convolutions on NCHW{c}c.

The layout pass puts them in; a blocked channel axis makes the innermost loop of a convolution one
vector long on every target.  Shapes, with ic and oc the block sizes::

    data    (N, IC/ic, H, W, ic)
    kernel  (OC/oc, IC/ic, KH, KW, ic, oc)        depthwise: (C/c, 1, KH, KW, 1, c)
    result  (N, OC/oc, OH, OW, oc)

Data may have more channels than the kernel reads: the last block may be filled up.  The kernel then
has its input channels in smaller blocks, whose size divides that of the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.layout import source_index, transform_array, transform_shape
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, get, register_op
from slipway.relay.ops.checks import as_tuple, need_dtype, need_rank, need_shape, pad_amounts
from slipway.relay.ops.tensors import shape_of, te
from slipway.relay.types import TensorType, Type


@node
class LayoutTransformAttrs(Attrs):
    """Attributes of layout_transform."""

    src_layout: str
    dst_layout: str


LAYOUT_TRANSFORM = register_op(
    "layout_transform", "data", attrs=LayoutTransformAttrs, pattern=OpPattern.INJECTIVE,
    doc="Move a tensor from one layout to another, NCHW to NCHW16c say.",
)  # fmt: skip


@LAYOUT_TRANSFORM.type_relation
def layout_transform_type(attrs: LayoutTransformAttrs, data: TensorType) -> Type:
    """The same elements in the shape of the new layout."""
    try:
        shape = transform_shape(data.shape, attrs.src_layout, attrs.dst_layout)
    except (ValueError, KeyError) as error:
        raise BadArgument(
            "data",
            f"of shape {data.shape} cannot go from {attrs.src_layout} to "
            f"{attrs.dst_layout}: {error}",
        ) from None
    return TensorType(shape, data.dtype)


@LAYOUT_TRANSFORM.reference
def layout_transform_reference(attrs: LayoutTransformAttrs, data: Any) -> Any:
    """Split, transpose and join axes."""
    return transform_array(data, attrs.src_layout, attrs.dst_layout)


@LAYOUT_TRANSFORM.compute
def layout_transform_compute(
    attrs: LayoutTransformAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """Read each element where the old layout has it."""
    (data,) = inputs
    index = source_index(
        attrs.src_layout, attrs.dst_layout, lambda a, b: te().floordiv(a, b),
        lambda a, b: te().floormod(a, b),
    )  # fmt: skip
    shape = out_types[0].shape
    return [
        te().compute(shape, lambda *i: data(*index(*i)), name="T_layout_trans", tag="injective")
    ]


@LAYOUT_TRANSFORM.face
def layout_transform(data: Any, src_layout: str, dst_layout: str) -> Call:
    """Move `data` from `src_layout` to `dst_layout`."""
    return LAYOUT_TRANSFORM(data, attrs=LayoutTransformAttrs(src_layout, dst_layout))


LAYOUT_TRANSFORM.sample_case((1, 8, 3, 5), attrs=LayoutTransformAttrs("NCHW", "NCHW4c"))
LAYOUT_TRANSFORM.sample_case((2, 2, 3, 5, 4), attrs=LayoutTransformAttrs("NCHW4c", "NHWC"))


@node
class BlockedConvAttrs(Attrs):
    """Attributes of the convolutions on NCHW{c}c."""

    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)  # top, left, bottom, right
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    data_layout: str = "NCHW4c"
    kernel_layout: str = "OIHW4i4o"
    out_layout: str = "NCHW4c"
    out_dtype: str = ""


CONV2D_NCHWC = register_op(
    "nn.contrib_conv2d_nchwc", "data", "kernel", attrs=BlockedConvAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="2-D convolution with channels of data, kernel and result in blocks.",
)  # fmt: skip
DEPTHWISE_NCHWC = register_op(
    "nn.contrib_depthwise_conv2d_nchwc", "data", "kernel", attrs=BlockedConvAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="2-D depthwise convolution with channels in blocks.",
)  # fmt: skip


def _spatial(attrs: BlockedConvAttrs, data: TensorType, kernel: TensorType) -> tuple[int, int]:
    """The height and width of the result."""
    top, left, bottom, right = attrs.padding
    extents = []
    for axis, (before, after) in enumerate(((top, bottom), (left, right))):
        window = (kernel.shape[2 + axis] - 1) * attrs.dilation[axis] + 1
        room = data.shape[2 + axis] + before + after - window
        if room < 0:
            raise BadArgument("data", f"of shape {data.shape} is smaller than the kernel's window")
        extents.append(room // attrs.strides[axis] + 1)
    return extents[0], extents[1]


def _output(attrs: BlockedConvAttrs, data: TensorType, kernel: TensorType) -> TensorType:
    height, width = _spatial(attrs, data, kernel)
    shape = (data.shape[0], kernel.shape[0], height, width, kernel.shape[5])
    return TensorType(shape, attrs.out_dtype or data.dtype)


@CONV2D_NCHWC.type_relation
def conv2d_nchwc_type(attrs: BlockedConvAttrs, data: TensorType, kernel: TensorType) -> Type:
    """Channels of data and kernel must agree block by block."""
    need_rank("data", data, 5)
    need_rank("kernel", kernel, 6)
    need_dtype("kernel", kernel, data.dtype, "data")
    chunks, block = kernel.shape[1], kernel.shape[4]
    blocks, rest = divmod(chunks * block, data.shape[4])
    if data.shape[4] % block or blocks + (rest > 0) != data.shape[1]:
        raise BadArgument(
            "kernel",
            f"of shape {kernel.shape} has {chunks} blocks of {block} input channels, which are not "
            f"those of data of shape {data.shape}",
        )
    return _output(attrs, data, kernel)


@DEPTHWISE_NCHWC.type_relation
def depthwise_nchwc_type(attrs: BlockedConvAttrs, data: TensorType, kernel: TensorType) -> Type:
    """One filter for each channel."""
    need_rank("data", data, 5)
    need_rank("kernel", kernel, 6)
    need_dtype("kernel", kernel, data.dtype, "data")
    wanted = (data.shape[1], 1, *kernel.shape[2:4], 1, data.shape[4])
    need_shape("kernel", kernel, wanted, "one filter for each channel of data")
    return _output(attrs, data, kernel)


def _reference(attrs: BlockedConvAttrs, data: Any, kernel: Any) -> Any:
    """The plain convolution of the plain tensors."""
    plain = get("nn.conv2d")
    attrs_type: Any = plain.attrs_type
    conv_attrs = attrs_type(
        strides=attrs.strides, padding=attrs.padding, dilation=attrs.dilation,
        groups=attrs.groups, out_dtype=attrs.out_dtype,
    )  # fmt: skip
    plain_data = transform_array(data, attrs.data_layout, "NCHW")
    plain_kernel = transform_array(kernel, attrs.kernel_layout, "OIHW")
    if attrs.groups == 1:
        plain_data = plain_data[:, : plain_kernel.shape[1]]
    result = plain.evaluate(conv_attrs, plain_data, plain_kernel)
    return transform_array(np.asarray(result), "NCHW", attrs.out_layout)


CONV2D_NCHWC.reference(_reference)
DEPTHWISE_NCHWC.reference(_reference)


def _flops(attrs: BlockedConvAttrs, in_types: Any, out_type: Any) -> float:
    """Two for each multiply-add."""
    kernel = in_types[1].shape
    return float(2 * out_type.size * kernel[1] * kernel[2] * kernel[3] * kernel[4])


CONV2D_NCHWC.flops(_flops)
DEPTHWISE_NCHWC.flops(_flops)


def padded(data: Any, attrs: BlockedConvAttrs) -> Any:
    """Return `data` with its border of zeros; `data` itself when there is none."""
    top, left, bottom, right = attrs.padding
    if not any(attrs.padding):
        return data
    n, c, h, w, block = shape_of(data)

    def read(b: Any, ch: Any, y: Any, x: Any, i: Any) -> Any:
        inside = te().all(y >= top, y < h + top, x >= left, x < w + left)
        zero = te().const(0, data.dtype)
        return te().if_then_else(inside, data(b, ch, y - top, x - left, i), zero)

    shape = (n, c, h + top + bottom, w + left + right, block)
    return te().compute(shape, read, name="data_pad", tag="injective,pad")


def input_channel(data: Any, kernel: Any, chunk: Any, lane: Any) -> tuple[Any, Any]:
    """Return the block and lane of `data` that hold lane `lane` of a kernel's block `chunk`."""
    block, wide = shape_of(kernel)[4], shape_of(data)[-1]
    if block == wide:
        return chunk, lane
    first = chunk * block
    return te().floordiv(first, wide), te().floormod(first, wide) + lane


@CONV2D_NCHWC.compute
def conv2d_nchwc_compute(
    attrs: BlockedConvAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """Sum over the input channels and the window."""
    data, kernel = padded(inputs[0], attrs), inputs[1]
    _, chunks, kh, kw, block, _ = shape_of(kernel)
    (sh, sw), (dh, dw) = attrs.strides, attrs.dilation
    out = out_types[0]
    chunk = te().reduce_axis((0, chunks), name="ic_chunk")
    lane = te().reduce_axis((0, block), name="ic")
    ky = te().reduce_axis((0, kh), name="kh")
    kx = te().reduce_axis((0, kw), name="kw")
    block_of, lane_of = input_channel(data, kernel, chunk, lane)
    return [
        te().compute(
            out.shape,
            lambda n, oc, y, x, ob: te().sum(
                data(n, block_of, y * sh + ky * dh, x * sw + kx * dw, lane_of).astype(out.dtype)
                * kernel(oc, chunk, ky, kx, lane, ob).astype(out.dtype),
                axis=[chunk, ky, kx, lane],
            ),
            name="conv2d_NCHWc",
            tag="conv2d_NCHWc",
        )
    ]


@DEPTHWISE_NCHWC.compute
def depthwise_nchwc_compute(
    attrs: BlockedConvAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """Sum over the window, channel by channel."""
    data, kernel = padded(inputs[0], attrs), inputs[1]
    _, _, kh, kw, _, _ = shape_of(kernel)
    (sh, sw), (dh, dw) = attrs.strides, attrs.dilation
    out = out_types[0]
    ky = te().reduce_axis((0, kh), name="kh")
    kx = te().reduce_axis((0, kw), name="kw")
    return [
        te().compute(
            out.shape,
            lambda n, c, y, x, cb: te().sum(
                data(n, c, y * sh + ky * dh, x * sw + kx * dw, cb).astype(out.dtype)
                * kernel(c, 0, ky, kx, 0, cb).astype(out.dtype),
                axis=[ky, kx],
            ),
            name="depthwise_conv2d_NCHWc",
            tag="depthwise_conv2d_NCHWc",
        )
    ]


def _attrs(
    strides: Any, padding: Any, dilation: Any, groups: int, layouts: tuple[str, str, str],
    out_dtype: str,
) -> BlockedConvAttrs:  # fmt: skip
    make: Any = BlockedConvAttrs  # the helpers give tuples of any length
    made: BlockedConvAttrs = make(
        as_tuple(strides, 2, "strides"), pad_amounts(padding, 2), as_tuple(dilation, 2, "dilation"),
        groups, *layouts, out_dtype,
    )  # fmt: skip
    return made


@CONV2D_NCHWC.face
def contrib_conv2d_nchwc(
    data: Any, kernel: Any, strides: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCHW8c",
    kernel_layout: str = "OIHW8i8o", out_layout: str = "", out_dtype: str = "",
) -> Call:  # fmt: skip
    """2-D convolution on blocked tensors; `channels` and `kernel_size` follow from `kernel`."""
    layouts = (data_layout, kernel_layout, out_layout or data_layout)
    return CONV2D_NCHWC(
        data, kernel, attrs=_attrs(strides, padding, dilation, groups, layouts, out_dtype)
    )


@DEPTHWISE_NCHWC.face
def contrib_depthwise_conv2d_nchwc(
    data: Any, kernel: Any, strides: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    channels: int | None = None, kernel_size: Any = None, data_layout: str = "NCHW8c",
    kernel_layout: str = "OIHW1i8o", out_layout: str = "", out_dtype: str = "",
) -> Call:  # fmt: skip
    """2-D depthwise convolution on blocked tensors; `groups` is the number of channels."""
    layouts = (data_layout, kernel_layout, out_layout or data_layout)
    return DEPTHWISE_NCHWC(
        data, kernel, attrs=_attrs(strides, padding, dilation, groups, layouts, out_dtype)
    )


CONV2D_NCHWC.sample_case(
    (1, 2, 6, 7, 4), (3, 2, 3, 3, 4, 4),
    attrs=BlockedConvAttrs(padding=(1, 1, 1, 1), strides=(2, 1)),
)  # fmt: skip
CONV2D_NCHWC.sample_case(
    (2, 1, 5, 5, 3), (2, 1, 1, 1, 3, 8),
    attrs=BlockedConvAttrs(data_layout="NCHW3c", kernel_layout="OIHW3i8o", out_layout="NCHW8c"),
)  # fmt: skip
CONV2D_NCHWC.sample_case(
    (1, 2, 5, 6, 8), (2, 3, 3, 3, 4, 4),
    attrs=BlockedConvAttrs(data_layout="NCHW8c", kernel_layout="OIHW4i4o", out_layout="NCHW4c"),
)  # fmt: skip
DEPTHWISE_NCHWC.sample_case(
    (1, 2, 6, 7, 4), (2, 1, 3, 3, 1, 4),
    attrs=BlockedConvAttrs(
        padding=(1, 1, 1, 1), groups=8, data_layout="NCHW4c", kernel_layout="OIHW1i4o"
    ),
)  # fmt: skip


@node
class DensePackAttrs(Attrs):
    """Attributes of nn.contrib_dense_pack."""

    out_dtype: str = ""


DENSE_PACK = register_op(
    "nn.contrib_dense_pack", "data", "weight", attrs=DensePackAttrs,
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="data @ weight.T, the weight in blocks of units: (M, K) with (N/n, K, n) gives (M, N).",
)  # fmt: skip


@DENSE_PACK.type_relation
def dense_pack_type(attrs: DensePackAttrs, data: TensorType, weight: TensorType) -> Type:
    """The depth of data and weight must agree."""
    need_rank("data", data, 2)
    need_rank("weight", weight, 3)
    need_dtype("weight", weight, data.dtype, "data")
    blocks, _, block = weight.shape
    need_shape("weight", weight, (blocks, data.shape[1], block), "depth as in data")
    return TensorType((data.shape[0], blocks * block), attrs.out_dtype or data.dtype)


@DENSE_PACK.reference
def dense_pack_reference(attrs: DensePackAttrs, data: Any, weight: Any) -> Any:
    """The plain product with the plain weight."""
    plain = weight.transpose(0, 2, 1).reshape(-1, weight.shape[1])
    dtype = attrs.out_dtype or data.dtype
    return data.astype(dtype) @ plain.T.astype(dtype)


@DENSE_PACK.compute
def dense_pack_compute(
    attrs: DensePackAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """Sum over the depth."""
    data, weight = inputs
    out = out_types[0]
    _, depth, block = shape_of(weight)
    k = te().reduce_axis((0, depth), name="k")
    return [
        te().compute(
            out.shape,
            lambda m, n: te().sum(
                data(m, k).astype(out.dtype)
                * weight(te().floordiv(n, block), k, te().floormod(n, block)).astype(out.dtype),
                axis=[k],
            ),
            name="T_dense_pack",
            tag="dense_pack",
        )
    ]


@DENSE_PACK.flops
def dense_pack_flops(attrs: DensePackAttrs, in_types: Any, out_type: Any) -> float:
    """Two for each multiply-add."""
    return float(2 * out_type.size * in_types[0].shape[1])


@DENSE_PACK.face
def contrib_dense_pack(data: Any, weight: Any, out_dtype: str = "") -> Call:
    """Matrix product with a weight in blocks of units."""
    return DENSE_PACK(data, weight, attrs=DensePackAttrs(out_dtype))


DENSE_PACK.sample_case((3, 7), (2, 7, 4))
