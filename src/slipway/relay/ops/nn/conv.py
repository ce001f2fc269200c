"""Convolutions: nn.conv1d, nn.conv2d, nn.conv3d, with groups, dilation and free layouts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.layout import parse_layout, transform_array
from slipway.relay.op_registry import Attrs, BadArgument, OpDefinition, OpPattern, register_op
from slipway.relay.ops.checks import as_tuple, need_dtype, need_number, pad_amounts, weight_of
from slipway.relay.ops.nn.windows import (
    SPATIAL,
    arrange,
    check_layout,
    conv_extents,
    indices_in,
    pad_array,
    pad_stage,
    pick,
    windows,
)
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents


@node
class ConvAttrs(Attrs):
    """Geometry of a convolution; lengths are the number of spatial axes, padding twice that.

    `padding` lists all the amounts before, then all the amounts after.  `channels` and
    `kernel_size` may be left None: the kernel has them.  `out_dtype` "" is the data's dtype.
    """

    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    channels: int | None = None
    kernel_size: tuple[int, ...] | None = None
    data_layout: str = "NCHW"
    kernel_layout: str = "OIHW"
    out_layout: str = ""
    out_dtype: str = ""


def conv_relation(attrs: ConvAttrs, data: TensorType, weight: TensorType) -> Type:
    """The type rule of the family; the number of spatial axes is that of the strides."""
    if len(attrs.strides) not in SPATIAL:
        raise BadArgument("strides", f"is {attrs.strides}; it must be 1, 2 or 3 numbers")
    spatial = SPATIAL[len(attrs.strides)]
    check_layout("data", attrs.data_layout, "NC" + spatial, data, "data_layout")
    check_layout("weight", attrs.kernel_layout, "OI" + spatial, weight, "kernel_layout")
    need_number("data", data)
    if dtypes.is_float(data.dtype):
        need_dtype("weight", weight, data.dtype, "the data")
    batch, channels, *size = pick(data.shape, attrs.data_layout, "NC" + spatial)
    out_channels, in_channels, *kernel = pick(weight.shape, attrs.kernel_layout, "OI" + spatial)
    if attrs.kernel_size is not None and tuple(kernel) != attrs.kernel_size:
        raise BadArgument("weight", f"is {weight}, but kernel_size is {attrs.kernel_size}")
    if attrs.channels is not None and out_channels != attrs.channels:
        raise BadArgument("weight", f"is {weight}, but channels is {attrs.channels}")
    if attrs.groups < 1 or out_channels % attrs.groups or channels % attrs.groups:
        raise BadArgument(
            "groups",
            f"is {attrs.groups}, which does not divide {channels} input and "
            f"{out_channels} output channels",
        )
    if in_channels * attrs.groups != channels:
        raise BadArgument(
            "weight",
            f"is {weight}: its {in_channels} input channels times {attrs.groups} groups are not "
            f"the data's {channels} channels",
        )
    extents = conv_extents(size, kernel, attrs.strides, attrs.padding, attrs.dilation)
    out = dict(zip("NC" + spatial, (batch, out_channels, *extents), strict=True))
    layout = attrs.out_layout or attrs.data_layout
    return TensorType(arrange(out, layout), attrs.out_dtype or data.dtype)


def convolve(
    data: Array,
    weight: Array,
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Any:
    """Convolve NumPy arrays laid out N C spatial and O I spatial."""
    kernel = weight.shape[2:]
    view = windows(pad_array(data, padding, 0), kernel, strides, dilation)
    count = len(kernel)
    out_channels, per_group = weight.shape[0], weight.shape[1]
    taps = tuple(range(2 + count, 2 + 2 * count))
    if per_group == 1 and groups > 1:
        multiplier = out_channels // groups
        total: Any = 0
        for offset in np.ndindex(*kernel):
            column = weight[(slice(None), 0, *offset)].reshape((1, -1) + (1,) * count)
            total = total + np.repeat(view[(..., *offset)], multiplier, axis=1) * column
        return total
    parts = []
    step = out_channels // groups
    for g in range(groups):
        chunk = view[:, g * per_group : (g + 1) * per_group]
        kernels = weight[g * step : (g + 1) * step]
        found = np.tensordot(chunk, kernels, axes=((1, *taps), (1, *range(2, 2 + count))))
        parts.append(np.moveaxis(found, -1, 1))
    return parts[0] if groups == 1 else np.concatenate(parts, axis=1)


def conv_reference(attrs: ConvAttrs, data: Array, weight: Array) -> Any:
    """The NumPy meaning of the family."""
    spatial = SPATIAL[len(attrs.strides)]
    out_dtype = attrs.out_dtype or data.dtype
    plain = transform_array(data, attrs.data_layout, "NC" + spatial).astype(out_dtype)
    kernels = transform_array(weight, attrs.kernel_layout, "OI" + spatial).astype(out_dtype)
    out = convolve(plain, kernels, attrs.strides, attrs.padding, attrs.dilation, attrs.groups)
    layout = attrs.out_layout or attrs.data_layout
    return transform_array(out, "NC" + spatial, layout)


def conv_compute(attrs: ConvAttrs, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    """The te stages: an optional pad stage, then the convolution tagged for schedules."""
    data, weight = inputs
    count = len(attrs.strides)
    spatial = SPATIAL[count]
    layout = attrs.out_layout or attrs.data_layout
    (out,) = out_types
    pads = dict.fromkeys("NC", (0, 0))
    pads.update({s: (attrs.padding[a], attrs.padding[a + count]) for a, s in enumerate(spatial)})
    letters = [axis.letter for axis in parse_layout(attrs.data_layout).axes]
    before, after = ([pads[letter][end] for letter in letters] for end in (0, 1))
    padded = pad_stage(data, before, after, 0)
    shape = tuple(size_of(d) for d in weight.shape)
    out_channels, per_group, *kernel = pick(shape, attrs.kernel_layout, "OI" + spatial)
    depthwise = per_group == 1 and attrs.groups > 1
    multiplier = out_channels // attrs.groups
    reduce_channel = None if depthwise else te().reduce_axis((0, per_group), name="rc")
    taps = [
        te().reduce_axis((0, k), name=f"r{s.lower()}") for k, s in zip(kernel, spatial, strict=True)
    ]

    of_output = indices_in("NC" + spatial, layout)
    of_data = indices_in(attrs.data_layout, "NC" + spatial)
    of_kernel = indices_in(attrs.kernel_layout, "OI" + spatial)

    def element(*indices: PrimExpr) -> Any:
        at = dict(zip("NC" + spatial, of_output(*indices), strict=True))
        group = at["C"] if multiplier == 1 else at["C"] // multiplier
        if depthwise:
            channel = group
        elif attrs.groups == 1:
            channel = reduce_channel
        else:
            channel = group * per_group + reduce_channel
        source = {"N": at["N"], "C": channel}
        filter_at = {"O": at["C"], "I": 0 if depthwise else reduce_channel}
        for a, s in enumerate(spatial):
            stride, step = attrs.strides[a], attrs.dilation[a]
            base = at[s] if stride == 1 else at[s] * stride
            source[s] = base + (taps[a] if step == 1 else taps[a] * step)
            filter_at[s] = taps[a]
        value = padded(*of_data(*source.values())).astype(out.dtype)
        product = value * weight(*of_kernel(*filter_at.values())).astype(out.dtype)
        axes = taps if reduce_channel is None else [reduce_channel, *taps]
        return te().sum(product, axis=axes)

    kind = "depthwise_conv" if depthwise else "conv" if attrs.groups == 1 else "group_conv"
    tag = f"{kind}{count}d_{attrs.data_layout.lower()}"
    return [te().compute(out.shape, element, name=tag.split("_")[0], tag=tag)]


def conv_flops(attrs: ConvAttrs, in_types: Sequence[Any], out_type: TensorType) -> float:
    """Two operations per multiply-add."""
    out_channels = pick(in_types[1].shape, attrs.kernel_layout, "O")[0]
    return float(2 * out_type.size * (in_types[1].size // max(out_channels, 1)))


def _implied(attrs: ConvAttrs, data: TensorType, weight: Type | None) -> Sequence[Type | None]:
    if attrs.channels is None or attrs.kernel_size is None or attrs.groups < 1:
        return (data, weight)
    spatial = "DHW"[-len(attrs.kernel_size) :]
    try:
        check_layout("data", attrs.data_layout, "NC" + spatial, data, "data_layout")
        (channels,) = pick(data.shape, attrs.data_layout, "C")
        if not isinstance(channels, int):
            return (data, weight)
        extents = {"O": attrs.channels, "I": channels // attrs.groups}
        extents.update(zip(spatial, attrs.kernel_size, strict=True))
        return weight_of(data, weight, arrange(extents, attrs.kernel_layout))
    except BadArgument:  # the type rule says what is wrong
        return (data, weight)


def _register(count: int) -> OpDefinition:
    definition = register_op(
        f"nn.conv{count}d", "data", "weight", attrs=ConvAttrs,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        doc=f"Cross-correlation of data with kernels over {count} spatial axes.",
    )  # fmt: skip
    definition.type_relation(conv_relation)
    definition.implies(_implied)
    definition.reference(conv_reference)
    definition.compute(conv_compute)
    definition.flops(conv_flops)
    return definition


def conv_attrs(
    count: int,
    strides: Extents,
    padding: Extents,
    dilation: Extents,
    groups: int,
    channels: int | None,
    kernel_size: Extents | None,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: str,
) -> ConvAttrs:
    """Return the attributes in normal form from the classic spellings."""
    return ConvAttrs(
        as_tuple(strides, count, "strides"),
        pad_amounts(padding, count),
        as_tuple(dilation, count, "dilation"),
        int(groups),
        None if channels is None else int(channels),
        None if kernel_size is None else as_tuple(kernel_size, count, "kernel_size"),
        data_layout,
        kernel_layout,
        out_layout,
        out_dtype or "",
    )


CONV1D, CONV2D, CONV3D = _register(1), _register(2), _register(3)


@CONV2D.make
def conv2d(
    data: ExprLike,
    weight: ExprLike,
    strides: Extents = (1, 1),
    padding: Extents = (0, 0),
    dilation: Extents = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Extents | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Convolve images.

    `data` is (N, C, H, W) in `data_layout`, `weight` (O, C / groups, kH, kW) in `kernel_layout`.
    `padding` is one number, (h, w) or (top, left, bottom, right).
    """
    attrs = conv_attrs(
        2, strides, padding, dilation, groups, channels, kernel_size,
        data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    return CONV2D(data, weight, attrs=attrs)


@CONV1D.make
def conv1d(
    data: ExprLike,
    weight: ExprLike,
    strides: Extents = 1,
    padding: Extents = 0,
    dilation: Extents = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Extents | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "OIW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Convolve sequences: `data` (N, C, W), `weight` (O, C / groups, kW)."""
    attrs = conv_attrs(
        1, strides, padding, dilation, groups, channels, kernel_size,
        data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    return CONV1D(data, weight, attrs=attrs)


@CONV3D.make
def conv3d(
    data: ExprLike,
    weight: ExprLike,
    strides: Extents = (1, 1, 1),
    padding: Extents = (0, 0, 0),
    dilation: Extents = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Extents | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Convolve volumes: `data` (N, C, D, H, W), `weight` (O, C / groups, kD, kH, kW)."""
    attrs = conv_attrs(
        3, strides, padding, dilation, groups, channels, kernel_size,
        data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    return CONV3D(data, weight, attrs=attrs)


def _case(definition: OpDefinition, data: Any, weight: Any, **options: Any) -> None:
    count = len(data) - 2
    spatial = SPATIAL[count]
    defaults: dict[str, Any] = {
        "strides": 1, "padding": 0, "dilation": 1, "groups": 1, "channels": None,
        "kernel_size": None, "data_layout": "NC" + spatial, "kernel_layout": "OI" + spatial,
        "out_layout": "", "out_dtype": "",
    }  # fmt: skip
    kinds = options.pop("dtypes", ())
    defaults.update(options)
    high = 9 if kinds else 2.0
    definition.sample_case(
        data, weight, attrs=conv_attrs(count, **defaults), dtypes=kinds, low=-high, high=high
    )


_case(CONV1D, (2, 4, 9), (6, 4, 3), padding=(1, 0))
_case(CONV1D, (1, 4, 9), (4, 1, 3), groups=4, strides=2)
_case(CONV2D, (1, 3, 8, 8), (8, 3, 3, 3), padding=1)
_case(CONV2D, (2, 4, 7, 6), (6, 4, 3, 2), strides=2, padding=(1, 0, 2, 1))
_case(CONV2D, (1, 8, 6, 6), (8, 1, 3, 3), groups=8, padding=1)
_case(CONV2D, (1, 4, 6, 6), (8, 1, 3, 3), groups=4, dilation=2)
_case(CONV2D, (1, 6, 5, 5), (4, 3, 1, 1), groups=2)
_case(CONV2D, (1, 6, 6, 4), (3, 3, 4, 5), data_layout="NHWC", kernel_layout="HWIO", padding=1)
_case(CONV2D, (1, 2, 5, 5), (4, 2, 3, 3), out_dtype="int32", dtypes=("int8", "int8"))
_case(CONV3D, (1, 2, 4, 5, 5), (3, 2, 2, 3, 3), padding=1)
