"""qnn.avg_pool2d: integer averages over windows of channels-last data, halves away from zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay.dims import size_of
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, OpPattern, register_op
from slipway.relay.ops.checks import as_tuple, need_integral, need_rank, pad_amounts
from slipway.relay.ops.nn.windows import conv_extents, pad_array, pad_stage, windows
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike, Extents


@node
class IntegerPoolAttrs(Attrs):
    """Windows over height and width; `padding` is top, left, bottom, right and never counted."""

    pool_size: tuple[int, ...] = (2, 2)
    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)


AVG_POOL = register_op(
    "qnn.avg_pool2d", "data", attrs=IntegerPoolAttrs, pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    doc="Averages of the elements inside each window of (N, H, W, C), rounded half away from zero.",
)  # fmt: skip


def _extents(attrs: IntegerPoolAttrs, shape: tuple[int, ...]) -> tuple[int, ...]:
    return conv_extents(shape[1:3], attrs.pool_size, attrs.strides, attrs.padding, (1, 1))


def _counts(attrs: IntegerPoolAttrs, shape: tuple[int, ...]) -> Any:
    """How many elements each window holds, (1, H, W, 1)."""
    ones = pad_array(np.ones((1, 1, *shape[1:3]), np.int32), attrs.padding, 0)
    found = windows(ones, attrs.pool_size, attrs.strides, (1, 1)).sum(axis=(4, 5))
    return found.transpose(0, 2, 3, 1)


@AVG_POOL.type_relation
def _avg_pool_type(attrs: IntegerPoolAttrs, data: TensorType) -> Type:
    need_integral("data", data)
    need_rank("data", data, 4)
    height, width = _extents(attrs, data.shape)
    return TensorType((data.shape[0], height, width, data.shape[3]), data.dtype)


@AVG_POOL.reference
def _avg_pool_reference(attrs: IntegerPoolAttrs, data: Array) -> Any:
    plain = pad_array(data.transpose(0, 3, 1, 2).astype(np.int64), attrs.padding, 0)
    total = windows(plain, attrs.pool_size, attrs.strides, (1, 1)).sum(axis=(4, 5))
    total, count = total.transpose(0, 2, 3, 1), _counts(attrs, data.shape)
    rounded = (np.abs(total) + count // 2) // count
    return np.where(total > 0, rounded, -rounded).astype(data.dtype)


@AVG_POOL.compute
def _avg_pool_compute(
    attrs: IntegerPoolAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (data,) = inputs
    (out,) = out_types
    height, width = (size_of(d) for d in data.shape[1:3])
    (kh, kw), (sy, sx), (top, left, bottom, right) = attrs.pool_size, attrs.strides, attrs.padding
    padded = pad_stage(data, (0, top, left, 0), (0, bottom, right, 0), 0)
    ry, rx = te().reduce_axis((0, kh), name="ry"), te().reduce_axis((0, kw), name="rx")
    total = te().compute(
        out.shape,
        lambda n, y, x, c: te().sum(
            padded(n, y * sy + ry, x * sx + rx, c).astype("int32"), axis=[ry, rx]
        ),
        name="pool_sum",
        tag="pool_sum",
    )

    def inside(at: PrimExpr, stride: int, kernel: int, before: int, extent: int) -> Any:
        start = at * stride - before
        return te().min(start + kernel, extent) - te().max(start, 0)

    def element(n: PrimExpr, y: PrimExpr, x: PrimExpr, c: PrimExpr) -> Any:
        if top or left or bottom or right:
            count = inside(y, sy, kh, top, height) * inside(x, sx, kw, left, width)
        else:
            count = te().const(kh * kw, "int32")
        half = te().truncdiv(count, te().const(2, "int32"))
        value = total(n, y, x, c)
        nudged = te().select(value > te().const(0, "int32"), value + half, value - half)
        return te().truncdiv(nudged, count).astype(out.dtype)

    return [te().compute(out.shape, element, name="avg_pool", tag="qnn_avg_pool2d")]


@AVG_POOL.make
def avg_pool2d(
    data: ExprLike,
    pool_size: Extents = (2, 2),
    strides: Extents = (1, 1),
    padding: Extents = (0, 0, 0, 0),
) -> Call:
    """Average windows of (N, H, W, C) integers; what lies outside the data is not counted."""
    attrs = IntegerPoolAttrs(
        as_tuple(pool_size, 2, "pool_size"), as_tuple(strides, 2, "strides"),
        pad_amounts(padding, 2),
    )  # fmt: skip
    return AVG_POOL(data, attrs=attrs)


AVG_POOL.sample_case(
    (1, 6, 6, 5), attrs=IntegerPoolAttrs((2, 2), (2, 2)), dtypes=("int8",), low=-128, high=127
)
AVG_POOL.sample_case(
    (1, 5, 7, 16), attrs=IntegerPoolAttrs((3, 3), (1, 2), (1, 1, 1, 1)), dtypes=("int8",),
    low=-128, high=127,
)  # fmt: skip
AVG_POOL.sample_case(
    (1, 4, 4, 3), attrs=IntegerPoolAttrs((4, 4)), dtypes=("uint8",), low=0, high=255
)
