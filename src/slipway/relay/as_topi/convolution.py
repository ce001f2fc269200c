"""``topi.nn``: the convolutions that graphs have, over te tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.relay import op_registry
from slipway.relay.ops.image import regions
from slipway.relay.over_tensors import over_tensors
from slipway.topi.nn.windows import sides
from slipway.topi.transform import transpose
from slipway.topi.utils import get_const_int, need_rank

if TYPE_CHECKING:
    from slipway.relay.expr import Extents
    from slipway.te.tensor import Tensor


def over_nn(name: str) -> Any:
    """Return an operator of relay.nn over te tensors."""
    return over_tensors(op_registry.make(f"nn.{name}"))


def _transposed(
    count: int, data: Any, kernel: Any, strides: Any, padding: Any, out_dtype: str | None,
    output_padding: Any, groups: int = 1,
) -> Any:  # fmt: skip
    edges = _edges(padding, kernel.shape[2:])
    return over_nn(f"conv{count}d_transpose")(
        data, kernel, strides=as_many(strides, count), padding=edges, groups=groups,
        output_padding=as_many(output_padding, count), out_dtype=out_dtype or "",
    )  # fmt: skip


def _edges(padding: Extents | str, window: Sequence[Any], dilation: Extents = 1) -> tuple[int, ...]:
    """Return the padding before and after each axis of a window: numbers, "SAME" or "VALID"."""
    steps = as_many(dilation, len(window))
    sizes = [(get_const_int(n) - 1) * step + 1 for n, step in zip(window, steps, strict=True)]
    given: Any = padding
    before, after = sides(given, sizes)
    return (*before, *after)


def as_many(value: Any, count: int) -> tuple[int, ...]:
    """Return `count` numbers: those given, or one number for all."""
    return (int(value),) * count if isinstance(value, int) else tuple(int(v) for v in value)


def conv1d_transpose_ncw(
    data: Tensor,
    kernel: Tensor,
    stride: Extents,
    padding: Extents | str,
    out_dtype: str | None,
    output_padding: Extents,
) -> Any:
    """Convolve sequences transposed; the kernel is (I, O, KW)."""
    return _transposed(1, data, kernel, stride, padding, out_dtype, output_padding)


def conv2d_transpose_nchw(
    Input: Tensor,
    Filter: Tensor,
    strides: Extents,
    padding: Extents | str,
    out_dtype: str | None,
    output_padding: Extents,
) -> Any:
    """Convolve images transposed; the kernel is (I, O, KH, KW)."""
    return _transposed(2, Input, Filter, strides, padding, out_dtype, output_padding)


def group_conv2d_transpose_nchw(
    data: Tensor, kernel: Tensor, stride: Extents, padding: Extents | str, out_dtype: str | None,
    output_padding: Extents, groups: int,
) -> Any:  # fmt: skip
    """Convolve images transposed, in groups of channels."""
    return _transposed(2, data, kernel, stride, padding, out_dtype, output_padding, groups)


def conv3d_transpose_ncdhw(
    Input: Tensor,
    Filter: Tensor,
    strides: Extents,
    padding: Extents | str,
    out_dtype: str | None,
    output_padding: Extents,
) -> Any:
    """Convolve volumes transposed; the kernel is (I, O, KD, KH, KW)."""
    return _transposed(3, Input, Filter, strides, padding, out_dtype, output_padding)


def group_conv1d_ncw(
    data: Tensor,
    kernel: Tensor,
    strides: Extents = 1,
    padding: Extents | str = "VALID",
    dilation: Extents = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Any:
    """Convolve sequences in groups of channels."""
    pads = _edges(padding, kernel.shape[2:], dilation)
    return over_nn("conv1d")(
        data, kernel, strides, pads, dilation, groups, out_dtype=out_dtype or ""
    )


def group_conv1d_nwc(
    data: Tensor,
    kernel: Tensor,
    strides: Extents = 1,
    padding: Extents | str = "VALID",
    dilation: Extents = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Any:
    """Convolve sequences with the channels last in groups."""
    pads = _edges(padding, kernel.shape[:1], dilation)
    return over_nn("conv1d")(
        data, kernel, strides, pads, dilation, groups, data_layout="NWC", kernel_layout="WIO",
        out_dtype=out_dtype or "",
    )  # fmt: skip


def conv2d_NCHWc(
    data: Tensor,
    kernel: Tensor,
    stride: Extents,
    padding: Extents | str,
    dilation: Extents,
    layout: str,
    out_layout: str,
    out_dtype: str = "float32",
) -> Any:
    """Convolve images in blocks of channels; the kernel is OIHW in blocks of both, (…, i, o)."""
    need_rank("the kernel of conv2d_NCHWc", kernel, 6)
    edges = _edges(padding, kernel.shape[2:4], dilation)
    return over_nn("contrib_conv2d_nchwc")(
        data, kernel, stride, edges, dilation, data_layout=layout, out_layout=out_layout,
        kernel_layout=f"OIHW{kernel.shape[4]}i{kernel.shape[5]}o", out_dtype=out_dtype,
    )  # fmt: skip


def conv2d_NCHWc_int8(
    data: Tensor,
    kernel: Tensor,
    stride: Extents,
    padding: Extents | str,
    dilation: Extents,
    layout: str,
    out_layout: str,
    out_dtype: str = "int32",
    n_elems: int = 4,
) -> Any:
    """Convolve bytes in blocks of channels; the kernel is (O, I, KH, KW, i / n, o, n)."""
    edges = _edges(padding, kernel.shape[2:4], dilation)

    def convolve(data: Any, kernel: Any) -> Any:
        make = op_registry.make
        outer, inner, high, wide, parts, units, last = kernel.tensor_type.shape
        moved = make("transpose")(kernel, (0, 1, 2, 3, 4, 6, 5))
        joined = make("reshape")(moved, (outer, inner, high, wide, parts * last, units))
        return make("nn.contrib_conv2d_nchwc")(
            make("cast")(data, out_dtype), make("cast")(joined, out_dtype), stride, edges,
            dilation, data_layout=layout, out_layout=out_layout,
            kernel_layout=f"OIHW{parts * last}i{units}o", out_dtype=out_dtype,
        )  # fmt: skip

    return over_tensors(convolve)(data, kernel)


def depthwise_conv2d_NCHWc(
    Input: Tensor,
    Filter: Tensor,
    stride: Extents,
    padding: Extents | str,
    dilation: Extents,
    in_layout: str,
    out_layout: str,
    out_dtype: str | None = None,
) -> Any:
    """Convolve each channel by itself, in blocks; the kernel is (O, 1, KH, KW, 1, o)."""
    channels = get_const_int(Filter.shape[0]) * get_const_int(Filter.shape[5])
    edges = _edges(padding, Filter.shape[2:4], dilation)
    return over_nn("contrib_depthwise_conv2d_nchwc")(
        Input, Filter, stride, edges, dilation, channels, data_layout=in_layout,
        kernel_layout=f"OIHW1i{Filter.shape[5]}o", out_layout=out_layout,
        out_dtype=out_dtype or "",
    )  # fmt: skip


def deformable_conv2d_nchw(
    data: Tensor,
    offset: Any,
    kernel: Tensor,
    strides: Extents,
    padding: Extents | str,
    dilation: Extents,
    deformable_groups: int,
    groups: int,
    out_dtype: str | None,
) -> Any:
    """Convolve windows whose elements are moved by `offset`."""
    edges = _edges(padding, kernel.shape[2:], dilation)
    return over_tensors(regions.deformable_conv2d)(
        data, offset, kernel, strides, edges, dilation, deformable_groups, groups
    )


def deformable_conv2d_nhwc(
    data: Tensor,
    offset: Any,
    kernel: Tensor,
    strides: Extents,
    padding: Extents | str,
    dilation: Extents,
    deformable_groups: int,
    groups: int,
    out_dtype: str | None,
) -> Any:
    """Convolve windows of (N, H, W, C) by (KH, KW, C, O); `offset` moves their elements."""
    made = deformable_conv2d_nchw(
        transpose(data, (0, 3, 1, 2)), transpose(offset, (0, 3, 1, 2)),
        transpose(kernel, (3, 2, 0, 1)), strides, padding, dilation, deformable_groups, groups,
        out_dtype,
    )  # fmt: skip
    return transpose(made, (0, 2, 3, 1))
