"""``relay.qnn.op``: quantised operators under their classic names and signatures.

They are compositions: integer sums, then one `rescale` by the rule of docs/quantization.md.
Scales and zero points are constants: numbers, arrays, or ``relay.const``.  The operators of the
registry are here too, without their "qnn." (``relay.qnn.op.rescale``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import TypeInferenceError, did_you_mean
from slipway.relay import op_registry
from slipway.relay.expr import Constant, Expr
from slipway.relay.op_registry import as_expr, const
from slipway.relay.ops.explained import explained
from slipway.relay.ops.qnn.rescale import rescale_by
from slipway.relay.qnn.config import (
    RequantizeConfig,
    current_requantize_config,
    requantize_config,
)
from slipway.relay.qnn.simulated import simulated_dequantize, simulated_quantize
from slipway.relay.qnn.unary import (
    abs,
    erf,
    exp,
    hardswish,
    leaky_relu,
    log,
    rsqrt,
    sigmoid,
    sqrt,
    tanh,
)

__all__ = [
    "RequantizeConfig", "abs", "add", "batch_matmul", "concatenate", "conv2d", "conv2d_transpose",
    "current_requantize_config", "dense", "erf", "exp", "hardswish", "leaky_relu", "log", "mul",
    "requantize", "requantize_config", "rsqrt", "sigmoid", "simulated_dequantize",
    "simulated_quantize", "sqrt", "subtract", "tanh",
]  # fmt: skip

if TYPE_CHECKING:
    from slipway.relay.expr import ExprLike, Extents


def _make(name: str) -> Any:
    return op_registry.make(name)


def _array(value: ExprLike, what: str) -> np.ndarray[Any, Any]:
    if isinstance(value, Constant):
        return value.array
    if isinstance(value, Expr):
        raise TypeInferenceError(f"argument {what!r} must be a constant, got an expression")
    return np.asarray(value)


def _along(values: np.ndarray[Any, Any], rank: int, axis: int) -> np.ndarray[Any, Any]:
    """Shape one value per channel so that it broadcasts along `axis`."""
    if values.size == 1:
        return values.reshape(())
    view = [1] * rank
    view[axis % rank] = values.size
    return values.reshape(view)


def _centered(data: ExprLike, zero_point: ExprLike, axis: int, what: str) -> Any:
    """Return `data` as int32 less its zero point, which a run may compute."""
    given = as_expr(data)
    wide = _make("cast")(given, "int32")
    if isinstance(zero_point, Expr) and not isinstance(zero_point, Constant):
        return _make("subtract")(wide, _computed(zero_point, given.tensor_type.rank, axis, what))
    zeros = _along(_array(zero_point, what), given.tensor_type.rank, axis)
    return _make("subtract")(wide, const(zeros, "int32")) if zeros.any() else wide


def _computed(zero_point: Expr, rank: int, axis: int, what: str) -> Any:
    """Return zero points that a run computes as int32 that broadcasts along `axis`."""
    shape = zero_point.tensor_type.shape
    if len(shape) > 1:
        raise TypeInferenceError(f"argument {what!r} must be one number, or one for each channel")
    view = tuple(shape[0] if d == axis % rank else 1 for d in range(rank)) if shape else ()
    wide = _make("cast")(zero_point, "int32")
    return _make("reshape")(wide, view) if shape else wide


def _stored(value: Expr, zero_point: Any, dtype: str, axis: int = -1) -> Any:
    """Add the zero point, clamp to `dtype` and narrow."""
    info = np.iinfo(dtype)
    zeros = _along(_array(zero_point, "output_zero_point"), value.tensor_type.rank, axis)
    shifted = _make("add")(value, const(zeros, "int32")) if zeros.any() else value
    return _make("cast")(_make("clip")(shifted, info.min, info.max), dtype)


def requantize(
    data: ExprLike,
    input_scale: ExprLike,
    input_zero_point: ExprLike,
    output_scale: ExprLike,
    output_zero_point: ExprLike,
    axis: int = -1,
    rounding: str | None = None,
    compute_dtype: str | None = None,
    out_dtype: str = "int8",
) -> Any:
    """Bring integers of one scale to another; scales may be one per channel of `axis`.

    `rounding` says where a half goes: "UPWARD" to the next integer above, "TONEAREST" away from
    zero; None is the rule of docs/quantization.md, which rounds twice.  `compute_dtype` "int64"
    (and None) multiplies by a factor of 31 bits, "float32" and "float64" by the real one; there
    None rounds upward.  Where they are None, those of a `requantize_config` around count.
    """
    config = current_requantize_config()
    rounding = _chosen("rounding", (rounding, config.rounding), _ROUNDINGS)
    compute_dtype = _chosen("compute_dtype", (compute_dtype, config.compute_dtype), _COMPUTED_IN)
    given = as_expr(data)
    rank = given.tensor_type.rank
    value = _centered(given, input_zero_point, axis, "input_zero_point")
    scales, wanted = (
        _along(_array(scale, name).astype(np.float64), rank, axis)
        for scale, name in ((input_scale, "input_scale"), (output_scale, "output_scale"))
    )
    factor = scales / wanted
    if compute_dtype in ("float32", "float64"):
        whole = _rounded_real(value, factor, rounding or "UPWARD", compute_dtype)
    elif rounding == "UPWARD":
        whole = rescale_by(value, factor, once=True)
    elif rounding == "TONEAREST":
        whole = _rescale_away_from_zero(value, factor)
    else:
        whole = rescale_by(value, factor)
    return _stored(whole, output_zero_point, out_dtype, axis)


_ROUNDINGS = ("UPWARD", "TONEAREST")
_COMPUTED_IN = ("int64", "float32", "float64")


def _chosen(what: str, given: tuple[str | None, ...], known: tuple[str, ...]) -> str | None:
    """Return the first that is not None (classic: or "None")."""
    for choice in given:
        if choice is None or choice == "None":
            continue
        if choice not in known:
            raise TypeInferenceError(
                f"requantize: {what} is {choice!r}, not one of {', '.join(known)}, None."
                f"{did_you_mean(str(choice), known)}"
            )
        return choice
    return None


def _rescale_away_from_zero(value: ExprLike, factor: ExprLike) -> Any:
    """Halves upward for what is positive, mirrored for what is not."""
    minimum = const(-(2**31) + 1, "int32")  # its magnitude is a number of int32
    clamped = _make("maximum")(value, minimum)
    size = rescale_by(_make("abs")(clamped), factor, once=True)
    below = _make("less")(value, const(0, "int32"))
    return _make("where")(below, _make("negative")(size), size)


def _rounded_real(value: ExprLike, factor: ExprLike, rounding: str, dtype: str) -> Any:
    """Round value * factor, computed in `dtype`, to int32; halves by `rounding`."""
    real = _make("multiply")(_make("cast")(value, dtype), const(factor, dtype))
    bound = const(2.0**31 - 128, dtype)
    real = _make("maximum")(_make("minimum")(real, bound), _make("negative")(bound))
    if rounding == "UPWARD":
        whole = _make("floor")(real)
        far = _make("greater_equal")(_make("subtract")(real, whole), const(0.5, dtype))
        return _make("add")(_make("cast")(whole, "int32"), _make("cast")(far, "int32"))
    whole = _make("trunc")(real)
    fraction = _make("subtract")(real, whole)
    up = _make("cast")(_make("greater_equal")(fraction, const(0.5, dtype)), "int32")
    down = _make("cast")(_make("less_equal")(fraction, const(-0.5, dtype)), "int32")
    return _make("add")(_make("cast")(whole, "int32"), _make("subtract")(up, down))


def conv2d(
    data: ExprLike,
    kernel: ExprLike,
    input_zero_point: ExprLike,
    kernel_zero_point: ExprLike,
    input_scale: ExprLike,
    kernel_scale: ExprLike,
    kernel_size: Extents,
    channels: int,
    strides: Extents = (1, 1),
    padding: Extents = (0, 0),
    dilation: Extents = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "int32",
) -> Any:
    """Convolve quantised images; the result is the int32 sums, of scale input * kernel."""
    return _make("nn.conv2d")(
        _centered(data, input_zero_point, -1, "input_zero_point"),
        _centered(kernel, kernel_zero_point, kernel_layout.index("O"), "kernel_zero_point"),
        strides, padding, dilation, groups, channels, kernel_size, data_layout, kernel_layout,
        out_layout, out_dtype,
    )  # fmt: skip


def dense(
    data: ExprLike,
    weight: ExprLike,
    input_zero_point: ExprLike,
    kernel_zero_point: ExprLike,
    input_scale: ExprLike,
    kernel_scale: ExprLike,
    units: int | None = None,
    out_dtype: str = "int32",
) -> Any:
    """Multiply quantised data (..., K) by the transpose of weight (units, K), as int32 sums."""
    return _make("nn.dense")(
        _centered(data, input_zero_point, -1, "input_zero_point"),
        _centered(weight, kernel_zero_point, 0, "kernel_zero_point"),
        units,
        out_dtype,
    )


def conv2d_transpose(
    data: ExprLike,
    weight: ExprLike,
    input_zero_point: ExprLike,
    kernel_zero_point: ExprLike,
    input_scale: ExprLike,
    kernel_scale: ExprLike,
    strides: Extents = (1, 1),
    padding: Extents = (0, 0),
    dilation: Extents = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Extents | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: Extents = (0, 0),
    out_dtype: str = "int32",
) -> Any:
    """Convolve quantised images transposed; the result is the int32 sums."""
    return _make("nn.conv2d_transpose")(
        _centered(data, input_zero_point, -1, "input_zero_point"),
        _centered(weight, kernel_zero_point, kernel_layout.index("O"), "kernel_zero_point"),
        strides, padding, dilation, groups, channels, kernel_size, data_layout, kernel_layout,
        out_layout, output_padding, out_dtype,
    )  # fmt: skip


def batch_matmul(
    x: ExprLike,
    y: ExprLike,
    x_zero_point: ExprLike,
    y_zero_point: ExprLike,
    x_scale: ExprLike,
    y_scale: ExprLike,
    out_dtype: str = "int32",
) -> Any:
    """Multiply quantised x (B, M, K) by the transposes of y (B, N, K), as int32 sums."""
    return _make("nn.batch_matmul")(
        _centered(x, x_zero_point, -1, "x_zero_point"),
        _centered(y, y_zero_point, -1, "y_zero_point"),
        out_dtype=out_dtype,
        transpose_a=False,
        transpose_b=True,
    )


def _sides(
    lhs: ExprLike, rhs: ExprLike, scales: Sequence[Any], zeros: Sequence[Any], axes: Sequence[int]
) -> tuple[list[Any], float]:
    """Bring both sides to one scale, with 20 bits of fraction; return them and that scale."""
    real = [float(_array(s, "scale")) for s in scales]
    twice = 2.0 * max(real)
    sides = [
        rescale_by(
            _make("left_shift")(_centered(v, z, axis, "zero_point"), const(20, "int32")), s / twice
        )
        for v, s, z, axis in zip((lhs, rhs), real, zeros, axes, strict=True)
    ]
    return sides, twice / (1 << 20)


def add(
    lhs: ExprLike,
    rhs: ExprLike,
    lhs_scale: ExprLike,
    lhs_zero_point: ExprLike,
    rhs_scale: ExprLike,
    rhs_zero_point: ExprLike,
    output_scale: ExprLike,
    output_zero_point: ExprLike,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> Any:
    """Add quantised tensors of different scales, as TFLite does."""
    return _sum(
        "add", lhs, rhs, (lhs_scale, rhs_scale), (lhs_zero_point, rhs_zero_point), output_scale,
        output_zero_point, (lhs_axis, rhs_axis),
    )  # fmt: skip


def subtract(
    lhs: ExprLike,
    rhs: ExprLike,
    lhs_scale: ExprLike,
    lhs_zero_point: ExprLike,
    rhs_scale: ExprLike,
    rhs_zero_point: ExprLike,
    output_scale: ExprLike,
    output_zero_point: ExprLike,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> Any:
    """Subtract quantised tensors of different scales, as TFLite does."""
    return _sum(
        "subtract", lhs, rhs, (lhs_scale, rhs_scale), (lhs_zero_point, rhs_zero_point),
        output_scale, output_zero_point, (lhs_axis, rhs_axis),
    )  # fmt: skip


def _sum(
    name: str,
    lhs: ExprLike,
    rhs: ExprLike,
    scales: Sequence[Any],
    zeros: Sequence[Any],
    out_scale: ExprLike,
    out_zero: ExprLike,
    axes: Sequence[int],
) -> Any:
    sides, scale = _sides(lhs, rhs, scales, zeros, axes)
    total = _make(name)(*sides)
    real = scale / float(_array(out_scale, "output_scale"))
    return _stored(rescale_by(total, real), out_zero, as_expr(lhs).tensor_type.dtype)


def mul(
    lhs: ExprLike,
    rhs: ExprLike,
    lhs_scale: ExprLike,
    lhs_zero_point: ExprLike,
    rhs_scale: ExprLike,
    rhs_zero_point: ExprLike,
    output_scale: ExprLike,
    output_zero_point: ExprLike,
    lhs_axis: int = -1,
    rhs_axis: int = -1,
) -> Any:
    """Multiply quantised tensors."""
    product = _make("multiply")(
        _centered(lhs, lhs_zero_point, lhs_axis, "lhs_zero_point"),
        _centered(rhs, rhs_zero_point, rhs_axis, "rhs_zero_point"),
    )
    real = float(_array(lhs_scale, "lhs_scale")) * float(_array(rhs_scale, "rhs_scale"))
    real /= float(_array(output_scale, "output_scale"))
    return _stored(rescale_by(product, real), output_zero_point, as_expr(lhs).tensor_type.dtype)


def concatenate(
    data: Sequence[Any],
    input_scales: Sequence[Any],
    input_zero_points: Sequence[Any],
    output_scale: ExprLike,
    output_zero_point: ExprLike,
    axis: int,
) -> Any:
    """Concatenate quantised tensors, each brought to the output's scale."""
    parts = []
    for value, scale, zero in zip(data, input_scales, input_zero_points, strict=True):
        dtype = as_expr(value).tensor_type.dtype
        same = float(_array(scale, "input_scales")) == float(_array(output_scale, "output_scale"))
        same &= int(_array(zero, "input_zero_points")) == int(_array(output_zero_point, "zero"))
        if not same:
            value = requantize(value, scale, zero, output_scale, output_zero_point, out_dtype=dtype)
        parts.append(value)
    return _make("concatenate")(parts, axis)


def __dir__() -> list[str]:
    own = {n for n, v in globals().items() if getattr(v, "__module__", "") == __name__}
    listed = {n[4:] for n in op_registry.load_ops() if n.startswith("qnn.")}
    return sorted(n for n in own | listed if not n.startswith("_"))


def __getattr__(name: str) -> Any:
    definition = None if name.startswith("_") else op_registry.load_ops().get(f"qnn.{name}")
    if definition is None:
        known = [n[4:] for n in op_registry.OPS if n.startswith("qnn.")]
        hint = did_you_mean(name, [*known, *globals()])
        raise AttributeError(f"module 'slipway.relay.qnn.op' has no attribute {name!r}.{hint}")
    globals()[name] = value = explained(definition.make_function)
    return value
