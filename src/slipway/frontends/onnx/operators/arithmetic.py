"""Elementwise mathematics, comparisons, logic and casts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes, relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.reader import DTYPE_OF
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh",
    "Atan": "atan", "Atanh": "atanh", "BitwiseNot": "bitwise_not", "Ceil": "ceil", "Cos": "cos",
    "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor", "IsNaN": "isnan", "Log": "log",
    "Neg": "negative", "Not": "logical_not", "Round": "round", "Sigmoid": "sigmoid",
    "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Sqrt": "sqrt", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip

BINARY = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide",
    "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "Equal": "equal",
    "Less": "less", "LessOrEqual": "less_equal", "Greater": "greater",
    "GreaterOrEqual": "greater_equal", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
}  # fmt: skip


@converter(*UNARY)
def unary(node: NodeView) -> Any:
    """One argument, the same meaning in relay."""
    return getattr(relay, UNARY[node.kind])(node.input(0))


def _aligned(node: NodeView) -> tuple[Any, Any]:
    """Both operands; before opset 7 `broadcast` and `axis` place the second one."""
    lhs, rhs = node.input(0), node.input(1)
    axis = node.attr("axis")
    if node.opset < 7 and node.attr("broadcast", 0) and axis is not None:
        missing = lhs.tensor_type.rank - axis % lhs.tensor_type.rank - rhs.tensor_type.rank
        if missing > 0:
            rhs = relay.expand_dims(rhs, rhs.tensor_type.rank, missing)
    return lhs, rhs


@converter(*BINARY)
def binary(node: NodeView) -> Any:
    """Two arguments under broadcasting."""
    return getattr(relay, BINARY[node.kind])(*_aligned(node))


@converter("Pow")
def power(node: NodeView) -> Any:
    """Power; the result has the base's type, whatever the exponent's."""
    base, exponent = _aligned(node)
    kind = base.tensor_type.dtype
    if isinstance(exponent, relay.Constant) and exponent.array.size == 1:
        value = float(exponent.array.reshape(()))
        rank = exponent.array.ndim
        if value == 2.0 and rank <= base.tensor_type.rank:
            return relay.multiply(base, base)
        if value == 0.5 and rank <= base.tensor_type.rank and dtypes.is_float(kind):
            return relay.sqrt(base)
    if exponent.tensor_type.dtype == kind:
        return relay.power(base, exponent)
    if dtypes.is_float(kind):
        return relay.power(base, relay.cast(exponent, kind))
    wide = exponent.tensor_type.dtype if dtypes.is_float(exponent.tensor_type.dtype) else "float64"
    return relay.cast(relay.power(relay.cast(base, wide), relay.cast(exponent, wide)), kind)


@converter("Mod")
def modulo(node: NodeView) -> Any:
    """Remainder with the divisor's sign, or C's fmod with the attribute."""
    return (relay.mod if node.attr("fmod", 0) else relay.floor_mod)(node.input(0), node.input(1))


@converter("BitShift")
def bit_shift(node: NodeView) -> Any:
    """Shift by the attribute's direction."""
    shift = relay.left_shift if node.attr("direction") == "LEFT" else relay.right_shift
    return shift(node.input(0), node.input(1))


@converter("Max", "Min", "Sum", "Mean")
def variadic(node: NodeView) -> Any:
    """Any number of arguments, taken two by two."""
    step = {"Max": relay.maximum, "Min": relay.minimum}.get(node.kind, relay.add)
    result = node.input(0)
    for index in range(1, len(node.inputs)):
        result = step(result, node.input(index))
    if node.kind == "Mean":
        result = relay.divide(result, node.like(len(node.inputs)))
    return result


@converter("Reciprocal")
def reciprocal(node: NodeView) -> Any:
    """1 / x."""
    return relay.divide(node.like(1), node.input(0))


@converter("IsInf")
def is_inf(node: NodeView) -> Any:
    """Infinite elements, of the signs that the attributes ask for."""
    x = node.input(0)
    positive, negative = node.attr("detect_positive", 1), node.attr("detect_negative", 1)
    if positive and negative:
        return relay.isinf(x)
    if not positive and not negative:
        return relay.zeros(node.type().shape, "bool")
    return relay.equal(x, node.like(np.inf if positive else -np.inf))


@converter("Where")
def where(node: NodeView) -> Any:
    """Choice by a condition."""
    return relay.where(node.input(0), node.input(1), node.input(2))


def dtype_of(node: NodeView, code: Any) -> str:
    """Return the dtype of an ONNX type code (or, in opset 1, type name)."""
    if isinstance(code, str):
        return dtypes.canonical(
            code.lower().replace("double", "float64").replace("float", "float32")
        )
    found = DTYPE_OF.get(int(code))
    if found is None:
        raise node.unsupported(f"type code {code} names a type that Slipway does not have")
    return found


@converter("Cast")
def cast(node: NodeView) -> Any:
    """Conversion to another element type."""
    return _cast(node, dtype_of(node, node.attr("to")))


@converter("CastLike")
def cast_like(node: NodeView) -> Any:
    """Conversion to the second input's element type."""
    return _cast(node, node.type(1).dtype)


def _cast(node: NodeView, dtype: str) -> Any:
    x = node.input(0)
    if node.type().dtype == dtype:
        return x
    if dtype == "float8_e8m0fnu" and node.attr("round_mode", "up") == "up":
        return _power_of_two_above(x)
    return relay.cast(x, dtype, bool(node.attr("saturate", 1)) and dtypes.is_carried(dtype))


def _power_of_two_above(x: Expr) -> Any:
    """The smallest power of two that is not less; what has none becomes the largest or smallest."""
    x = relay.clip(relay.cast(x, "float32"), 0.0, 2.0**127)
    bits = relay.reinterpret(x, "uint32")
    code = relay.right_shift(relay.add(bits, const(0x7FFFFF, "uint32")), const(23, "uint32"))
    return relay.reinterpret(relay.cast(code, "uint8"), "float8_e8m0fnu")


@converter("Identity")
def identity(node: NodeView) -> Any:
    """The input itself."""
    return node.inputs[0]


@converter("BitCast")
def bit_cast(node: NodeView) -> Any:
    """The same bits as another type of the same size."""
    return relay.reinterpret(node.input(0), dtype_of(node, node.attr("to")))
