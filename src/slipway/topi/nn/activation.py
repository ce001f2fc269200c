"""Activations, normalisation and scaling of single elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.ir import ops
from slipway.te import math
from slipway.te.declare import compute, const
from slipway.te.tensor import Tensor
from slipway.topi.products import check_equal
from slipway.topi.tag import BROADCAST, ELEMWISE
from slipway.topi.utils import normalize_axis

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr


def relu(x: Tensor) -> Tensor:
    """Return the elements, 0 for negative ones."""
    zero = const(0, x.dtype)
    return compute(x.shape, lambda *i: ops.maximum(x(*i), zero), "relu", ELEMWISE)  # type: ignore[no-any-return]


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """Return the elements, negative ones multiplied by `alpha`."""

    def element(*i: Any) -> Any:
        value = x(*i)
        return ops.select(ops.greater(value, const(0, x.dtype)), value, value * alpha)

    return compute(x.shape, element, "leaky_relu", ELEMWISE)  # type: ignore[no-any-return]


def sigmoid(x: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x))."""
    return compute(x.shape, lambda *i: math.sigmoid(x(*i)), "sigmoid", ELEMWISE)  # type: ignore[no-any-return]


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """Return the elements, negative ones multiplied by the `slope` of their place along `axis`."""
    at = normalize_axis(axis, x.ndim)
    check_equal(f"prelu of {x.shape} by slopes of shape {slope.shape}", slope.shape[0], x.shape[at])

    def element(*i: PrimExpr) -> Any:
        value = x(*i)
        return ops.select(ops.greater(value, const(0, x.dtype)), value, value * slope(i[at]))

    return compute(x.shape, element, "prelu", BROADCAST)  # type: ignore[no-any-return]


def _scale_shift(data: Tensor, scale: Tensor, shift: Tensor, axis: int) -> Tensor:
    element = lambda *i: ops.add(ops.mul(data(*i), scale(i[axis])), shift(i[axis]))  # noqa: E731
    return compute(data.shape, element, "scale_shift", BROADCAST)  # type: ignore[no-any-return]


def scale_shift_nchw(data: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Return data (N, C, H, W) times `scale` plus `shift`, both of one number per channel."""
    return _scale_shift(data, scale, shift, 1)


def scale_shift_nchwc(data: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Return data (N, C, H, W, c) times `scale` plus `shift`, both (C, c)."""

    def element(n: Any, outer: Any, y: Any, x: Any, inner: Any) -> Any:
        scaled = ops.mul(data(n, outer, y, x, inner), scale(outer, inner))
        return ops.add(scaled, shift(outer, inner))

    return compute(data.shape, element, "scale_shift", BROADCAST)  # type: ignore[no-any-return]


def scale_shift_nhwc(data: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Return data (N, H, W, C) times `scale` plus `shift`, both of one number per channel."""
    return _scale_shift(data, scale, shift, 3)


def batch_norm(
    data: Tensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor, moving_var: Tensor,
    axis: int | None = None, epsilon: float | None = None, center: bool | None = None,
    scale: bool | None = None,
) -> list[Tensor]:  # fmt: skip
    """Return `data` normalised along `axis` (1 without it), and the mean and variance as given."""
    at = normalize_axis(1 if axis is None else axis, data.ndim)
    small = const(1e-5 if epsilon is None else epsilon, data.dtype)

    def element(*i: PrimExpr) -> Any:
        spread = math.sqrt(ops.add(moving_var(i[at]), small))
        value = ops.div(ops.sub(data(*i), moving_mean(i[at])), spread)
        value = value if scale is False else ops.mul(value, gamma(i[at]))
        return value if center is False else ops.add(value, beta(i[at]))

    given = (compute(x.shape, x, x.op.name) for x in (moving_mean, moving_var))
    return [compute(data.shape, element, "batch_norm"), *given]
