"""Elementwise operators of two arguments under NumPy broadcasting, and `where`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir import ops
from slipway.relay.expr import Call, Expr
from slipway.relay.op_registry import (
    OPS,
    BadArgument,
    OpDefinition,
    OpPattern,
    as_expr,
    const,
    register_op,
)
from slipway.relay.ops.checks import broadcast_shapes, need_integral, need_number
from slipway.relay.ops.tensor.integer_power import integer_power, numpy_integer_power
from slipway.relay.ops.tensor.tensors import read_broadcast, te
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array, ExprLike


def match_operands(lhs: ExprLike, rhs: ExprLike) -> tuple[Expr, Expr]:
    """Return both as expressions; a Python number takes the dtype of the other side."""
    if isinstance(lhs, (bool, int, float)) and isinstance(rhs, Expr) and rhs.type is not None:
        lhs = const(lhs, rhs.tensor_type.dtype)
    if isinstance(rhs, (bool, int, float)) and isinstance(lhs, Expr) and lhs.type is not None:
        rhs = const(rhs, lhs.tensor_type.dtype)
    return as_expr(lhs), as_expr(rhs)


def _binary(
    name: str,
    reference: Callable[..., Any],
    build: Callable[[Any, Any, Any], Any],
    *,
    result: str = "",
    check: Callable[[str, TensorType], None] = need_number,
    low: float = -3.0,
    sample_dtypes: tuple[str, ...] = ("float32",),
    flops: float = 1,
) -> Any:
    """Register a broadcasting operator; `result` is its dtype when it is not the operands'."""
    definition = register_op(
        name, "lhs", "rhs", pattern=OpPattern.BROADCAST, flops_per_element=flops,
        doc=f"{name} of the elements that meet under broadcasting; both sides have one dtype.",
    )  # fmt: skip

    @definition.type_relation
    def relation(attrs: None, lhs: TensorType, rhs: TensorType) -> Type:
        check("lhs", lhs)
        if lhs.dtype != rhs.dtype:
            raise BadArgument("rhs", f"is {rhs.dtype} but 'lhs' is {lhs.dtype}; cast one of them")
        return TensorType(broadcast_shapes(lhs.shape, rhs.shape, "rhs"), result or lhs.dtype)

    @definition.reference
    def evaluate(attrs: None, lhs: Array, rhs: Array) -> Any:
        return np.asarray(reference(lhs, rhs)).astype(result or lhs.dtype)

    @definition.compute
    def compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
        a, b = inputs
        return [
            te().compute(
                out_types[0].shape,
                lambda *i: build(te(), read_broadcast(a, i), read_broadcast(b, i)),
                name=f"T_{name}",
                tag="broadcast",
            )
        ]

    @definition.make
    def make(lhs: ExprLike, rhs: ExprLike) -> Call:
        return definition(*match_operands(lhs, rhs))

    make.__name__, make.__doc__ = name, definition.doc
    for dtype in sample_dtypes:
        both = (dtype, dtype)
        definition.sample_case((2, 3, 4), (2, 3, 4), dtypes=both, low=low, high=5)
        definition.sample_case((2, 3, 4), (3, 1), dtypes=both, low=low, high=5)
        definition.sample_case((1, 4), (2, 1, 1), dtypes=both, low=low, high=5)
    return make


def _divide(lhs: Array, rhs: Array) -> Any:
    if dtypes.is_float(lhs.dtype.name):
        return lhs / rhs
    # Toward zero, as C and ONNX Div have it; the smallest integer has no absolute value.
    quotient = np.floor_divide(lhs, rhs)
    upwards = ((lhs < 0) ^ (rhs < 0)) & (rhs != 0) & (quotient * rhs != lhs)
    return quotient + upwards.astype(quotient.dtype)


def _numpy_floor_divide(lhs: Array, rhs: Array) -> Any:
    """The quotient rounded down: of floats not through their remainder, as NumPy's own is."""
    real = dtypes.is_float(lhs.dtype.name)
    return np.floor(lhs / rhs) if real else np.floor_divide(lhs, rhs)


def _floor_divide(te_: Any, a: Any, b: Any) -> Any:
    return te_.floor(a / b) if dtypes.is_float(a.dtype) else te_.floordiv(a, b)


def _floor_mod(te_: Any, a: Any, b: Any) -> Any:
    if not dtypes.is_float(a.dtype):
        return te_.floormod(a, b)
    remainder, zero = te_.fmod(a, b), te_.const(0, a.dtype)
    # The remainder has the divisor's sign; going through fmod keeps it right beside infinities.
    crossed = te_.any(te_.all(remainder < zero, b > zero), te_.all(remainder > zero, b < zero))
    remainder_or_zero = te_.select(ops.equal(remainder, zero), te_.copysign(zero, b), remainder)
    return te_.select(crossed, remainder + b, remainder_or_zero)


def _trunc_mod(te_: Any, a: Any, b: Any) -> Any:
    return te_.fmod(a, b) if dtypes.is_float(a.dtype) else te_.truncmod(a, b)


def _power(te_: Any, a: Any, b: Any) -> Any:
    return te_.power(a, b) if dtypes.is_float(a.dtype) else integer_power(te_, a, b)


def _numpy_power(lhs: Array, rhs: Array) -> Any:
    real = dtypes.is_float(lhs.dtype.name)
    return np.power(lhs, rhs) if real else numpy_integer_power(lhs, rhs)


_BOTH = ("float32", "int32")

add = _binary("add", np.add, lambda t, a, b: a + b, sample_dtypes=_BOTH)
subtract = _binary("subtract", np.subtract, lambda t, a, b: a - b, sample_dtypes=_BOTH)
multiply = _binary("multiply", np.multiply, lambda t, a, b: a * b, sample_dtypes=_BOTH)
divide = _binary("divide", _divide, lambda t, a, b: t.div(a, b), low=1, sample_dtypes=_BOTH)
floor_divide = _binary(
    "floor_divide", _numpy_floor_divide, _floor_divide, low=1, sample_dtypes=_BOTH, flops=4
)
floor_mod = _binary("floor_mod", np.mod, _floor_mod, low=1, sample_dtypes=_BOTH, flops=8)
mod = _binary("mod", np.fmod, _trunc_mod, low=1, sample_dtypes=_BOTH, flops=8)
power = _binary("power", _numpy_power, _power, low=0.5, flops=16)
maximum = _binary("maximum", np.maximum, lambda t, a, b: t.max(a, b), sample_dtypes=_BOTH)
minimum = _binary("minimum", np.minimum, lambda t, a, b: t.min(a, b), sample_dtypes=_BOTH)


def _anything(argument: str, given: TensorType) -> None:
    """Accept every dtype."""


def _need_bool(argument: str, given: TensorType) -> None:
    if given.dtype != "bool":
        raise BadArgument(argument, f"must be bool, got {given}; compare it with 0 first")


def _comparison(name: str, reference: Any, build: Any) -> Any:
    check = _anything if name in ("equal", "not_equal") else need_number
    return _binary(name, reference, build, result="bool", check=check, sample_dtypes=_BOTH)


equal = _comparison("equal", np.equal, lambda t, a, b: ops.equal(a, b))
not_equal = _comparison("not_equal", np.not_equal, lambda t, a, b: ops.not_equal(a, b))
less = _comparison("less", np.less, lambda t, a, b: a < b)
less_equal = _comparison("less_equal", np.less_equal, lambda t, a, b: a <= b)
greater = _comparison("greater", np.greater, lambda t, a, b: a > b)
greater_equal = _comparison("greater_equal", np.greater_equal, lambda t, a, b: a >= b)


def _logical(name: str, reference: Any, build: Any) -> Any:
    return _binary(
        name, reference, build, result="bool", check=_need_bool, sample_dtypes=("bool",), low=0
    )


logical_and = _logical("logical_and", np.logical_and, lambda t, a, b: ops.logical_and(a, b))
logical_or = _logical("logical_or", np.logical_or, lambda t, a, b: ops.logical_or(a, b))
logical_xor = _logical("logical_xor", np.logical_xor, lambda t, a, b: ops.not_equal(a, b))


def _bitwise(name: str, reference: Any, build: Any, low: float = -9) -> Any:
    return _binary(name, reference, build, check=need_integral, sample_dtypes=("int32",), low=low)


bitwise_and = _bitwise("bitwise_and", np.bitwise_and, lambda t, a, b: a & b)
bitwise_or = _bitwise("bitwise_or", np.bitwise_or, lambda t, a, b: a | b)
bitwise_xor = _bitwise("bitwise_xor", np.bitwise_xor, lambda t, a, b: a ^ b)


def _shift(left: bool) -> Callable[[Any, Any, Any], Any]:
    """A shift; by the width or more, or by a negative count, every bit leaves, as in NumPy."""

    def build(t: Any, a: Any, b: Any) -> Any:
        last = t.const(dtypes.bits_of(a.dtype) - 1, b.dtype)
        zero = t.const(0, a.dtype)
        inside = (
            b <= last if dtypes.is_uint(b.dtype) else t.all(b >= t.const(0, b.dtype), b <= last)
        )
        count = t.select(inside, b, last)
        if left:
            return t.select(inside, a << count, zero)
        shifted = a >> count
        # All that a right shift of a signed number leaves is its sign, in every bit.
        return shifted if dtypes.is_int(a.dtype) else t.select(inside, shifted, zero)

    return build


left_shift = _bitwise("left_shift", np.left_shift, _shift(True), low=0)
right_shift = _bitwise("right_shift", np.right_shift, _shift(False), low=0)
for _shift_name in ("left_shift", "right_shift"):
    for _dtype, _low in (("int8", -9), ("uint8", 0), ("int32", -40)):
        OPS[_shift_name].sample_case((40,), (40,), dtypes=(_dtype, _dtype), low=_low, high=40)

WHERE: OpDefinition = register_op(
    "where", "condition", "x", "y", pattern=OpPattern.BROADCAST, flops_per_element=1,
    doc="x where the condition holds, else y; all three broadcast.",
)  # fmt: skip


@WHERE.type_relation
def _where_type(attrs: None, condition: TensorType, x: TensorType, y: TensorType) -> Type:
    if x.dtype != y.dtype:
        raise BadArgument("y", f"is {y.dtype} but 'x' is {x.dtype}; cast one of them")
    shape = broadcast_shapes(x.shape, y.shape, "y")
    return TensorType(broadcast_shapes(shape, condition.shape, "condition"), x.dtype)


@WHERE.reference
def _where_reference(attrs: None, condition: Array, x: Array, y: Array) -> Any:
    return np.where(condition, x, y)


@WHERE.compute
def _where_compute(attrs: None, inputs: list[Any], out_types: list[TensorType]) -> list[Any]:
    condition, x, y = inputs

    def element(*i: PrimExpr) -> Any:
        test = read_broadcast(condition, i)
        if condition.dtype != "bool":
            test = ops.not_equal(test, te().const(0, condition.dtype))
        return te().select(test, read_broadcast(x, i), read_broadcast(y, i))

    return [te().compute(out_types[0].shape, element, name="T_where", tag="broadcast")]


@WHERE.make
def where(condition: ExprLike, x: ExprLike, y: ExprLike) -> Call:
    """Return x where the condition holds, else y."""
    return WHERE(condition, *match_operands(x, y))


WHERE.sample_case((2, 3), (2, 3), (2, 3), dtypes=("bool", "float32", "float32"))
WHERE.sample_case((3, 1), (2, 1, 4), (4,), dtypes=("bool", "float32", "float32"))
