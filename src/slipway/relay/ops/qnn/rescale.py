"""qnn.rescale: int32 or int64 accumulators times a real factor, by the rule of requantisation.

`relay.quantization` holds the rule in NumPy; `rescaled` here is the same arithmetic on te
expressions, for other integer operators to build on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir.node import node
from slipway.relay import quantization
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, BadArgument, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import broadcast_shapes, need_dtype
from slipway.relay.ops.tensor.tensors import read_broadcast, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike


def doubling_high_multiply(a: PrimExpr, b: PrimExpr) -> Any:
    """The te form of `quantization.doubling_high_multiply`, for factors that never saturate."""
    product = a.astype("int64") * b.astype("int64")
    nudged = product + te().const(1 << 30, "int64")
    return (nudged >> te().const(31, "int64")).astype("int32")


def saturating_shift_left(value: PrimExpr, amount: int) -> Any:
    """Return an int32 times 2**amount, the nearest end of int32 where that is beyond it."""
    wide = value.astype("int64") << te().const(amount, "int64")
    low, high = (te().const(v, "int64") for v in (quantization.INT32_MIN, quantization.INT32_MAX))
    return te().min(te().max(wide, low), high).astype("int32")


def rounding_divide_by_power_of_two(x: PrimExpr, exponent: PrimExpr) -> Any:
    """The te expression of `quantization.rounding_divide_by_power_of_two`."""
    one, zero = te().const(1, "int32"), te().const(0, "int32")
    mask = (one << exponent) - one
    threshold = (mask >> one) + te().select(x < zero, one, zero)
    return (x >> exponent) + te().select((x & mask) > threshold, one, zero)


def rescaled(x: PrimExpr, multiplier: PrimExpr, shift: PrimExpr) -> Any:
    """The te expression of `quantization.multiply_by_quantized_multiplier`."""
    if x.dtype == "int64":
        reduced = (
            te()
            .select(
                multiplier < te().const(0x7FFF0000, "int32"),
                (multiplier + te().const(1 << 15, "int32")) >> te().const(16, "int32"),
                te().const(0x7FFF, "int32"),
            )
            .astype("int64")
        )
        total = (te().const(15, "int32") - shift).astype("int64")
        one = te().const(1, "int64")
        return ((x * reduced + (one << (total - one))) >> total).astype("int32")
    zero = te().const(0, "int32")
    left, right = te().max(shift, zero), te().max(zero - shift, zero)
    return rounding_divide_by_power_of_two(doubling_high_multiply(x << left, multiplier), right)


def rescaled_once(x: PrimExpr, multiplier: PrimExpr, shift: PrimExpr) -> Any:
    """The te form of `quantization.multiply_with_one_rounding`."""
    total = (te().const(31, "int32") - shift).astype("int64")
    one = te().const(1, "int64")
    if x.dtype == "int64":
        wide, half, digits = (
            multiplier.astype("int64"),
            one << (total - one),
            te().const(15, "int64"),
        )
        low = ((x & te().const(0x7FFF, "int64")) * wide + half) >> digits
        return (((x >> digits) * wide + low) >> (total - digits)).astype("int32")
    product = x.astype("int64") * multiplier.astype("int64")
    return ((product + (one << (total - one))) >> total).astype("int32")


@node
class RescaleAttrs(Attrs):
    """`once`: round a single time, as LiteRT's matrix products do."""

    once: bool = False


RESCALE = register_op(
    "qnn.rescale", "data", "multiplier", "shift", attrs=RescaleAttrs,
    pattern=OpPattern.BROADCAST, flops_per_element=4,
    doc="data * multiplier * 2**(shift - 31), rounded to int32 by the rule of requantisation.",
)  # fmt: skip


@RESCALE.type_relation
def _rescale_type(
    attrs: RescaleAttrs, data: TensorType, multiplier: TensorType, shift: TensorType
) -> Type:
    if data.dtype not in ("int32", "int64"):
        raise BadArgument("data", f"must hold int32 or int64 accumulators, got {data}")
    need_dtype("multiplier", multiplier, "int32", "every multiplier")
    need_dtype("shift", shift, "int32", "every shift")
    shape = broadcast_shapes(data.shape, multiplier.shape, "multiplier")
    if shape != data.shape or broadcast_shapes(shape, shift.shape, "shift") != shape:
        raise BadArgument(
            "multiplier", f"is {multiplier} with shift {shift}, larger than the data, {data}"
        )
    return TensorType(data.shape, "int32")


@RESCALE.reference
def _rescale_reference(attrs: RescaleAttrs, data: Array, multiplier: Array, shift: Array) -> Any:
    if attrs.once:
        return quantization.multiply_with_one_rounding(data, multiplier, shift)
    return quantization.multiply_by_quantized_multiplier(data, multiplier, shift)


@RESCALE.compute
def _rescale_compute(
    attrs: RescaleAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, multiplier, shift = inputs
    rule = rescaled_once if attrs.once else rescaled

    def element(*i: PrimExpr) -> Any:
        return rule(
            read_broadcast(data, i), read_broadcast(multiplier, i), read_broadcast(shift, i)
        )

    return [te().compute(out_types[0].shape, element, name="T_rescale", tag="broadcast")]


@RESCALE.make
def rescale(data: ExprLike, multiplier: ExprLike, shift: ExprLike, once: bool = False) -> Call:
    """Scale accumulators; `multiplier` and `shift` are int32 and broadcast against `data`."""
    factors = (as_expr(multiplier, "int32"), as_expr(shift, "int32"))
    return RESCALE(data, *factors, attrs=RescaleAttrs(once))


def rescale_by(data: ExprLike, real: Any, once: bool = False) -> Any:
    """Scale accumulators by real factors: a number, or an array that broadcasts against `data`."""
    multiplier, shift = quantization.quantize_multipliers(real)
    if (
        multiplier.size
        and (multiplier == multiplier.flat[0]).all()
        and (shift == shift.flat[0]).all()
    ):
        multiplier, shift = (
            multiplier.reshape(-1)[:1].reshape(()),
            shift.reshape(-1)[:1].reshape(()),
        )
    return rescale(data, multiplier, shift, once)


def _case(
    shape: tuple[int, ...], count: int, dtype: str, low: int, high: int, once: bool = False
) -> None:
    def make(rng: np.random.Generator) -> Any:
        data = rng.integers(low, high, shape).astype(dtype)
        data.reshape(-1)[:4] = [low, high, -1, 1]
        multiplier = rng.integers(1 << 30, (1 << 31) - 1, count, endpoint=True)
        shift = rng.integers(-18, 3 if dtype == "int32" else 1, count, endpoint=True)
        if count == 1:
            return [data, multiplier.astype("int32")[0], shift.astype("int32")[0]]
        return [data, multiplier.astype("int32"), shift.astype("int32")]

    per = () if count == 1 else (count,)
    RESCALE.sample_case(
        shape,
        per,
        per,
        attrs=RescaleAttrs(once),
        dtypes=(dtype, "int32", "int32"),
        make=make,
    )


_case((3, 40, 8), 8, "int32", -(1 << 28), (1 << 28) - 1)
_case((2, 33), 1, "int32", -(1 << 28), (1 << 28) - 1)
_case((4, 16), 16, "int64", -(1 << 40), (1 << 40))
_case((3, 40, 8), 8, "int32", -(1 << 28), (1 << 28) - 1, once=True)
_case((4, 16), 16, "int64", -(1 << 40), (1 << 40), once=True)
