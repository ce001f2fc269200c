"""The gradients of pools over two axes: nn.max_pool2d_grad, nn.avg_pool2d_grad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.relay.expr import Call
from slipway.relay.op_registry import BadArgument, OpDefinition, OpPattern, register_op
from slipway.relay.ops.checks import need_dtype, need_float
from slipway.relay.ops.nn.pool import (
    PoolAttrs,
    padding_reached,
    pool_attrs,
    pool_relation,
    same_layout,
    spatial_axes,
)
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.relay.expr import Array, ExprLike, Extents


def _gradient_type(attrs: PoolAttrs, out_grad: TensorType, data: TensorType) -> Type:
    need_float("data", data)
    need_dtype("out_grad", out_grad, data.dtype, "the data")
    pooled = pool_relation(attrs, data)
    if out_grad != pooled:
        raise BadArgument("out_grad", f"must be {pooled} like the pool of {data}, got {out_grad}")
    return data


def _gradient_reference(attrs: PoolAttrs, out_grad: Array, data: Array, average: bool) -> Any:
    axes = spatial_axes(attrs.layout, None, 2)
    x, grads = (np.moveaxis(v.astype(np.float64), axes, (-2, -1)) for v in (data, out_grad))
    size, out = x.shape[-2:], grads.shape[-2:]
    before, after = attrs.padding[:2], attrs.padding[2:]
    full = padding_reached(attrs, size, out)
    around = [(0, 0)] * (x.ndim - 2) + [(full[a], full[a + 2]) for a in (0, 1)]
    padded = np.pad(x, around, constant_values=-np.inf)
    inside = np.pad(np.ones(x.shape, bool), around)
    made = np.zeros_like(padded)
    for at in np.ndindex(*out):
        starts = [n * step for n, step in zip(at, attrs.strides, strict=True)]
        (y, x0), (height, width) = starts, attrs.pool_size
        part = np.s_[..., y : y + height, x0 : x0 + width]
        grad = grads[..., at[0], at[1]]
        if average:
            taps = 1
            for a, (start, n) in enumerate(zip(starts, attrs.pool_size, strict=True)):
                low, high = before[a], before[a] + size[a]
                if attrs.count_include_pad:
                    low, high = 0, high + after[a]
                taps *= max(min(start + n, high) - max(start, low), 1)
            made[part] += (grad / taps)[..., None, None]
        else:
            window = padded[part]
            flat = window.reshape(*window.shape[:-2], -1)
            within = inside[part].reshape(flat.shape)
            largest = np.where(within, flat, -np.inf).max(-1, keepdims=True)
            is_largest = within & ((flat == largest) | np.isnan(flat) & np.isnan(largest))
            first = np.arange(flat.shape[-1]) == is_largest.argmax(-1)[..., None]
            given = np.where(first & is_largest, grad[..., None], 0.0)
            made[part] += given.reshape(window.shape)
    kept = made[..., before[0] : before[0] + size[0], before[1] : before[1] + size[1]]
    return np.asarray(np.moveaxis(kept.astype(data.dtype), (-2, -1), axes), order="C")


def _gradient_compute(attrs: PoolAttrs, inputs: list[Any], average: bool) -> list[Any]:
    from slipway.topi.nn.pooling_gradient import gradient_of_windows

    out_grad, data = inputs
    return [gradient_of_windows(
        out_grad, data, attrs.pool_size, attrs.strides, attrs.padding, "avg" if average else "max",
        attrs.ceil_mode, attrs.layout, attrs.count_include_pad,
    )]  # fmt: skip


def _register_gradient(average: bool) -> OpDefinition:
    kind = "avg" if average else "max"
    definition = register_op(
        f"nn.{kind}_pool2d_grad", "out_grad", "data", attrs=PoolAttrs,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        doc=f"The gradient by its data of nn.{kind}_pool2d, whose result has the given one.",
    )  # fmt: skip
    definition.type_relation(_gradient_type)
    definition.reference(lambda attrs, grad, x: _gradient_reference(attrs, grad, x, average))
    definition.compute(lambda attrs, inputs, out_types: _gradient_compute(attrs, inputs, average))
    definition.flops(lambda attrs, ins, out: float(ins[0].size * np.prod(attrs.pool_size)))
    for size, strides, padding, ceil, counted, pooled in (
        ((2, 2), (2, 2), (0, 0, 0, 0), False, False, (4, 4)),
        ((3, 2), (2, 1), (1, 0, 1, 1), True, False, (5, 8)),
        ((3, 3), (2, 3), (1, 1, 1, 0), True, average, (5, 3)),
    ):
        attrs = PoolAttrs(size, strides, (1, 1), padding, "NCHW", ceil, counted)
        definition.sample_case((2, 3, *pooled), (2, 3, 9, 8), attrs=attrs)
    last = PoolAttrs((2, 3), (2, 2), (1, 1), (0, 1, 0, 1), "NHWC")
    definition.sample_case((1, 3, 3, 4), (1, 6, 5, 4), attrs=last)
    return definition


MAX_POOL2D_GRAD, AVG_POOL2D_GRAD = _register_gradient(False), _register_gradient(True)


@MAX_POOL2D_GRAD.make
def max_pool2d_grad(
    out_grad: ExprLike,
    data: ExprLike,
    pool_size: Extents = (1, 1),
    strides: Extents = (1, 1),
    padding: Extents = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> Call:
    """Return `out_grad` at the first maximum of each window of `data`, summed over windows."""
    same_layout(layout, out_layout)
    attrs = pool_attrs(2, pool_size, strides, 1, padding, layout, ceil_mode)
    return MAX_POOL2D_GRAD(out_grad, data, attrs=attrs)


@AVG_POOL2D_GRAD.make
def avg_pool2d_grad(
    out_grad: ExprLike,
    data: ExprLike,
    pool_size: Extents = (1, 1),
    strides: Extents = (1, 1),
    padding: Extents = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Call:
    """Return `out_grad` in equal parts on each window's elements, summed over windows."""
    same_layout(layout, out_layout)
    attrs = pool_attrs(2, pool_size, strides, 1, padding, layout, ceil_mode, count_include_pad)
    return AVG_POOL2D_GRAD(out_grad, data, attrs=attrs)
