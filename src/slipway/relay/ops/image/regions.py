"""vision.roi_align and nn.deformable_im2col: features read at positions that other tensors hold.

Both weigh the four elements around a real position.  The formulas are written once; `m` is the
arithmetic, of NumPy arrays or of te expressions (see `sample.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, make, register_op
from slipway.relay.ops.build import implied
from slipway.relay.ops.checks import (
    as_tuple,
    need_float,
    need_rank,
    need_shape,
    need_window,
    of_elements,
    pad_amounts,
)
from slipway.relay.ops.image.sample import (
    NumpyArithmetic,
    TeArithmetic,
    elements,
    last_index,
    working_dtype,
)
from slipway.relay.ops.tensor.small_types import to_integer
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents

MODES = ("avg", "max")
MAX_SAMPLES = 16  # along each axis of a bin; they are unrolled


@node
class RoiAlignAttrs(Attrs):
    """Bins per region, input extent per unit of a region's coordinates, samples per bin and axis.

    `aligned` takes half an element off the coordinates, and lets a region be narrower than one.
    """

    pooled_size: tuple[int, int] = (1, 1)
    spatial_scale: float = 1.0
    sample_ratio: int = 2
    mode: str = "avg"
    aligned: bool = False


ROI_ALIGN = register_op(
    "vision.roi_align", "data", "rois", attrs=RoiAlignAttrs, pattern=OpPattern.INJECTIVE,
    flops_per_element=60,
    doc="Features (N, C, H, W) pooled over regions (R, 5): sample number, x1, y1, x2, y2.",
)  # fmt: skip


def check_regions(attrs: Any, data: TensorType, rois: TensorType) -> TensorType:
    """Return the type of `data` pooled over regions; raises BadArgument for what cannot be."""
    need_rank("data", data, 4)
    need_float("data", data)
    need_float("rois", rois)
    if rois.rank != 2 or rois.shape[1] != 5:
        raise BadArgument("rois", f"must be (regions, 5), got {rois}")
    if attrs.mode not in MODES:
        raise BadArgument("mode", f"is {attrs.mode!r}; use 'avg' or 'max'")
    if len(attrs.pooled_size) != 2 or min(attrs.pooled_size) < 1:
        raise BadArgument("pooled_size", f"is {attrs.pooled_size}; it is the bins along y and x")
    return TensorType((rois.shape[0], data.shape[1], *attrs.pooled_size), data.dtype)


@ROI_ALIGN.type_relation
@of_elements
def _roi_type(attrs: RoiAlignAttrs, data: TensorType, rois: TensorType) -> TensorType:
    if not 1 <= attrs.sample_ratio <= MAX_SAMPLES:
        raise BadArgument(
            "sample_ratio",
            f"is {attrs.sample_ratio}; it must be 1 to {MAX_SAMPLES}, or below 1 for as many "
            "samples as elements fit into a bin",
        )
    return check_regions(attrs, data, rois)


def _corners(m: Any, size: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """(low index, high index, weight of high, inside) of a coordinate along one axis."""
    x = m.named(x)
    inside = m.both(x >= m.number(-1.0), x <= elements(m, size))
    x = m.named(m.minimum(m.maximum(x, m.number(0.0)), elements(m, size, 1.0)))
    low = m.named(m.floor(x))
    first = m.named(m.whole(low))
    return first, m.named(m.minimum(first + 1, last_index(size))), m.named(x - low), inside


def _bin(
    m: Any, attrs: RoiAlignAttrs, size: tuple[int, int], region: list[Any], position: list[Any],
    read: Any,
) -> Any:  # fmt: skip
    """One bin of one region.  `region` is y1, x1, y2, x2, `position` the bin along y and x."""
    scale, ratio = m.number(attrs.spatial_scale), attrs.sample_ratio
    shift = m.number(0.5 if attrs.aligned else 0.0)
    starts, steps = [], []
    for axis in range(2):
        first = m.named(region[axis] * scale - shift)
        length = region[axis + 2] * scale - shift - first
        if not attrs.aligned:
            length = m.maximum(length, m.number(1.0))
        step = m.named(length * m.number(1 / attrs.pooled_size[axis]))
        starts.append(m.named(first + m.real(position[axis]) * step))
        steps.append(step)
    one, zero = m.number(1.0), m.number(0.0)
    total: Any = None
    for sy in range(ratio):
        y = _corners(m, size[0], starts[0] + m.number((sy + 0.5) / ratio) * steps[0])
        for sx in range(ratio):
            x = _corners(m, size[1], starts[1] + m.number((sx + 0.5) / ratio) * steps[1])
            parts = [
                (one - y[2] if iy == 0 else y[2]) * (one - x[2] if ix == 0 else x[2])
                * m.named(read(y[iy], x[ix]))
                for iy in (0, 1) for ix in (0, 1)
            ]  # fmt: skip
            if attrs.mode == "max":  # the largest weighted corner, as ONNX defines it
                parts = [m.named(part) for part in parts]
                pairs = (m.named(m.maximum(parts[i], parts[i + 1])) for i in (0, 2))
                value = m.maximum(*pairs)
            else:
                value = parts[0] + parts[1] + parts[2] + parts[3]
            value = m.where(m.both(y[3], x[3]), value, zero)
            if total is None:
                total = value
            elif attrs.mode == "max":
                total = m.maximum(m.named(total), m.named(value))
            else:
                total = total + value
    return total if attrs.mode == "max" else total * m.number(1 / (ratio * ratio))


@ROI_ALIGN.reference
def _roi_reference(attrs: RoiAlignAttrs, data: Array, rois: Array) -> Any:
    m = NumpyArithmetic(working_dtype(data.dtype.name, rois.dtype.name))
    wide, regions = m.real(data), m.real(rois)
    region = [regions[:, k].reshape(-1, 1, 1, 1) for k in (2, 1, 4, 3)]
    position = [np.arange(p) for p in attrs.pooled_size]
    sample = to_integer(regions[:, 0], "int32").clip(0, len(data) - 1).reshape(-1, 1, 1, 1)
    channel = np.arange(data.shape[1]).reshape(1, -1, 1, 1)
    found = _bin(
        m, attrs, data.shape[2:], region,
        [position[0].reshape(1, 1, -1, 1), position[1].reshape(1, 1, 1, -1)],
        lambda y, x: wide[sample, channel, y, x],
    )  # fmt: skip
    return found.astype(data.dtype)


@ROI_ALIGN.compute
def _roi_compute(attrs: RoiAlignAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    data, rois = inputs
    (out,) = out_types
    count, _, height, width = (size_of(d) for d in data.shape)
    m = TeArithmetic(working_dtype(data.dtype, rois.dtype))

    def element(r: PrimExpr, c: PrimExpr, py: PrimExpr, px: PrimExpr) -> Any:
        region = [m.named(m.real(rois(r, k))) for k in (2, 1, 4, 3)]
        sample = te().min(te().max(te().to_integer(rois(r, 0), "int32"), 0), last_index(count))
        sample = m.named(sample)
        found = _bin(
            m, attrs, (height, width), region, [py, px],
            lambda y, x: m.real(data(sample, c, y, x)),
        )  # fmt: skip
        return m.with_names(found.astype(out.dtype))

    return [te().compute(out.shape, element, name="roi_align", tag="injective")]


@ROI_ALIGN.make
def roi_align(
    data: ExprLike,
    rois: ExprLike,
    pooled_size: Extents,
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: str = "NCHW",
    mode: str = "avg",
    aligned: bool = False,
) -> Call:
    """Pool `data` over regions (R, 5): sample number, x1, y1, x2, y2.

    With a `sample_ratio` below 1 a bin has as many samples as elements fit into it.
    """
    if layout == "NHWC":
        planar = make("transpose")(data, (0, 3, 1, 2))
        made = roi_align(planar, rois, pooled_size, spatial_scale, sample_ratio, "NCHW", mode,
                         aligned)  # fmt: skip
        back: Call = make("transpose")(made, (0, 2, 3, 1))
        return back
    if layout != "NCHW":
        raise BadArgument("layout", f"is {layout!r}; NCHW and NHWC are served")
    height, width = as_tuple(pooled_size, 2, "pooled_size")
    if int(sample_ratio) < 1:
        adaptive: Call = make("vision.roi_align_adaptive")(
            data, rois, (height, width), spatial_scale, mode, aligned
        )
        return adaptive
    attrs = RoiAlignAttrs(
        (height, width), float(spatial_scale), int(sample_ratio), mode, bool(aligned)
    )
    return ROI_ALIGN(data, rois, attrs=attrs)


def region_case(rng: np.random.Generator) -> list[Any]:
    """Return small data, and regions that reach beyond it."""
    corners = np.sort(rng.uniform(-3, 14, (3, 2, 2)), axis=1).reshape(3, 4)
    sample = rng.integers(0, 2, (3, 1))
    return [
        rng.standard_normal((2, 3, 6, 7)).astype(np.float32),
        np.concatenate([sample, corners], 1).astype(np.float32),
    ]


for _mode in MODES:
    for _aligned in (True, False):
        ROI_ALIGN.sample_case(
            attrs=RoiAlignAttrs((2, 3), 0.5, 2, _mode, _aligned), make=region_case
        )


@node
class DeformableIm2colAttrs(Attrs):
    """The window, and into how many groups the channels are cut that share an offset.

    A position less than one element beyond an edge weighs the element at the edge; with `cut` one
    below zero is zero, as Relay's operator has it.
    """

    kernel_size: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    cut: bool = False


IM2COL = register_op(
    "nn.deformable_im2col", "data", "offset", "mask", attrs=DeformableIm2colAttrs,
    pattern=OpPattern.OPAQUE, flops_per_element=14,
    doc="The elements that each window of a deformable convolution reads, times its mask: "
    "(N, channels, window, out positions).",
)  # fmt: skip


def _out_size(attrs: DeformableIm2colAttrs, size: tuple[int, ...]) -> tuple[int, int]:
    found = []
    for axis in range(2):
        padded = size[axis] + attrs.padding[axis] + attrs.padding[axis + 2]
        span = (attrs.kernel_size[axis] - 1) * attrs.dilation[axis] + 1
        if padded < span:
            raise BadArgument("data", f"is smaller than the window {attrs.kernel_size}")
        found.append((padded - span) // attrs.strides[axis] + 1)
    return found[0], found[1]


@IM2COL.type_relation
@of_elements
def _im2col_type(
    attrs: DeformableIm2colAttrs, data: TensorType, offset: TensorType, mask: TensorType
) -> TensorType:
    need_window(attrs, 2)
    need_rank("data", data, 4)
    for name, given in (("data", data), ("offset", offset), ("mask", mask)):
        need_float(name, given)
    batch, channels, *size = data.shape
    if attrs.groups < 1 or channels % attrs.groups:
        raise BadArgument("groups", f"is {attrs.groups}, which does not divide {channels} channels")
    window = attrs.kernel_size[0] * attrs.kernel_size[1]
    out = _out_size(attrs, tuple(size))
    shape = (batch, 2 * attrs.groups * window, *out)
    need_shape("offset", offset, shape, "y and x of every place of the window, per group")
    need_shape("mask", mask, (batch, attrs.groups * window, *out), "one factor per place")
    return TensorType((batch, channels, window, out[0] * out[1]), data.dtype)


def _deformed(m: Any, size: tuple[int, int], position: list[Any], read: Any, cut: bool) -> Any:
    """The value at a real position; what lies beyond the ends is zero."""
    axes = []
    for x, extent in zip(position, size, strict=True):
        last = last_index(extent)
        low = m.named(m.floor(x))
        first, fraction = m.named(m.whole(low)), m.named(x - low)
        pair = []
        for step, weight in ((0, m.number(1.0) - fraction), (1, fraction)):
            index = first + step
            there = m.both(index >= 0, index <= last)
            pair.append((m.minimum(m.maximum(index, 0), last), weight, there))
        axes.append(pair)
    total: Any = None
    for y, wy, in_y in axes[0]:
        for x, wx, in_x in axes[1]:
            part = m.where(m.both(in_y, in_x), wy * wx * read(y, x), m.number(0.0))
            total = part if total is None else total + part
    if not cut:
        return total
    zero = m.number(0.0)
    return m.where(m.both(position[0] >= zero, position[1] >= zero), total, zero)


@IM2COL.reference
def _im2col_reference(attrs: DeformableIm2colAttrs, data: Array, offset: Array, mask: Array) -> Any:
    m = NumpyArithmetic(working_dtype(*(a.dtype.name for a in (data, offset, mask))))
    batch, channels, height, width = data.shape
    kh, kw = attrs.kernel_size
    oh, ow = _out_size(attrs, (height, width))
    groups, window = attrs.groups, kh * kw
    wide = m.real(data).reshape(batch, groups, channels // groups, height, width)
    moves = m.real(offset).reshape(batch, groups, 1, window, 2, oh, ow)
    index = np.arange(window)
    position = []
    for axis, (tap, out) in enumerate(((index // kw, oh), (index % kw, ow))):
        start = np.arange(out) * attrs.strides[axis] - attrs.padding[axis]
        view = (-1, 1) if axis == 0 else (1, -1)
        base = tap.reshape(-1, 1, 1) * attrs.dilation[axis] + start.reshape(view)
        position.append(m.real(base) + moves[:, :, :, :, axis])
    n, g, c = np.ogrid[:batch, :groups, : channels // groups]
    n, g, c = (v.reshape(*v.shape, 1, 1, 1) for v in (n, g, c))
    found = _deformed(m, (height, width), position, lambda y, x: wide[n, g, c, y, x],
                      attrs.cut)  # fmt: skip
    found = found * m.real(mask).reshape(batch, groups, 1, window, oh, ow)
    return found.reshape(batch, channels, window, oh * ow).astype(data.dtype)


@IM2COL.compute
def _im2col_compute(
    attrs: DeformableIm2colAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, offset, mask = inputs
    (out,) = out_types
    _, channels, height, width = (size_of(d) for d in data.shape)
    kw, window = attrs.kernel_size[1], attrs.kernel_size[0] * attrs.kernel_size[1]
    _, ow = _out_size(attrs, (height, width))
    m = TeArithmetic(working_dtype(data.dtype, offset.dtype, mask.dtype))

    def element(n: PrimExpr, c: PrimExpr, k: PrimExpr, p: PrimExpr) -> Any:
        group = c // (channels // attrs.groups) if attrs.groups > 1 else 0
        at = (p // ow, p % ow)
        position = []
        for axis, tap in enumerate((k // kw, k % kw)):
            base = at[axis] * attrs.strides[axis] + tap * attrs.dilation[axis]
            base = m.real(base - attrs.padding[axis])
            move = m.real(offset(n, (group * window + k) * 2 + axis, *at))
            position.append(m.named(base + move))
        found = _deformed(m, (height, width), position, lambda y, x: m.real(data(n, c, y, x)),
                          attrs.cut)  # fmt: skip
        weighed = found * m.real(mask(n, group * window + k, *at))
        return m.with_names(weighed.astype(out.dtype))

    return [te().compute(out.shape, element, name="deformable_im2col", tag="injective")]


@IM2COL.make
def deformable_im2col(
    data: ExprLike,
    offset: ExprLike,
    mask: ExprLike,
    kernel_size: Extents,
    strides: Extents = 1,
    padding: Extents = 0,
    dilation: Extents = 1,
    groups: int = 1,
    cut: bool = False,
) -> Call:
    """Return what each window reads: (N, channels, window, out positions)."""
    attrs = _im2col_attrs(kernel_size, strides, padding, dilation, groups, cut)
    return IM2COL(data, offset, mask, attrs=attrs)


def _im2col_attrs(
    kernel_size: Extents, strides: Extents, padding: Extents, dilation: Extents, groups: int,
    cut: bool,
) -> DeformableIm2colAttrs:  # fmt: skip
    """Return the attributes of windows; numbers stand for both axes."""
    kernel, step, apart = (
        as_tuple(v, 2, name)
        for v, name in ((kernel_size, "kernel_size"), (strides, "strides"), (dilation, "dilation"))
    )
    top, left, bottom, right = pad_amounts(padding, 2)
    return DeformableIm2colAttrs(
        (kernel[0], kernel[1]), (step[0], step[1]), (top, left, bottom, right),
        (apart[0], apart[1]), int(groups), bool(cut),
    )  # fmt: skip


def deformable_conv2d(
    data: ExprLike,
    offset: ExprLike,
    weight: ExprLike,
    strides: Extents = 1,
    padding: Extents = 0,
    dilation: Extents = 1,
    deformable_groups: int = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Extents | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
    *,
    mask: ExprLike | None = None,
    cut: bool = True,
) -> Any:
    """Convolve windows whose elements are moved by `offset` (N, 2 * groups * window, OH, OW).

    `weight` is (channels out, channels in / groups, KH, KW); data and offset may be NHWC and the
    weight HWIO.  `mask`, one factor per place of the window, is that of the second version of the
    operator.  With `cut`, as Relay has it, a position below zero reads zero; without, what ONNX
    and PyTorch say: less than one element beyond an edge, the element there is weighed.
    """
    _imply(
        as_expr(data), offset, weight, strides, padding, dilation, deformable_groups, groups,
        channels, kernel_size, data_layout, kernel_layout,
    )  # fmt: skip
    if data_layout == "NHWC":
        data, offset = (make("transpose")(x, (0, 3, 1, 2)) for x in (data, offset))
    if kernel_layout == "HWIO":
        weight = make("transpose")(weight, (3, 2, 0, 1))
    for name, given, served in (
        ("data_layout", data_layout, ("NCHW", "NHWC")),
        ("kernel_layout", kernel_layout, ("OIHW", "HWIO")),
        ("out_layout", out_layout, ("", data_layout)),
        ("out_dtype", out_dtype, ("", as_expr(data).tensor_type.dtype)),
    ):
        if given not in served:
            raise BadArgument(name, f"is {given!r}; use {' or '.join(map(repr, served))}")
    made = _convolved(
        as_expr(data), as_expr(offset), as_expr(weight), strides, padding, dilation,
        deformable_groups, groups, channels, kernel_size, mask, cut,
    )  # fmt: skip
    return make("transpose")(made, (0, 2, 3, 1)) if data_layout == "NHWC" else made


def _imply(
    data: Any, offset: ExprLike, weight: ExprLike, strides: Extents, padding: Extents,
    dilation: Extents, deformable_groups: int, groups: int, channels: int | None,
    kernel_size: Extents | None, data_layout: str, kernel_layout: str,
) -> None:  # fmt: skip
    """Let a weight and offsets without a type have those that the other arguments imply."""
    given, last = data.tensor_type, data_layout == "NHWC"
    if given.rank != 4 or channels is None or kernel_size is None or groups < 1:
        return
    window = as_tuple(kernel_size, 2, "kernel_size")
    inner = given.shape[3 if last else 1] // groups
    own = (*window, inner, channels) if kernel_layout == "HWIO" else (channels, inner, *window)
    implied(weight, own, given.dtype)
    attrs = _im2col_attrs(window, strides, padding, dilation, deformable_groups, True)
    out = _out_size(attrs, given.shape[1:3] if last else given.shape[2:])
    pairs = 2 * deformable_groups * window[0] * window[1]
    shape = (given.shape[0], *out, pairs) if last else (given.shape[0], pairs, *out)
    implied(offset, shape, given.dtype)


def _convolved(
    data: Any, offset: Any, weight: Any, strides: Extents, padding: Extents, dilation: Extents,
    deformable_groups: int, groups: int, filters_asked: int | None, window_asked: Any,
    mask: ExprLike | None, cut: bool,
) -> Any:  # fmt: skip
    need_rank("data", data.tensor_type, 4)
    need_rank("weight", weight.tensor_type, 4)
    need_rank("offset", offset.tensor_type, 4)
    batch, channels = data.tensor_type.shape[:2]
    filters, inner, *kernel = weight.tensor_type.shape
    if filters_asked not in (None, filters):
        raise BadArgument("channels", f"is {filters_asked}, but weight is {weight.tensor_type}")
    if window_asked is not None and as_tuple(window_asked, 2, "kernel_size") != tuple(kernel):
        raise BadArgument("kernel_size", f"is {window_asked}, but weight is {weight.tensor_type}")
    window = kernel[0] * kernel[1]
    out = offset.tensor_type.shape[2:]
    reshape = make("reshape")
    if mask is None:
        shape = (batch, deformable_groups * window, *out)
        mask = make("full")(as_expr(np.ones((), data.tensor_type.dtype)), shape)
    columns = deformable_im2col(
        data, offset, mask, kernel, strides, padding, dilation, deformable_groups, cut
    )
    depth, area = inner * window, out[0] * out[1]
    if channels != inner * groups or filters % groups:
        raise BadArgument("weight", f"{weight.tensor_type} does not fit {channels} channels in "
                          f"{groups} groups")  # fmt: skip
    columns = reshape(columns, (batch * groups, depth, area))
    rows = reshape(weight, (1, groups, filters // groups, depth))
    rows = make("broadcast_to")(rows, (batch, groups, filters // groups, depth))
    rows = reshape(rows, (batch * groups, filters // groups, depth))
    product = make("nn.batch_matmul")(rows, columns, transpose_b=False)
    return reshape(product, (batch, filters, *out))


def _im2col_case(rng: np.random.Generator) -> list[Any]:
    return [
        rng.standard_normal((2, 4, 5, 6)).astype(np.float32),
        rng.uniform(-2, 2, (2, 24, 3, 3)).astype(np.float32),
        rng.uniform(0, 1, (2, 12, 3, 3)).astype(np.float32),
    ]


IM2COL.sample_case(
    attrs=DeformableIm2colAttrs((2, 3), (2, 2), (1, 0, 1, 1), (2, 1), 2), make=_im2col_case
)
IM2COL.sample_case(
    attrs=DeformableIm2colAttrs((2, 3), (2, 2), (1, 0, 1, 1), (2, 1), 2, True), make=_im2col_case
)
