"""Convolutions on blocked channels: NC{spatial}{c}c, over one, two or three spatial axes.

The layout pass puts them in.  Shapes, with ic and oc the block sizes, for two axes::

    data    (N, C/c, H, W, c)
    kernel  (OC/oc, IC/ic, KH, KW, ic, oc)        depthwise: (C/c, 1, KH, KW, 1, c)
    result  (N, OC/oc, OH, OW, oc)

IC are the input channels of one group; a group's filters are whole blocks.  Data may have more
channels than the kernel reads: the last block may be padded.  The kernel then has its input
channels in smaller blocks, whose size divides that of the data; so it has in groups whose channels
are no whole blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.layout import parse_layout, transform_array
from slipway.relay.op_registry import (
    Attrs,
    BadArgument,
    OpDefinition,
    OpPattern,
    as_expr,
    get,
    register_op,
)
from slipway.relay.ops.build import implied
from slipway.relay.ops.checks import as_tuple, need_dtype, need_rank, need_shape, pad_amounts
from slipway.relay.ops.nn.windows import SPATIAL, conv_extents, pad_stage
from slipway.relay.ops.tensor.tensors import shape_of, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import IterVar, PrimExpr
    from slipway.relay.expr import Array, Expr, ExprLike, Extents
    from slipway.te.tensor import Tensor


@node
class BlockedConvAttrs(Attrs):
    """Attributes of the convolutions on blocked channels; padding all before, then all after."""

    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    data_layout: str = "NCHW4c"
    kernel_layout: str = "OIHW4i4o"
    out_layout: str = "NCHW4c"
    out_dtype: str = ""


def _output(attrs: BlockedConvAttrs, data: TensorType, kernel: TensorType) -> TensorType:
    extents = conv_extents(
        data.shape[2:-1], kernel.shape[2:-2], attrs.strides, attrs.padding, attrs.dilation
    )
    shape = (data.shape[0], kernel.shape[0], *extents, kernel.shape[-1])
    return TensorType(shape, attrs.out_dtype or data.dtype)


def _check_ranks(attrs: BlockedConvAttrs, data: TensorType, kernel: TensorType) -> None:
    count = len(attrs.strides)
    need_rank("data", data, count + 3)
    need_rank("kernel", kernel, count + 4)
    need_dtype("kernel", kernel, data.dtype, "data")


def conv_type(attrs: BlockedConvAttrs, data: TensorType, kernel: TensorType) -> Type:
    """Channels of data and kernel must agree block by block."""
    _check_ranks(attrs, data, kernel)
    chunks, block, wide = kernel.shape[1], kernel.shape[-2], data.shape[-1]
    blocks, remainder = divmod(chunks * attrs.groups * block, wide)
    if wide % block or blocks + (remainder > 0) != data.shape[1] or kernel.shape[0] % attrs.groups:
        raise BadArgument(
            "kernel",
            f"of shape {kernel.shape} has {chunks} blocks of {block} input channels in each of "
            f"{attrs.groups} groups, which are not those of data of shape {data.shape}",
        )
    return _output(attrs, data, kernel)


def depthwise_type(attrs: BlockedConvAttrs, data: TensorType, kernel: TensorType) -> Type:
    """One filter for each channel."""
    _check_ranks(attrs, data, kernel)
    wanted = (data.shape[1], 1, *kernel.shape[2:-2], 1, data.shape[-1])
    need_shape("kernel", kernel, wanted, "one filter for each channel of data")
    return _output(attrs, data, kernel)


def conv_reference(attrs: BlockedConvAttrs, data: Array, kernel: Array) -> Any:
    """The plain convolution of the plain tensors."""
    count = len(attrs.strides)
    layout, kernel_layout = "NC" + SPATIAL[count], "OI" + SPATIAL[count]
    plain = get(f"nn.conv{count}d")
    attrs_type: Any = plain.attrs_type
    conv_attrs = attrs_type(
        strides=attrs.strides, padding=attrs.padding, dilation=attrs.dilation,
        groups=attrs.groups, data_layout=layout, kernel_layout=kernel_layout,
        out_dtype=attrs.out_dtype,
    )  # fmt: skip
    plain_data = transform_array(data, attrs.data_layout, layout)
    plain_kernel = transform_array(kernel, attrs.kernel_layout, kernel_layout)
    plain_data = plain_data[:, : plain_kernel.shape[1] * attrs.groups]
    result = plain.evaluate(conv_attrs, plain_data, plain_kernel)
    return transform_array(np.asarray(result), layout, attrs.out_layout)


def _flops(attrs: BlockedConvAttrs, in_types: Sequence[TensorType], out_type: TensorType) -> float:
    """Two for each multiply-add."""
    kernel = in_types[1].shape
    return float(2 * out_type.size * np.prod(kernel[1:-1]))


def padded(data: Any, attrs: BlockedConvAttrs) -> Any:
    """Return `data` with its padding of zeros; `data` itself when there is none."""
    count = len(attrs.padding) // 2
    before = (0, 0, *attrs.padding[:count], 0)
    after = (0, 0, *attrs.padding[count:], 0)
    return pad_stage(data, before, after, 0, name="data_pad")


def input_channel(
    data: Tensor, kernel: Tensor, chunk: PrimExpr | IterVar, lane: Any
) -> tuple[Any, Any]:
    """Return the block and lane of `data` that hold lane `lane` of a kernel's block `chunk`.

    `chunk` counts those of all groups.
    """
    block, wide = shape_of(kernel)[-2], shape_of(data)[-1]
    if block == wide:
        return chunk, lane
    first = chunk * block
    return te().floordiv(first, wide), te().floormod(first, wide) + lane


def chunk_of(kernel: Any, groups: int, filters: PrimExpr, chunk: Any) -> Any:
    """Return the block of input channels among those of all groups, for a block of filters."""
    if groups == 1:
        return chunk
    blocks, chunks, *_ = shape_of(kernel)
    return te().floordiv(filters, blocks // groups) * chunks + chunk


def taps_of(kernel: Tensor) -> list[Any]:
    """Return one reduction axis for each axis of the window."""
    window = shape_of(kernel)[2:-2]
    return [
        te().reduce_axis((0, k), name=f"k{letter.lower()}")
        for k, letter in zip(window, SPATIAL[len(window)], strict=True)
    ]


def read_at(at: Sequence[Any], taps: Sequence[Any], attrs: BlockedConvAttrs) -> list[Any]:
    """Return where in the padded data the window at `at` has its tap `taps`."""
    return [
        i * stride + tap * step
        for i, tap, stride, step in zip(at, taps, attrs.strides, attrs.dilation, strict=True)
    ]


def conv_compute(
    attrs: BlockedConvAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """Sum over the input channels of the group and the window."""
    data, kernel = padded(inputs[0], attrs), inputs[1]
    _, chunks, *_, block, _ = shape_of(kernel)
    out = out_types[0]
    chunk = te().reduce_axis((0, chunks), name="ic_chunk")
    lane = te().reduce_axis((0, block), name="ic")
    taps = taps_of(kernel)

    def element(n: PrimExpr, oc: PrimExpr, *rest: PrimExpr) -> Any:
        *at, ob = rest
        whole = chunk_of(kernel, attrs.groups, oc, chunk)
        block_of, lane_of = input_channel(data, kernel, whole, lane)
        return te().sum(
            data(n, block_of, *read_at(at, taps, attrs), lane_of).astype(out.dtype)
            * kernel(oc, chunk, *taps, lane, ob).astype(out.dtype),
            axis=[chunk, *taps, lane],
        )

    return [te().compute(out.shape, element, name="conv_blocked", tag="conv_blocked")]


def depthwise_compute(
    attrs: BlockedConvAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    """Sum over the window, channel by channel."""
    data, kernel = padded(inputs[0], attrs), inputs[1]
    out = out_types[0]
    taps = taps_of(kernel)

    def element(n: PrimExpr, c: PrimExpr, *rest: PrimExpr) -> Any:
        *at, cb = rest
        return te().sum(
            data(n, c, *read_at(at, taps, attrs), cb).astype(out.dtype)
            * kernel(c, 0, *taps, 0, cb).astype(out.dtype),
            axis=taps,
        )

    return [te().compute(out.shape, element, name="depthwise_blocked", tag="depthwise_blocked")]


def _check_named(kernel: TensorType, channels: int | None, kernel_size: Any) -> None:
    """Compare the kernel with what `channels` and `kernel_size` say of it."""
    if kernel.rank < 5:
        return  # the type relation says what is wrong with it
    filters, size = kernel.shape[0] * kernel.shape[-1], kernel.shape[2:-2]
    if channels is not None and int(channels) != filters:
        raise BadArgument("channels", f"is {channels}, but the kernel makes {filters}")
    if kernel_size is not None and as_tuple(kernel_size, len(size), "kernel_size") != size:
        raise BadArgument("kernel_size", f"is {kernel_size}, but the kernel's is {size}")


def _take_type(
    kernel: Expr, data: Expr, channels: int, window: tuple[int, ...], groups: int, layout: str
) -> None:
    """Give a kernel variable without a type the one that its filters and its window say."""
    given = data.tensor_type
    inner, outer = (axis.block for axis in parse_layout(layout).axes[-2:])
    if given.rank != len(window) + 3 or not inner or not outer or channels % outer:
        return  # as the type rule tells of a kernel that has a type
    depth = given.shape[1] * given.shape[-1] // groups
    shape = (channels // outer, max(depth // inner, 1), *window, inner, outer)
    implied(kernel, shape, given.dtype)


def _register(count: int, depthwise: bool) -> OpDefinition:
    layout, kind = "NC" + SPATIAL[count], "depthwise_conv" if depthwise else "conv"
    definition = register_op(
        f"nn.contrib_{kind}{count}d_nchwc", "data", "kernel", attrs=BlockedConvAttrs,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        doc=f"{count}-D {'depthwise ' if depthwise else ''}convolution with channels in blocks.",
    )  # fmt: skip
    definition.type_relation(depthwise_type if depthwise else conv_type)
    definition.reference(conv_reference)
    definition.flops(_flops)
    definition.compute(depthwise_compute if depthwise else conv_compute)
    kernel_letters = "OI" + SPATIAL[count]
    inner = "1i8o" if depthwise else "8i8o"

    @definition.make
    def make(
        data: ExprLike, kernel: ExprLike, strides: Extents = 1, padding: Extents = 0,
        dilation: Extents = 1, groups: int = 1, channels: int | None = None,
        kernel_size: Extents | None = None, data_layout: str = layout + "8c",
        kernel_layout: str = kernel_letters + inner,
        out_layout: str = "", out_dtype: str = "",
    ) -> Call:  # fmt: skip
        kernel = as_expr(kernel)
        if kernel.type is not None:
            _check_named(kernel.tensor_type, channels, kernel_size)
        elif channels is not None and kernel_size is not None:
            window = as_tuple(kernel_size, count, "kernel_size")
            _take_type(kernel, as_expr(data), int(channels), window, groups, kernel_layout)
        attrs = BlockedConvAttrs(
            as_tuple(strides, count, "strides"),
            pad_amounts(padding, count),
            as_tuple(dilation, count, "dilation"),
            groups,
            data_layout,
            kernel_layout,
            out_layout or data_layout,
            out_dtype,
        )
        return definition(data, kernel, attrs=attrs)

    make.__name__, make.__doc__ = definition.name.removeprefix("nn."), definition.doc
    return definition


def _case(
    definition: OpDefinition, data: Any, kernel: Any, groups: int = 1, **more: Any
) -> None:  # fmt: skip
    count = len(data) - 3
    letters, zeros = SPATIAL[count], (0,) * count
    attrs = BlockedConvAttrs(
        more.get("strides", (1,) * count), more.get("padding", zeros * 2), (1,) * count, groups,
        f"NC{letters}{data[-1]}c", f"OI{letters}{kernel[-2]}i{kernel[-1]}o",
        f"NC{letters}{kernel[-1]}c",
    )  # fmt: skip
    definition.sample_case(data, kernel, attrs=attrs)


CONV1D_NCHWC, CONV2D_NCHWC, CONV3D_NCHWC = (_register(n, False) for n in (1, 2, 3))
DEPTHWISE1D_NCHWC, DEPTHWISE2D_NCHWC, DEPTHWISE3D_NCHWC = (_register(n, True) for n in (1, 2, 3))
contrib_conv1d_nchwc: Any = CONV1D_NCHWC.make_function
contrib_conv2d_nchwc: Any = CONV2D_NCHWC.make_function
contrib_conv3d_nchwc: Any = CONV3D_NCHWC.make_function
contrib_depthwise_conv1d_nchwc: Any = DEPTHWISE1D_NCHWC.make_function
contrib_depthwise_conv2d_nchwc: Any = DEPTHWISE2D_NCHWC.make_function
contrib_depthwise_conv3d_nchwc: Any = DEPTHWISE3D_NCHWC.make_function

_case(CONV1D_NCHWC, (1, 2, 9, 4), (3, 2, 3, 4, 4), padding=(2, 0))
_case(CONV2D_NCHWC, (1, 2, 6, 7, 4), (3, 2, 3, 3, 4, 4), padding=(1, 1, 1, 1), strides=(2, 1))
_case(CONV2D_NCHWC, (2, 1, 5, 5, 3), (2, 1, 1, 1, 3, 8))
_case(CONV2D_NCHWC, (1, 2, 5, 6, 8), (2, 3, 3, 3, 4, 4))
_case(CONV2D_NCHWC, (1, 2, 5, 6, 8), (4, 2, 3, 3, 4, 4), groups=2)
_case(CONV3D_NCHWC, (1, 2, 4, 5, 5, 4), (2, 2, 2, 3, 3, 4, 4), padding=(1, 1, 1, 0, 1, 1))
_case(DEPTHWISE1D_NCHWC, (1, 2, 9, 4), (2, 1, 3, 1, 4), groups=8)
_case(DEPTHWISE2D_NCHWC, (1, 2, 6, 7, 4), (2, 1, 3, 3, 1, 4), groups=8, padding=(1, 1, 1, 1))
_case(DEPTHWISE3D_NCHWC, (1, 2, 4, 5, 5, 4), (2, 1, 2, 3, 3, 1, 4), groups=8)
