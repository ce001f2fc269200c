"""Convolutions of any number of dimensions, groups and layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.errors import InvalidShapeError
from slipway.ir import ops
from slipway.te import reduction as R
from slipway.te.declare import compute
from slipway.te.tensor import Tensor
from slipway.topi.products import check_equal
from slipway.topi.utils import get_const_int

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr, ShapeLike


from slipway.topi.nn.padding import pad
from slipway.topi.nn.windows import sides, spread, windows


def conv(
    inp: Tensor,
    filt: Tensor,
    stride: ShapeLike,
    padding: ShapeLike,
    dilation: ShapeLike,
    groups: int,
    data_layout: str,
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Tensor:
    """Return the convolution of `inp` with `filt`.

    `data_layout` is an order of N, C and the spatial letters, `kernel_layout` one of O, I and
    those (OI and the spatial ones without it; HWIO, WIO and DHWIO where channels come last).  The
    sums are of `out_dtype` (that of `inp` without it).
    """
    spatial = "".join(c for c in data_layout if c not in "NC")
    if not spatial or sorted(data_layout) != sorted(f"NC{spatial}"):
        raise InvalidShapeError(f"conv of data in {data_layout!r}, no order of N, C and the others")
    last = data_layout.index("C") > data_layout.index(spatial[0])
    order = kernel_layout or (f"{spatial}IO" if last else f"OI{spatial}")
    if sorted(data_layout) != sorted(f"NC{spatial}") or sorted(order) != sorted(f"OI{spatial}"):
        raise InvalidShapeError(f"conv of data in {data_layout!r} and a kernel in {order!r}")
    if inp.ndim != len(data_layout) or filt.ndim != len(order):
        raise InvalidShapeError(
            f"conv of data {inp.shape} in {data_layout} and a kernel {filt.shape} in {order}: the "
            "number of dimensions differs"
        )
    count = len(spatial)
    steps, gaps = spread(stride, count, "stride"), spread(dilation, count, "dilation")
    kernel = dict(zip(order, filt.shape, strict=True))
    sizes = [get_const_int(kernel[c]) for c in spatial]
    reach = [(n - 1) * gap + 1 for n, gap in zip(sizes, gaps, strict=True)]
    before, after = sides(padding, reach)
    put = {c: (b, a) for c, b, a in zip(spatial, before, after, strict=True)}
    edges = [put.get(c, (0, 0)) for c in data_layout]
    x = inp
    if any(map(any, edges)):
        x = pad(inp, [e[0] for e in edges], [e[1] for e in edges], name="pad_temp")
    extents = dict(zip(data_layout, x.shape, strict=True))
    channels = ops.as_int(extents["C"])
    what = f"conv of data {inp.shape} in {data_layout}, kernel {filt.shape} in {order}"
    if channels is not None:
        check_equal(f"{what}, {groups} groups: channels", channels, ops.mul(kernel["I"], groups))
    if (outputs := ops.as_int(kernel["O"])) is not None and outputs % groups:
        raise InvalidShapeError(f"{what}: {outputs} outputs are not a multiple of {groups} groups")
    per_group = ops.floordiv(kernel["O"], groups)
    rc = R.reduce_axis((0, kernel["I"]), "rc")
    over = [R.reduce_axis((0, n), f"r{c.lower()}") for c, n in zip(spatial, sizes, strict=True)]
    made = {"N": extents["N"], "C": kernel["O"]}
    for c, window, step in zip(spatial, reach, steps, strict=True):
        made[c] = windows(extents[c], window, step)
    dtype = out_dtype or inp.dtype

    def element(*i: PrimExpr) -> Any:
        at = dict(zip(data_layout, i, strict=True))
        position = {"O": at["C"], "I": rc.var}
        source = {"N": at["N"], "C": rc.var}
        if groups > 1:
            group = ops.floordiv(at["C"], per_group)
            source["C"] = ops.add(ops.mul(group, kernel["I"]), rc.var)
        for c, axis, step, gap in zip(spatial, over, steps, gaps, strict=True):
            position[c] = axis.var
            source[c] = ops.add(ops.mul(at[c], step), ops.mul(axis.var, gap))
        value, weight = x(*(source[c] for c in data_layout)), filt(*(position[c] for c in order))
        return R.sum(ops.mul(ops.cast(value, dtype), ops.cast(weight, dtype)), axis=[rc, *over])

    shape = tuple(made[c] for c in data_layout)
    tag = f"{'group_' if groups > 1 else ''}conv{len(spatial)}d_{data_layout.lower()}"
    return compute(shape, element, tag, tag)  # type: ignore[no-any-return]


def conv2d(
    input: Tensor,
    filter: Tensor,
    strides: ShapeLike = 1,
    padding: ShapeLike = 0,
    dilation: ShapeLike = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Tensor:
    """Return a convolution of two spatial dimensions; see `conv`."""
    return conv(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def conv2d_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: ShapeLike = 1,
    padding: ShapeLike = 0,
    dilation: ShapeLike = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """Return the convolution of data (N, C, H, W) with kernel (O, C, KH, KW)."""
    return conv(data, kernel, stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype)


def conv2d_nhwc(
    data: Tensor,
    kernel: Tensor,
    stride: ShapeLike = 1,
    padding: ShapeLike = 0,
    dilation: ShapeLike = 1,
    out_dtype: str | None = "float32",
) -> Tensor:
    """Return the convolution of data (N, H, W, C) with kernel (KH, KW, C, O)."""
    return conv(data, kernel, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype)


def conv2d_hwcn(
    data: Tensor,
    kernel: Tensor,
    stride: ShapeLike = 1,
    padding: ShapeLike = 0,
    dilation: ShapeLike = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """Return the convolution of data (H, W, C, N) with kernel (KH, KW, C, O)."""
    return conv(data, kernel, stride, padding, dilation, 1, "HWCN", "HWIO", out_dtype)


def group_conv2d_nchw(
    data: Tensor,
    kernel: Tensor,
    stride: ShapeLike,
    padding: ShapeLike,
    dilation: ShapeLike,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """Return the convolution of data (N, C, H, W) in groups, kernel (O, C / groups, KH, KW)."""
    return conv(data, kernel, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype)


def group_conv2d_nhwc(
    data: Tensor,
    kernel: Tensor,
    stride: ShapeLike,
    padding: ShapeLike,
    dilation: ShapeLike,
    groups: int,
    out_dtype: str | None = None,
) -> Tensor:
    """Return the convolution of data (N, H, W, C) in groups, kernel (KH, KW, C / groups, O)."""
    return conv(data, kernel, stride, padding, dilation, groups, "NHWC", "HWIO", out_dtype)


def conv1d_ncw(
    data: Tensor,
    kernel: Tensor,
    strides: ShapeLike = 1,
    padding: ShapeLike = "VALID",
    dilation: ShapeLike = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """Return the convolution of data (N, C, W) with kernel (O, C, KW)."""
    return conv(data, kernel, strides, padding, dilation, 1, "NCW", "OIW", out_dtype)


def conv1d_nwc(
    data: Tensor,
    kernel: Tensor,
    strides: ShapeLike = 1,
    padding: ShapeLike = "VALID",
    dilation: ShapeLike = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """Return the convolution of data (N, W, C) with kernel (KW, C, O)."""
    return conv(data, kernel, strides, padding, dilation, 1, "NWC", "WIO", out_dtype)


def conv3d_ncdhw(
    data: Tensor,
    kernel: Tensor,
    stride: ShapeLike,
    padding: ShapeLike,
    dilation: ShapeLike,
    groups: int = 1,
    out_dtype: str | None = None,
) -> Tensor:
    """Return the convolution of data (N, C, D, H, W) with kernel (O, C / groups, KD, KH, KW)."""
    return conv(data, kernel, stride, padding, dilation, groups, "NCDHW", "OIDHW", out_dtype)


def conv3d_ndhwc(
    data: Tensor,
    kernel: Tensor,
    stride: ShapeLike,
    padding: ShapeLike,
    dilation: ShapeLike,
    groups: int = 1,
    out_dtype: str | None = "float32",
) -> Tensor:
    """Return the convolution of data (N, D, H, W, C) with kernel (KD, KH, KW, C / groups, O)."""
    return conv(data, kernel, stride, padding, dilation, groups, "NDHWC", "DHWIO", out_dtype)
