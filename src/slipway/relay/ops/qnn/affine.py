"""qnn.quantize and qnn.dequantize: between real numbers and the integers that store them.

They mark where a model leaves and enters real arithmetic; the pass `integer_arithmetic` removes
them from between operators that it can compute on the integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir.node import node
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import need_dtype, need_float, need_integral, normal_axis
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike

STORED = ("int8", "uint8", "int16", "uint16", "int32")


@node
class AffineAttrs(Attrs):
    """`axis` of scales and zero points that are vectors; `out_dtype` of the result."""

    axis: int = -1
    out_dtype: str = "int8"


def _check(attrs: AffineAttrs, data: TensorType, scale: TensorType, zero: TensorType) -> None:
    need_float("scale", scale)
    need_dtype("zero_point", zero, "int32", "every zero point")
    for name, kind in (("scale", scale), ("zero_point", zero)):
        if kind.rank > 1:
            raise BadArgument(name, f"must be one number or one per channel, got {kind}")
        if kind.rank == 1:
            axis = normal_axis(attrs.axis, data.rank)
            if kind.shape[0] != data.shape[axis]:
                raise BadArgument(name, f"is {kind}, but axis {axis} of the data, {data}, differs")


def along(values: Array, rank: int, axis: int) -> Any:
    """Return an array of rank 0 or 1 shaped to broadcast along `axis` of `rank` axes."""
    if values.ndim == 0:
        return values
    view = [1] * rank
    view[axis % rank] = values.size
    return values.reshape(view)


def _element(values: Any, indices: Sequence[Any], axis: int) -> Any:
    return values() if len(values.shape) == 0 else values(indices[axis % len(indices)])


QUANTIZE = register_op(
    "qnn.quantize", "data", "scale", "zero_point", attrs=AffineAttrs,
    pattern=OpPattern.BROADCAST, flops_per_element=4,
    doc="round(data / scale) + zero point, halves to even, held inside the result's dtype.",
)  # fmt: skip


@QUANTIZE.type_relation
def _quantize_type(
    attrs: AffineAttrs, data: TensorType, scale: TensorType, zero: TensorType
) -> Type:
    need_dtype("data", data, "float32", "the real numbers that are quantised")
    if attrs.out_dtype not in STORED:
        raise BadArgument("out_dtype", f"is {attrs.out_dtype!r}, not one of {', '.join(STORED)}")
    _check(attrs, data, scale, zero)
    return TensorType(data.shape, attrs.out_dtype)


# Far beyond every stored dtype but int32, exact in float32, and safe to convert.
_BOUND = float(1 << 24)


def _bound(dtype: str) -> float:
    return 2147483520.0 if dtype == "int32" else _BOUND


@QUANTIZE.reference
def _quantize_reference(attrs: AffineAttrs, data: Array, scale: Array, zero: Array) -> Any:
    low, high = dtypes.int_range(attrs.out_dtype)
    bound = _bound(attrs.out_dtype)
    scaled = np.round(data / along(scale.astype(np.float32), data.ndim, attrs.axis))
    whole = np.clip(np.nan_to_num(scaled, nan=0.0, posinf=bound, neginf=-bound), -bound, bound)
    shifted = whole.astype(np.int64) + along(zero, data.ndim, attrs.axis)
    return np.clip(shifted, low, high).astype(attrs.out_dtype)


@QUANTIZE.compute
def _quantize_compute(
    attrs: AffineAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, scale, zero = inputs
    low, high = dtypes.int_range(attrs.out_dtype)
    bound = _bound(attrs.out_dtype)
    wide = "int64" if attrs.out_dtype == "int32" else "int32"

    def element(*i: PrimExpr) -> Any:
        value = data(*i)
        ratio = te().nearbyint(value / _element(scale, i, attrs.axis).astype("float32"))
        held = te().max(
            te().min(ratio, te().const(bound, "float32")), -te().const(bound, "float32")
        )
        held = te().select(te().isnan(ratio), te().const(0.0, "float32"), held)
        shifted = held.astype(wide) + _element(zero, i, attrs.axis).astype(wide)
        shifted = te().max(te().min(shifted, te().const(high, wide)), te().const(low, wide))
        return shifted.astype(attrs.out_dtype)

    return [te().compute(out_types[0].shape, element, name="T_quantize", tag="broadcast")]


@QUANTIZE.make
def quantize(
    data: ExprLike,
    output_scale: ExprLike,
    output_zero_point: ExprLike,
    axis: int = -1,
    out_dtype: str = "int8",
) -> Call:
    """Turn real numbers into integers: round(data / scale) + zero point, halves to even."""
    scale, zero = as_expr(output_scale, "float32"), as_expr(output_zero_point, "int32")
    return QUANTIZE(data, scale, zero, attrs=AffineAttrs(int(axis), out_dtype))


DEQUANTIZE = register_op(
    "qnn.dequantize", "data", "scale", "zero_point", attrs=AffineAttrs,
    pattern=OpPattern.BROADCAST, flops_per_element=2,
    doc="scale * (data - zero point), in floating point.",
)  # fmt: skip


@DEQUANTIZE.type_relation
def _dequantize_type(
    attrs: AffineAttrs, data: TensorType, scale: TensorType, zero: TensorType
) -> Type:
    need_integral("data", data)
    if data.dtype not in STORED:
        raise BadArgument("data", f"is {data}; its dtype must be one of {', '.join(STORED)}")
    if attrs.out_dtype not in ("float16", "float32", "float64"):
        raise BadArgument("out_dtype", f"is {attrs.out_dtype!r}, not a floating point type")
    _check(attrs, data, scale, zero)
    return TensorType(data.shape, attrs.out_dtype)


@DEQUANTIZE.reference
def _dequantize_reference(attrs: AffineAttrs, data: Array, scale: Array, zero: Array) -> Any:
    whole = data.astype(np.int32) - along(zero, data.ndim, attrs.axis)
    factor = along(scale.astype(attrs.out_dtype), data.ndim, attrs.axis)
    return (whole.astype(attrs.out_dtype) * factor).astype(attrs.out_dtype)


@DEQUANTIZE.compute
def _dequantize_compute(
    attrs: AffineAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, scale, zero = inputs

    def element(*i: PrimExpr) -> Any:
        whole = data(*i).astype("int32") - _element(zero, i, attrs.axis)
        factor = _element(scale, i, attrs.axis).astype(attrs.out_dtype)
        return whole.astype(attrs.out_dtype) * factor

    return [te().compute(out_types[0].shape, element, name="T_dequantize", tag="broadcast")]


@DEQUANTIZE.make
def dequantize(
    data: ExprLike,
    input_scale: ExprLike,
    input_zero_point: ExprLike,
    axis: int = -1,
    out_dtype: str = "float32",
) -> Call:
    """Turn integers into real numbers: scale * (data - zero point)."""
    scale, zero = as_expr(input_scale, "float32"), as_expr(input_zero_point, "int32")
    return DEQUANTIZE(data, scale, zero, attrs=AffineAttrs(int(axis), out_dtype))


def _factors(rng: np.random.Generator, count: tuple[int, ...]) -> tuple[Any, Any]:
    scale = np.asarray(rng.uniform(0.01, 0.2, count), np.float32)
    return scale, np.asarray(rng.integers(-20, 20, count), np.int32)


def _cases(shape: tuple[int, ...], count: tuple[int, ...], axis: int, dtype: str) -> None:
    def reals(rng: np.random.Generator) -> Any:
        return [rng.uniform(-8, 8, shape).astype(np.float32), *_factors(rng, count)]

    def integers(rng: np.random.Generator) -> Any:
        low, high = max(dtypes.int_range(dtype)[0], -30000), min(dtypes.int_range(dtype)[1], 30000)
        return [rng.integers(low, high, shape).astype(dtype), *_factors(rng, count)]

    kinds = ("float32", "float32", "int32")
    QUANTIZE.sample_case(
        shape, count, count, attrs=AffineAttrs(axis, dtype), dtypes=kinds, make=reals
    )
    DEQUANTIZE.sample_case(
        shape, count, count, attrs=AffineAttrs(axis, "float32"),
        dtypes=(dtype, "float32", "int32"), make=integers,
    )  # fmt: skip


_cases((3, 5, 8), (), -1, "int8")
_cases((2, 6, 4), (6,), 1, "uint8")
_cases((2, 33), (), -1, "int16")
_cases((4, 7), (4,), 0, "int32")


def _halves(rng: np.random.Generator) -> Any:
    """Every result lies at a half."""
    data = (rng.permutation(64) - 32 + 0.5) * 0.25
    return [data.astype(np.float32), np.float32(0.25), np.int32(3)]


QUANTIZE.sample_case(
    (64,), (), (), attrs=AffineAttrs(-1, "int8"), dtypes=("float32", "float32", "int32"),
    make=_halves,
)  # fmt: skip
