"""Elementwise arithmetic, comparisons and conversions, with torch's promotion of dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway import dtypes, relay
from slipway.frontends.angle import angle_of, is_negative, length_of
from slipway.frontends.torch.converters import NodeView, cast, converter, like
from slipway.frontends.torch.found import found_along_axes
from slipway.relay.expr import Constant, Expr

UNARY: dict[str, Callable[[Any], Any]] = {
    name: getattr(relay, name)
    for name in (
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf",
        "exp", "floor", "log", "log10", "log2", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh",
        "sqrt", "tan", "tanh", "trunc",
    )
}  # fmt: skip


@converter(*UNARY, "neg", "_neg_view")
def unary(node: NodeView) -> Any:
    """A function of each element; integers become floats where torch says so."""
    x = cast(node.input(), node.out.dtype)
    decimals = int(node.arg("decimals", 0)) if node.kind == "round" else 0
    if decimals:
        scale = like(10.0 ** abs(decimals), x)
        grow, back = (relay.multiply, relay.divide)[:: 1 if decimals > 0 else -1]
        return back(relay.round(grow(x, scale)), scale)
    if node.kind in ("ceil", "floor", "round", "trunc") and not dtypes.is_float(node.out.dtype):
        return x
    return relay.negative(x) if "neg" in node.kind else UNARY[node.kind](x)


@converter("exp2", "special_exp2")
def exp2(node: NodeView) -> Any:
    """Powers of two."""
    x = cast(node.input(), node.out.dtype)
    return relay.power(like(2, x), x)


@converter("expm1")
def expm1(node: NodeView) -> Any:
    """exp(x) - 1 as tanh(x / 2) (exp(x) + 1), which keeps small values; large ones overflow."""
    x = cast(node.input(), node.out.dtype)
    grown = relay.exp(x)
    small = relay.multiply(
        relay.tanh(relay.multiply(x, like(0.5, x))), relay.add(grown, like(1, x))
    )
    return relay.where(
        relay.less(relay.abs(x), like(1, x)), small, relay.subtract(grown, like(1, x))
    )


@converter("log1p")
def log1p(node: NodeView) -> Any:
    """log(1 + x); what rounding 1 + x loses is put back by the factor x / ((1 + x) - 1)."""
    x = cast(node.input(), node.out.dtype)
    one = like(1, x)
    grown = relay.add(x, one)
    kept = relay.subtract(grown, one)
    exact = relay.equal(kept, like(0, x))
    factor = relay.divide(x, relay.where(exact, one, kept))
    return relay.where(exact, x, relay.multiply(relay.log(grown), factor))


@converter("reciprocal")
def reciprocal(node: NodeView) -> Any:
    """1 / x."""
    x = cast(node.input(), node.out.dtype)
    return relay.divide(like(1, x), x)


@converter("square")
def square(node: NodeView) -> Any:
    """X times x."""
    return relay.multiply(node.input(), node.input())


@converter("add", "sub", "rsub", "mul")
def arithmetic(node: NodeView) -> Any:
    """Sums and products; alpha is a factor of the second operand."""
    dtype = node.out.dtype
    left, right = node.pair(dtype)
    if node.kind == "rsub":
        left, right = right, left
    alpha = node.arg("alpha", 1)
    if alpha != 1:
        if node.kind == "rsub":
            right = relay.multiply(right, like(alpha, right))
        else:
            right = relay.multiply(right, like(alpha, right))
    if dtype == "bool":
        return {"add": relay.logical_or, "mul": relay.logical_and}[node.kind](left, right)
    step = {"add": relay.add, "mul": relay.multiply}.get(node.kind, relay.subtract)
    return step(left, right)


@converter("div", "floor_divide", "true_divide")
def divide(node: NodeView) -> Any:
    """Division, exact or rounded down or towards zero."""
    left, right = node.pair(node.out.dtype)
    mode = node.arg("rounding_mode") or ("floor" if node.kind == "floor_divide" else None)
    if mode is None:
        return relay.divide(left, right)
    if dtypes.is_float(node.out.dtype):
        return (relay.floor if mode == "floor" else relay.trunc)(relay.divide(left, right))
    if mode == "floor":
        return relay.floor_divide(left, right)
    size = relay.floor_divide(relay.abs(left), relay.abs(right))
    return relay.multiply(size, relay.multiply(relay.sign(left), relay.sign(right)))


@converter("remainder", "fmod")
def remainder(node: NodeView) -> Any:
    """What a division leaves, with the sign of the divisor (remainder) or dividend (fmod)."""
    left, right = node.pair(node.out.dtype)
    return (relay.floor_mod if node.kind == "remainder" else relay.mod)(left, right)


@converter("pow")
def power(node: NodeView) -> Any:
    """Powers; small constant exponents through products and roots."""
    dtype = node.out.dtype
    exponent = node.arguments["exponent"]
    base = node.as_tensor(node.arguments["self"], dtype)
    if not isinstance(exponent, Expr) and dtypes.is_float(dtype):
        if exponent in (2, 3):
            once = relay.multiply(base, base)
            return once if exponent == 2 else relay.multiply(once, base)
        if exponent == 0.5:
            return relay.sqrt(base)
        if exponent == -0.5:
            return relay.rsqrt(base)
        if exponent == -1:
            return relay.divide(like(1, base), base)
    return relay.power(base, node.as_tensor(exponent, dtype))


@converter("maximum", "minimum", "atan2")
def extremes(node: NodeView) -> Any:
    """The greater, the lesser, the angle."""
    left, right = node.pair(node.out.dtype)
    if node.kind == "atan2":
        return angle_of(left, right)
    return greater_or_lesser(node.kind == "maximum", left, right)


def greater_or_lesser(greater: bool, left: Expr, right: Expr) -> Any:
    """Return the greater or the lesser of two tensors, truth values among them."""
    if left.tensor_type.dtype == "bool":
        return (relay.logical_or if greater else relay.logical_and)(left, right)
    return (relay.maximum if greater else relay.minimum)(left, right)


@converter("fmax", "fmin")
def numbers(node: NodeView) -> Any:
    """The greater or lesser of two, and the other one where one is NaN."""
    left, right = node.pair(node.out.dtype)
    found = greater_or_lesser(node.kind == "fmax", left, right)
    if not dtypes.is_float(node.out.dtype):
        return found
    found = relay.where(relay.isnan(right), left, found)
    return relay.where(relay.isnan(left), right, found)


COMPARISONS = {
    "eq": relay.equal, "ne": relay.not_equal, "lt": relay.less, "le": relay.less_equal,
    "gt": relay.greater, "ge": relay.greater_equal,
}  # fmt: skip


@converter(*COMPARISONS)
def compare(node: NodeView) -> Any:
    """Comparisons in the promoted dtype."""
    dtype = node.promoted("self", "other")
    if dtype == "bool":
        dtype = "uint8"
    return COMPARISONS[node.kind](*node.pair(dtype))


LOGICAL = {
    "logical_and": relay.logical_and, "logical_or": relay.logical_or,
    "logical_xor": relay.logical_xor,
}  # fmt: skip


@converter(*LOGICAL)
def logical(node: NodeView) -> Any:
    """Truth values of any dtype."""
    return LOGICAL[node.kind](*node.pair("bool"))


@converter("logical_not", "bitwise_not")
def negate(node: NodeView) -> Any:
    """The opposite truth value, or all bits flipped."""
    if node.kind == "bitwise_not" and node.out.dtype != "bool":
        return relay.bitwise_not(node.input())
    return relay.logical_not(cast(node.input(), "bool"))


@converter("bitwise_and", "bitwise_or", "bitwise_xor")
def bitwise(node: NodeView) -> Any:
    """Bits of integers; truth values of bools."""
    stem = node.kind.removeprefix("bitwise_")
    prefix = "logical_" if node.out.dtype == "bool" else "bitwise_"
    return getattr(relay, prefix + stem)(*node.pair(node.out.dtype))


@converter("isnan", "isinf", "isfinite")
def classify(node: NodeView) -> Any:
    """Kinds of floats; integers are always finite."""
    x = node.input()
    if not dtypes.is_float(x.tensor_type.dtype):
        x = relay.cast(x, "float32")
    return getattr(relay, node.kind)(x)


@converter("signbit")
def signbit(node: NodeView) -> Any:
    """Whether the sign is negative, that of a zero too."""
    return is_negative(node.input())


@converter("where")
def where(node: NodeView) -> Any:
    """A choice per element; of a condition alone, the positions where it holds."""
    condition = cast(node.input("condition"), "bool")
    if "self" not in node.arguments:
        return found_along_axes(node, condition)
    return relay.where(condition, *node.pair(node.out.dtype))


@converter("masked_fill")
def masked_fill(node: NodeView) -> Any:
    """A value where the mask holds."""
    value = node.as_tensor(node.arguments["value"], node.out.dtype)
    return relay.where(cast(node.input("mask"), "bool"), value, node.input())


@converter("clamp", "clamp_min", "clamp_max", "hardtanh")
def clamp(node: NodeView) -> Any:
    """Bounds as numbers or tensors, either of which may be left out."""
    dtype = node.out.dtype
    x = cast(node.input(), dtype)
    hard = node.kind == "hardtanh"
    low = node.arguments.get("min_val" if hard else "min")
    high = node.arguments.get("max_val" if hard else "max")
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return relay.clip(x, low, high)
    if low is not None:
        x = relay.maximum(x, node.as_tensor(low, dtype))
    return x if high is None else relay.minimum(x, node.as_tensor(high, dtype))


@converter("addcmul", "addcdiv")
def add_product(node: NodeView) -> Any:
    """Self + value * (tensor1 * or / tensor2)."""
    step = relay.multiply if node.kind == "addcmul" else relay.divide
    part = step(node.input("tensor1"), node.input("tensor2"))
    value = node.arg("value", 1)
    return relay.add(node.input(), part if value == 1 else relay.multiply(part, like(value, part)))


@converter("hypot", "copysign", "ldexp")
def pairs(node: NodeView) -> Any:
    """The length of a hypotenuse; one's size with the other's sign; products with powers of 2."""
    x, y = node.pair(node.out.dtype)
    if node.kind == "hypot":
        return length_of(x, y)
    if node.kind == "ldexp":
        return relay.multiply(x, relay.power(like(2, y), y))
    size = relay.abs(x)
    return relay.where(is_negative(y), relay.negative(size), size)


@converter("__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift")
def shift(node: NodeView) -> Any:
    """Bits moved up or down."""
    left = node.kind in ("__lshift__", "bitwise_left_shift")
    return (relay.left_shift if left else relay.right_shift)(*node.pair(node.out.dtype))


@converter("rrelu_with_noise_functional", "rrelu_with_noise", "rrelu")
def rrelu(node: NodeView) -> Any:
    """A slope on the negative side: in evaluation the mean of its bounds."""
    if node.arg("training", False):
        raise node.unsupported("it is in training mode: call module.eval() before the export")
    x = node.input()
    slope = (float(node.arg("lower", 1 / 8)) + float(node.arg("upper", 1 / 3))) / 2
    result = relay.where(relay.less(x, like(0, x)), relay.multiply(x, like(slope, x)), x)
    return [result, None] if len(node.outputs) > 1 else result


@converter("_to_copy", "to", "type_as", "_to_cpu")
def convert(node: NodeView) -> Any:
    """Another dtype; devices and strides mean nothing here."""
    x, kind = node.input(), node.out.dtype
    stored = isinstance(x, Constant) and x.array.ndim == 2 and x.array.dtype.name == "int8"
    if stored and kind == "float32":  # a weight of torchao, which is scaled after the product
        return relay.qnn.op.dequantize(x, 1.0, 0)
    return cast(x, kind)


@converter(
    "clone", "alias", "detach", "contiguous", "lift_fresh_copy", "lift_fresh", "dropout",
    "feature_dropout", "alpha_dropout", "native_dropout", "_conj", "resolve_conj", "resolve_neg",
    "fill", "copy",
)  # fmt: skip
def identity(node: NodeView) -> Any:
    """The tensor itself; a dropout that is not in training; a value in the place of another."""
    if node.kind in ("fill", "copy"):
        source = node.arguments["value" if node.kind == "fill" else "src"]
        return relay.broadcast_to(node.as_tensor(source, node.out.dtype), node.out.shape)
    if node.arg("train", False):
        raise node.unsupported("it is in training mode: call module.eval() before the export")
    name = "input" if "input" in node.arguments else "self"
    result = node.input(name)
    return [result, None] if node.kind == "native_dropout" else result
