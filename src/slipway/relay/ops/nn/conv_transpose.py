"""Transposed convolutions: nn.conv1d_transpose, nn.conv2d_transpose, nn.conv3d_transpose.

The law: out[y] is the sum over input x and tap k with x * stride + k * dilation - pad = y.
The compute gathers: it reads the input where (y + pad - k * dilation) is a multiple of the stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import ops
from slipway.ir.node import node
from slipway.relay import op_registry
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import (
    Attrs,
    BadArgument,
    OpDefinition,
    OpPattern,
    as_expr,
    register_op,
)
from slipway.relay.ops.checks import (
    as_tuple,
    need_dtype,
    need_number,
    need_rank,
    need_window,
    pad_amounts,
    weight_of,
)
from slipway.relay.ops.nn.windows import SPATIAL
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array


@node
class ConvTransposeAttrs(Attrs):
    """Geometry; `padding` (all before, then all after) is cut off the full result.

    Data is N C spatial, the kernel (C, O / groups, spatial): the classic "IOHW".
    """

    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    output_padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    out_dtype: str = ""
    channels: int | None = None
    kernel_size: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """Leave out what the weight's type says too: records of schedules are found by this."""
        names = [n for n in self.FIELDS if n not in ("channels", "kernel_size")]
        return f"ConvTransposeAttrs({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"


def _extents(attrs: ConvTransposeAttrs, size: Sequence[int], kernel: Sequence[int]) -> list[int]:
    count = len(size)
    out = []
    for a in range(count):
        full = (size[a] - 1) * attrs.strides[a] + (kernel[a] - 1) * attrs.dilation[a] + 1
        extent = full - attrs.padding[a] - attrs.padding[a + count] + attrs.output_padding[a]
        if extent < 1:
            raise BadArgument("padding", f"{attrs.padding} leaves nothing of axis {a}")
        out.append(extent)
    return out


def _relation(attrs: ConvTransposeAttrs, data: TensorType, weight: TensorType) -> Type:
    count = len(attrs.strides)
    need_window(attrs, count)
    need_number("data", data)
    need_rank("data", data, count + 2)
    need_rank("weight", weight, count + 2)
    need_dtype("weight", weight, data.dtype, "the data")
    if weight.shape[0] != data.shape[1] or data.shape[1] % attrs.groups:
        raise BadArgument(
            "weight",
            f"is {weight}: its first axis must be the data's {data.shape[1]} channels, "
            f"divisible by {attrs.groups} groups",
        )
    extents = _extents(attrs, data.shape[2:], weight.shape[2:])
    channels = weight.shape[1] * attrs.groups
    return TensorType((data.shape[0], channels, *extents), attrs.out_dtype or data.dtype)


def _reference(attrs: ConvTransposeAttrs, data: Array, weight: Array) -> Any:
    count = len(attrs.strides)
    size, kernel = data.shape[2:], weight.shape[2:]
    full = [
        (size[a] - 1) * attrs.strides[a]
        + (kernel[a] - 1) * attrs.dilation[a]
        + 1
        + attrs.output_padding[a]
        for a in range(count)
    ]
    per_in, per_out = data.shape[1] // attrs.groups, weight.shape[1]
    out_dtype = attrs.out_dtype or data.dtype
    data, weight = data.astype(out_dtype), weight.astype(out_dtype)
    out = np.zeros((data.shape[0], per_out * attrs.groups, *full), out_dtype)
    for g in range(attrs.groups):
        chunk = data[:, g * per_in : (g + 1) * per_in]
        kernels = weight[g * per_in : (g + 1) * per_in]
        for offset in np.ndindex(*kernel):
            found = np.tensordot(chunk, kernels[(..., *offset)], axes=((1,), (0,)))
            position = tuple(
                slice(o * d, o * d + (n - 1) * s + 1, s)
                for o, d, n, s in zip(offset, attrs.dilation, size, attrs.strides, strict=True)
            )
            out[(slice(None), slice(g * per_out, (g + 1) * per_out), *position)] += np.moveaxis(
                found, -1, 1
            )
    ends = _extents(attrs, size, kernel)
    crop = tuple(slice(attrs.padding[a], attrs.padding[a] + ends[a]) for a in range(count))
    return np.asarray(out[(slice(None), slice(None), *crop)], order="C")


def _compute(
    attrs: ConvTransposeAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, weight = inputs
    (out,) = out_types
    count = len(attrs.strides)
    kernel = [size_of(d) for d in weight.shape[2:]]
    size = [size_of(d) for d in data.shape[2:]]
    per_out = size_of(weight.shape[1])
    per_in = size_of(data.shape[1]) // attrs.groups
    channel = te().reduce_axis((0, per_in), name="rc")
    taps = [
        te().reduce_axis((0, k), name=f"r{s.lower()}")
        for k, s in zip(kernel, SPATIAL[count], strict=True)
    ]

    def element(*i: PrimExpr) -> Any:
        n, c, *at = i
        first = channel if attrs.groups == 1 else (c // per_out) * per_in + channel
        column = c if attrs.groups == 1 else c % per_out
        source, inside = [], []
        for a in range(count):
            stride = attrs.strides[a]
            reach = at[a] + attrs.padding[a] - taps[a] * attrs.dilation[a]
            if stride == 1:
                position = reach
            else:
                position = te().floordiv(reach, stride)
                inside.append(ops.equal(te().floormod(reach, stride), 0))
            inside += [position >= 0, position < size[a]]
            source.append(position)
        zero = te().const(0, data.dtype)
        value = te().if_then_else(te().all(*inside), data(n, first, *source), zero)
        product = value.astype(out.dtype) * weight(first, column, *taps).astype(out.dtype)
        return te().sum(product, axis=[channel, *taps])

    name = f"conv{count}d_transpose_nc{SPATIAL[count].lower()}"
    return [te().compute(out.shape, element, name="conv_transpose", tag=name)]


def _flops(attrs: ConvTransposeAttrs, ins: Sequence[TensorType], out: TensorType) -> float:
    return 2.0 * ins[0].size * (ins[1].size // ins[1].shape[0])


def _check_named(
    shape: tuple[int, ...], channels: int | None, kernel_size: Any, groups: int
) -> None:
    """Compare the kernel with what `channels` and `kernel_size` say of it."""
    if len(shape) < 3:
        raise BadArgument("weight", f"must have axes for both channels and the window, got {shape}")
    filters = shape[1] * groups  # "OI" is the classic name of the same order
    if channels is not None and int(channels) != filters:
        raise BadArgument("channels", f"is {channels}, but the kernel makes {filters}")
    size = shape[2:]
    if kernel_size is not None and as_tuple(kernel_size, len(size), "kernel_size") != size:
        raise BadArgument("kernel_size", f"is {kernel_size}, but the kernel's is {size}")


def _ordered(argument: str, value: Any, layout: str, wanted: str) -> Any:
    """Return a tensor with its axes in another order."""
    if layout == wanted:
        return value
    if sorted(layout) != sorted(wanted):
        raise BadArgument(argument, f"is {layout!r}; it orders the letters {wanted}")
    return op_registry.make("transpose")(value, tuple(layout.index(axis) for axis in wanted))


def _implied(
    attrs: ConvTransposeAttrs, data: TensorType, weight: Type | None
) -> Sequence[Type | None]:
    channels = data.shape[1] if data.rank > 1 else None
    if attrs.channels is None or attrs.kernel_size is None or not isinstance(channels, int):
        return (data, weight)
    if attrs.groups < 1:
        return (data, weight)
    return weight_of(data, weight, (channels, attrs.channels // attrs.groups, *attrs.kernel_size))


def _register(count: int) -> OpDefinition:
    definition = register_op(
        f"nn.conv{count}d_transpose", "data", "weight", attrs=ConvTransposeAttrs,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        doc=f"The transpose of a convolution over {count} spatial axes.",
    )  # fmt: skip
    definition.type_relation(_relation)
    definition.implies(_implied)
    definition.reference(_reference)
    definition.compute(_compute)
    definition.flops(_flops)

    @definition.make
    def make(
        data: Any,
        weight: Any,
        strides: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        channels: int | None = None,
        kernel_size: Any = None,
        data_layout: str = "NC" + SPATIAL[count],
        kernel_layout: str = "IO" + SPATIAL[count],
        out_layout: str = "",
        output_padding: Any = 0,
        out_dtype: str = "",
    ) -> Call:
        if out_layout not in ("", data_layout):
            raise BadArgument("out_layout", f"is {out_layout!r}; use layout_transform after it")
        plain = "NC" + SPATIAL[count]
        data = _ordered("data_layout", data, data_layout, plain)
        weight = as_expr(weight)
        if kernel_layout != "OI" + SPATIAL[count]:  # the classic name of the same order
            weight = _ordered("kernel_layout", weight, kernel_layout, "IO" + SPATIAL[count])
        if weight.type is not None:
            _check_named(weight.tensor_type.shape, channels, kernel_size, groups)
        attrs = ConvTransposeAttrs(
            as_tuple(strides, count, "strides"),
            pad_amounts(padding, count),
            as_tuple(output_padding, count, "output_padding"),
            as_tuple(dilation, count, "dilation"),
            int(groups),
            out_dtype or "",
            None if channels is None else int(channels),
            None if kernel_size is None else as_tuple(kernel_size, count, "kernel_size"),
        )
        made: Call = _ordered(
            "out_layout", definition(data, weight, attrs=attrs), plain, data_layout
        )
        return made

    make.__name__, make.__doc__ = f"conv{count}d_transpose", definition.doc
    ones, twos = (1,) * count, (2,) * count
    size = (1, 4, 4, 3, 3)[: count + 2]
    definition.sample_case(
        size, (4, 3, *(3, 2, 2)[:count]),
        attrs=ConvTransposeAttrs(twos, ones * 2, ones, ones, 1),
    )  # fmt: skip
    definition.sample_case(
        size,
        (4, 1, *twos),
        attrs=ConvTransposeAttrs(ones, (0,) * (2 * count), (0,) * count, twos, 2),
    )
    return definition


CONV1D_TRANSPOSE, CONV2D_TRANSPOSE, CONV3D_TRANSPOSE = _register(1), _register(2), _register(3)
conv1d_transpose: Any = CONV1D_TRANSPOSE.make_function
conv2d_transpose: Any = CONV2D_TRANSPOSE.make_function
conv3d_transpose: Any = CONV3D_TRANSPOSE.make_function
