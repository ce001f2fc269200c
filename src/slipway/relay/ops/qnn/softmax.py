"""Integer softmax in the steps of TensorFlow Lite's reference kernel: tables, a sum, a reciprocal.

    e = table[x - max]        exp(scale * beta * (x - max)) in Q0.31, by gemmlowp's exp
    s = sum(round(e / 2**12)) in Q12.19
    r = qnn.reciprocal(s)     in Q0.31, of the sum shifted until its leading bit is the sign's
    y = qnn.normalize(e, r, s)

`softmax` is the composition; the two operators hold what is not elementwise arithmetic elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import expr as E
from slipway.ir.node import node
from slipway.relay import op_registry
from slipway.relay import quantization as rule
from slipway.relay.expr import Call
from slipway.relay.op_registry import Attrs, OpPattern, as_expr, register_op
from slipway.relay.ops.checks import broadcast_shapes, need_dtype
from slipway.relay.ops.qnn.rescale import (
    doubling_high_multiply,
    rounding_divide_by_power_of_two,
    saturating_shift_left,
)
from slipway.relay.ops.tensor.tensors import NamedSteps, elementwise, read_broadcast, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike

INTEGER_BITS = 5  # of the argument of exp
SUM_BITS = 12  # of the sum of exponentials

RECIPROCAL = register_op(
    "qnn.reciprocal", "data", pattern=OpPattern.ELEMWISE, flops_per_element=40,
    doc="2**30 / (data shifted left into [2**30, 2**31)) as Q0.31, by three steps of Newton.",
)  # fmt: skip


@RECIPROCAL.type_relation
def _reciprocal_type(attrs: None, data: TensorType) -> Type:
    need_dtype("data", data, "int32", "every accumulator")
    return data


@RECIPROCAL.reference
def _reciprocal_reference(attrs: None, data: Array) -> Any:
    shifted = data.astype(np.int64) << rule.leading_zeros(data).astype(np.int64)
    return rule.one_over_one_plus_x((shifted - (1 << 31)).astype(np.int32))


@RECIPROCAL.compute
def _reciprocal_compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    (x,) = inputs

    def const(value: int) -> Any:
        return te().const(value, "int32")

    def element(*i: PrimExpr) -> Any:
        steps = NamedSteps()
        value = steps.name(x(*i))
        # The top bit falls out of the shift: what stays is the fraction, in Q0.31.
        fraction = (value << te().clz(value)) & const(rule.INT32_MAX)
        total = fraction.astype("int64") + te().const(rule.INT32_MAX + 1, "int64")
        half = steps.name((total >> te().const(1, "int64")).astype("int32"))
        slope = doubling_high_multiply(half, const(rule.NEWTON_SLOPE))
        y = steps.name(const(rule.NEWTON_CONSTANT) + slope)
        for _ in range(3):
            error = const(1 << 29) - doubling_high_multiply(half, y)
            y = steps.name(y + saturating_shift_left(doubling_high_multiply(y, error), 2))
        return steps.around(saturating_shift_left(y, 1))

    return [elementwise("T_reciprocal", x.shape, element)]


@RECIPROCAL.make
def reciprocal(data: ExprLike) -> Call:
    """Return the reciprocal of positive int32 values as a Q0.31 significand."""
    return RECIPROCAL(data)


RECIPROCAL.sample_case((3, 50), dtypes=("int32",), low=1, high=(1 << 31) - 2)
RECIPROCAL.sample_case((9,), dtypes=("int32",), low=1, high=9)


LEADING_ZEROS = register_op(
    "qnn.leading_zeros", "data", pattern=OpPattern.ELEMWISE, flops_per_element=1,
    doc="How many bits above the highest set bit of positive int32 values are zero.",
)  # fmt: skip


@LEADING_ZEROS.type_relation
def _leading_zeros_type(attrs: None, data: TensorType) -> Type:
    need_dtype("data", data, "int32", "every accumulator")
    return data


@LEADING_ZEROS.reference
def _leading_zeros_reference(attrs: None, data: Array) -> Any:
    return rule.leading_zeros(data)


@LEADING_ZEROS.compute
def _leading_zeros_compute(
    attrs: None, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    (x,) = inputs
    return [elementwise("T_leading_zeros", x.shape, lambda *i: te().clz(x(*i)))]


@LEADING_ZEROS.make
def leading_zeros(data: ExprLike) -> Call:
    """Count the leading zero bits of positive int32 values."""
    return LEADING_ZEROS(data)


LEADING_ZEROS.sample_case((3, 40), dtypes=("int32",), low=1, high=(1 << 31) - 2)
LEADING_ZEROS.sample_case((40,), dtypes=("int32",), low=1, high=40)


@node
class NormalizeAttrs(Attrs):
    """The dtype of the probabilities; its lowest value stands for 0."""

    out_dtype: str = "int8"


NORMALIZE = register_op(
    "qnn.normalize", "data", "reciprocal", "total", attrs=NormalizeAttrs,
    pattern=OpPattern.BROADCAST, flops_per_element=8,
    doc="Exponentials in Q0.31 over their total (Q12.19), as integers of the result's full range.",
)  # fmt: skip


@NORMALIZE.type_relation
def _normalize_type(
    attrs: NormalizeAttrs, data: TensorType, reciprocal: TensorType, total: TensorType
) -> Type:
    for name, given in (("data", data), ("reciprocal", reciprocal), ("total", total)):
        need_dtype(name, given, "int32", "every accumulator")
    broadcast_shapes(reciprocal.shape, total.shape, "total")
    broadcast_shapes(data.shape, total.shape, "total")
    return TensorType(data.shape, attrs.out_dtype)


def _out_bits(dtype: str) -> int:
    return np.dtype(dtype).itemsize * 8


@NORMALIZE.reference
def _normalize_reference(
    attrs: NormalizeAttrs, data: Array, reciprocal: Array, total: Array
) -> Any:
    info = np.iinfo(attrs.out_dtype)
    exponent = SUM_BITS - rule.leading_zeros(total) + 31 - _out_bits(attrs.out_dtype)
    scaled = rule.rounding_divide_by_power_of_two(
        rule.doubling_high_multiply(reciprocal, data), exponent
    )
    return np.clip(scaled.astype(np.int64) + info.min, info.min, info.max).astype(attrs.out_dtype)


@NORMALIZE.compute
def _normalize_compute(
    attrs: NormalizeAttrs, inputs: list[Any], out_types: list[TensorType]
) -> list[Any]:
    data, reciprocal, total = inputs
    info = np.iinfo(attrs.out_dtype)

    def const(value: int) -> Any:
        return te().const(int(value), "int32")

    def element(*i: PrimExpr) -> Any:
        bits = const(SUM_BITS + 31 - _out_bits(attrs.out_dtype))
        exponent = bits - te().clz(read_broadcast(total, i))
        product = doubling_high_multiply(read_broadcast(reciprocal, i), data(*i))
        right, high = E.Var("exponent", "int32"), E.Var("product", "int32")
        scaled = rounding_divide_by_power_of_two(high, right) + const(info.min)
        kept = te().min(te().max(scaled, const(info.min)), const(info.max)).astype(attrs.out_dtype)
        return E.Let(right, exponent, E.Let(high, product, kept))

    return [te().compute(out_types[0].shape, element, name="T_normalize", tag="broadcast")]


@NORMALIZE.make
def normalize(
    data: ExprLike, reciprocal: ExprLike, total: ExprLike, out_dtype: str = "int8"
) -> Call:
    """Divide exponentials by their total, whose `reciprocal` is given beside it."""
    return NORMALIZE(data, reciprocal, total, attrs=NormalizeAttrs(out_dtype))


def _normalize_case(out_dtype: str) -> None:
    def make(rng: np.random.Generator) -> Any:
        data = rng.integers(0, 1 << 31, (3, 10)).astype(np.int32)
        total = rule.rounding_divide_by_power_of_two(data, 12).sum(1, dtype=np.int32)[:, None]
        return [data, _reciprocal_reference(None, total), total]

    NORMALIZE.sample_case(
        (3, 10), (3, 1), (3, 1), attrs=NormalizeAttrs(out_dtype), dtypes=("int32",) * 3, make=make
    )


_normalize_case("int8")
_normalize_case("int16")


def exponential_table(scale: float, beta: float) -> Any:
    """Return exp(scale * beta * d) in Q0.31 for the differences d = -255 ... 0."""
    real = min(
        float(np.float32(beta)) * float(np.float32(scale)) * (1 << (31 - INTEGER_BITS)),
        (1 << 31) - 1.0,
    )
    multiplier, shift = rule.quantize_multiplier(real)
    radius = ((1 << INTEGER_BITS) - 1) * (1 << (31 - INTEGER_BITS)) / 2.0**shift
    differences = np.arange(-255, 1, dtype=np.int64)
    used = differences >= -np.floor(radius)
    scaled = rule.doubling_high_multiply(
        np.where(used, differences, 0).astype(np.int64) << max(shift, 0), multiplier
    )
    found = rule.exp_on_negative_values(scaled, INTEGER_BITS)
    return np.where(used, found, 0).astype(np.int32)


def softmax(data: ExprLike, scale: float, beta: float = 1.0, out_dtype: str = "") -> Any:
    """Return the softmax over the last axis of 8-bit data with the given scale.

    The result's zero point is the lowest value of its dtype, its scale 2**-8 (2**-16 for int16).
    """
    data = as_expr(data)
    table = exponential_table(scale, beta)
    make = op_registry.make
    maximum = make("cast")(make("max")(data, axis=-1, keepdims=True), "int32")
    below = make("subtract")(maximum, make("cast")(data, "int32"))
    position = make("cast")(make("subtract")(op_registry.const(255, "int32"), below), "uint8")
    exponentials = make("qnn.lookup")(position, table)
    parts = make("qnn.lookup")(position, rule.rounding_divide_by_power_of_two(table, SUM_BITS))
    total = make("sum")(parts, axis=-1, keepdims=True)
    return normalize(  # the exponentials are looked up again: cheaper than to keep them
        exponentials, reciprocal(total), total, out_dtype or data.tensor_type.dtype
    )
