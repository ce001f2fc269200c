"""Operators that compute each element from those at the same place."""

import numpy as np
from scipy import special

from benchmarks.fuzz_graphs.drawing import INTEGERS, maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.values import (
    UNIT,
    Value,
    add,
    divide,
    monotone,
    moved,
    multiply,
    need,
    result,
    stepped,
)

# Name -> function, where it is defined, ulps.
MONOTONE = {
    "exp": (np.exp, -np.inf, np.inf),
    "log": (np.log, 1e-300, np.inf),
    "log2": (np.log2, 1e-300, np.inf),
    "log10": (np.log10, 1e-300, np.inf),
    "sqrt": (np.sqrt, 0.0, np.inf),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-300, np.inf),
    "tanh": (np.tanh, -np.inf, np.inf),
    "sigmoid": (special.expit, -np.inf, np.inf),
    "erf": (special.erf, -np.inf, np.inf),
    "atan": (np.arctan, -np.inf, np.inf),
    "sinh": (np.sinh, -np.inf, np.inf),
    "asinh": (np.arcsinh, -np.inf, np.inf),
    "asin": (np.arcsin, -1.0, 1.0),
    "acos": (np.arccos, -1.0, 1.0),
    "acosh": (np.arccosh, 1.0, np.inf),
    "atanh": (np.arctanh, -1.0, 1.0),
}
LOGICAL = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.not_equal}
BITWISE = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}
COMPARE = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
ROUND = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}


def _monotone(function, low, high):
    def compute(attrs, x):
        need(bool(((x.exact > low) & (x.exact < high) | (low < -1e300)).all()))
        return monotone(function, x, 8.0, low, high)

    return compute


for _name, (_function, _low, _high) in MONOTONE.items():
    rule(_name)(_monotone(_function, _low, _high))


def _wave(function):
    return lambda attrs, x: result(function(x.exact), x.error, x.dtype, 4.0, np.float64(1.0))


rule("sin")(_wave(np.sin))
rule("cos")(_wave(np.cos))


@rule("tan")
def _tan(attrs, x):
    need(bool((np.abs(x.exact) + x.error < 1.4).all()))
    return monotone(np.tan, x, 8.0)


@rule("cosh")
def _cosh(attrs, x):
    slope = np.sinh(np.abs(x.exact) + x.error)
    return result(np.cosh(x.exact), slope * x.error, x.dtype, 8.0)


def _rounding(function):
    return lambda attrs, x: stepped(function, x) if x.real else x


for _name, _function in ROUND.items():
    rule(_name)(_rounding(_function))


@rule("negative")
def _negative(attrs, x):
    return result(np.negative(x.exact), x.error, x.dtype, 0)


@rule("abs")
def _abs(attrs, x):
    return result(np.abs(x.exact), x.error, x.dtype, 0)


@rule("sign")
def _sign(attrs, x):
    return stepped(np.sign, x)


@rule("isnan", "isinf")
def _never(attrs, x):
    return result(np.zeros(x.shape, bool), np.where(np.isfinite(x.error), 0, np.inf), "bool")


@rule("isfinite")
def _always(attrs, x):
    return result(np.ones(x.shape, bool), np.where(np.isfinite(x.error), 0, np.inf), "bool")


@rule("copy", "nn.dropout")
def _same(attrs, x):
    return x


@rule("logical_not")
def _logical_not(attrs, x):
    may_be_zero = x.error >= np.abs(x.exact.astype(np.float64))
    return result(np.logical_not(x.exact), (x.error > 0) & may_be_zero, "bool")


@rule("bitwise_not")
def _bitwise_not(attrs, x):
    return result(np.invert(x.exact), x.error, x.dtype)


@rule("reinterpret")
def _reinterpret(attrs, x):
    need(x.certain)
    bits = np.ascontiguousarray(x.stored()).reshape(x.shape).view(attrs["dtype"])
    if attrs["dtype"] in UNIT:
        need(bool(np.isfinite(bits).all()))
    return result(bits.reshape(x.shape), np.zeros(x.shape), attrs["dtype"], 0)


@rule("cast")
def _cast(attrs, x):
    dtype = attrs["dtype"]
    if dtype == "bool":
        may_be_zero = x.error >= np.abs(x.exact.astype(np.float64))
        return result(x.exact != 0, (x.error > 0) & may_be_zero, "bool")
    if dtype in UNIT:
        exact = x.exact.astype(np.float64)
        narrower = UNIT[dtype] > UNIT.get(x.dtype, 0.0)
        return result(exact, x.error, dtype, 0.5 if narrower else 0)
    if not x.real:
        return result(x.exact.astype(dtype), x.error, dtype)
    info = np.iinfo(dtype)  # what is beyond the range has no defined result
    inside = (x.exact - x.error > info.min) & (x.exact + x.error < float(info.max))
    need(bool(inside[np.isfinite(x.error)].all()))
    return stepped(np.trunc, x, dtype)


@rule("nn.relu")
def _relu(attrs, x):
    return result(np.maximum(x.exact, 0), x.error, x.dtype, 0)


@rule("clip")
def _clip(attrs, x):
    low, high = attrs["a_min"], attrs["a_max"]
    exact = np.clip(x.exact.astype(np.float64), low, high)
    slack = 0.0 if not x.real else UNIT[x.dtype] * max(abs(low), abs(high))  # bounds are rounded
    return result(exact, x.error + slack, x.dtype, 0)


@rule("nn.leaky_relu")
def _leaky_relu(attrs, x):
    alpha = attrs["alpha"]
    exact = np.where(x.exact > 0, x.exact, x.exact * alpha)
    return result(exact, x.error * max(1.0, abs(alpha)), x.dtype)


@rule("nn.prelu")
def _prelu(attrs, x, alpha):
    view = [1] * x.exact.ndim
    view[attrs["axis"]] = -1
    slope = Value(alpha.exact.reshape(view), alpha.error.reshape(view), alpha.dtype)
    below = multiply(x, slope)
    steep = np.maximum(1.0, np.abs(slope.exact) + slope.error)
    exact = np.where(x.exact > 0, x.exact, below.exact)
    return result(exact, np.maximum(below.error, x.error * steep), x.dtype)


@rule("add")
def _add(attrs, a, b):
    return add(a, b)


@rule("subtract")
def _subtract(attrs, a, b):
    return add(a, b, -1)


@rule("multiply")
def _multiply(attrs, a, b):
    return multiply(a, b)


@rule("divide")
def _divide(attrs, a, b):
    if a.real:
        return divide(a, b)
    return _whole(a, b, lambda x, y: _truncated(x, y))


def _truncated(x, y):
    """The quotient toward zero, by Python's own integers."""
    pairs = np.broadcast_arrays(x.astype(object), y.astype(object))
    flat = [
        abs(int(p)) // abs(int(q)) * (1 if (p < 0) == (q < 0) else -1)
        for p, q in zip(pairs[0].ravel(), pairs[1].ravel(), strict=True)
    ]
    return np.array(flat, object).reshape(pairs[0].shape)


def _whole(a, b, function):
    """A division of integers, whose result fits: no zeros, and not the least one by -1."""
    need(a.certain and b.certain and bool((b.exact != 0).all()))
    if a.dtype.startswith("int"):
        need(not ((a.exact == np.iinfo(a.dtype).min).any() and (b.exact == -1).any()))
    found = np.asarray(function(a.exact, b.exact), object)
    return result(found.astype(a.dtype), np.zeros(found.shape), a.dtype)


@rule("floor_divide")
def _floor_divide(attrs, a, b):
    if not a.real:
        return _whole(a, b, lambda x, y: x.astype(object) // y.astype(object))
    return stepped(np.floor, divide(a, b))


@rule("floor_mod")
def _floor_mod(attrs, a, b):
    if not a.real:
        return _whole(a, b, lambda x, y: x.astype(object) % y.astype(object))
    return _remainder(a, b, np.floor)


@rule("mod")
def _mod(attrs, a, b):
    if not a.real:
        return _whole(a, b, lambda x, y: x.astype(object) - _truncated(x, y) * y.astype(object))
    return _remainder(a, b, np.trunc)


def _remainder(a, b, rounding):
    quotient = divide(a, b)
    count = rounding(quotient.exact)
    same = rounding(quotient.exact - quotient.error) == rounding(quotient.exact + quotient.error)
    same |= (a.error == 0) & (b.error == 0)  # the remainder of exact numbers is exact
    exact = np.fmod(a.exact, b.exact) if rounding is np.trunc else np.mod(a.exact, b.exact)
    error = a.error + np.abs(count) * b.error
    return result(exact, np.where(same, error, np.inf), a.dtype)


@rule("power")
def _power(attrs, a, b):
    if not a.real:
        need(a.certain and b.certain and bool((b.exact >= 0).all()))
        bits = np.iinfo(a.dtype).bits  # what overflows wraps
        found = np.asarray(a.exact.astype(object) ** b.exact.astype(object) % (1 << bits), object)
        found = found.astype(f"uint{bits}").view(a.dtype)
        return result(found, np.zeros(found.shape), a.dtype)
    low = a.exact - a.error
    need(bool((low > 1e-3).all()))
    exact = np.power(a.exact, b.exact)
    wide = np.abs(b.exact) + b.error
    relative = wide * a.error / low + b.error * np.maximum(np.abs(np.log(low)), np.log(a.exact + 1))
    need(bool((relative < 0.1).all()))
    return result(exact, exact * relative * 1.2, a.dtype, 8.0)


@rule("maximum")
def _maximum(attrs, a, b):
    return result(np.maximum(a.exact, b.exact), np.maximum(a.error, b.error), a.dtype, 0)


@rule("minimum")
def _minimum(attrs, a, b):
    return result(np.minimum(a.exact, b.exact), np.maximum(a.error, b.error), a.dtype, 0)


def _comparison(function):
    def compute(attrs, a, b):
        gap = np.abs(a.exact.astype(np.float64) - b.exact.astype(np.float64))
        error = a.error + b.error
        return result(function(a.exact, b.exact), (error > 0) & (gap <= error), "bool")

    return compute


for _name, _function in COMPARE.items():
    rule(_name)(_comparison(_function))


def _bits(function):
    def compute(attrs, a, b):
        need(a.certain and b.certain)
        exact = function(a.exact, b.exact)
        return result(exact, np.zeros(exact.shape), a.dtype)

    return compute


for _name, _function in (LOGICAL | BITWISE).items():
    rule(_name)(_bits(_function))


@rule("where")
def _where(attrs, condition, x, y):
    with np.errstate(invalid="ignore"):
        apart = np.abs(x.exact.astype(np.float64) - y.exact.astype(np.float64))
    either = apart + np.maximum(x.error, y.error)
    chosen = np.where(condition.exact, x.error, y.error)
    error = np.where(condition.error > 0, either, chosen)
    return result(np.where(condition.exact, x.exact, y.exact), error, x.dtype, 0)


@rule("nn.bias_add")
def _bias_add(attrs, x, bias):
    view = [1] * x.exact.ndim
    view[attrs["axis"]] = -1
    return add(x, moved(bias, lambda a: a.reshape(view)))


# -- makers ------------------------------------------------------------------------------------

SMOOTH = ("tanh", "sigmoid", "erf", "atan", "sin", "cos", "asinh", "exp", "sinh", "cosh")
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt")


@maker(6)
def unary(d):
    """One operator of one argument, behind what brings the argument into its domain."""
    x = d.find(lambda v: v.dtype != "bool", fresh=0.05)
    if not d.value(x).real:
        names = ["abs", "negative", "sign", "copy", "bitwise_not", "nn.relu", "floor"]
        name = d.pick(names)
        return d.call(name, x)
    name = d.pick([
        "nn.relu", "nn.relu", "abs", "negative", *SMOOTH, *POSITIVE, *ROUND, "sign", "copy",
        "asin", "acos", "acosh", "atanh", "tan", "isnan", "isfinite", "isinf", "nn.dropout",
    ])  # fmt: skip
    if name in POSITIVE or name == "acosh":
        x = d.call("abs", x)
        offset = np.asarray(1.5 if name == "acosh" else 0.25, d.value(x).dtype)
        x = d.call("add", x, d.append_const(offset))
    elif name in ("asin", "acos", "atanh", "tan"):
        x = d.call("clip", x, a_min=-0.875, a_max=0.875)
    return d.call(name, x)


@maker(2)
def bounded(d):
    x = d.find(lambda v: v.dtype != "bool")
    name = d.pick(["clip", "nn.leaky_relu", "nn.prelu"])
    if name == "clip":
        low = float(d.int(-3, 1)) if d.value(x).dtype[0] != "u" else float(d.int(0, 2))
        return d.call(name, x, a_min=low, a_max=low + d.int(1, 6))
    need(d.value(x).real)
    if name == "nn.leaky_relu":
        return d.call(name, x, alpha=d.pick([0.01, 0.25, -0.5, 1.5]))
    rank = d.value(x).exact.ndim
    axis = d.axis(rank)
    alpha = d.weights((d.value(x).shape[axis],), d.value(x).dtype)
    return d.call(name, x, alpha, axis=axis)


def partner(d, x, low=None, high=None):
    """A tensor that broadcasts with `x`: an earlier one, or a new leaf."""
    value = d.value(x)
    if d.chance(0.4):
        return d.find(lambda v: v.dtype == value.dtype and _broadcasts(v.shape, value.shape))
    shape = tuple(1 if d.chance(0.25) else e for e in value.shape)
    shape = shape[d.int(0, len(shape)) if d.chance(0.5) else 0 :]
    if d.chance(0.1) and len(shape) == len(value.shape):
        shape = (d.pick([1, 2, 3]), *shape)
    return d.leaf(shape, value.dtype, low, high, const=0.6)


def _broadcasts(a, b):
    return all(p == q or 1 in (p, q) for p, q in zip(a[::-1], b[::-1], strict=False))


@maker(7)
def binary(d):
    x = d.find(lambda v: v.dtype != "bool", fresh=0.05)
    real = d.value(x).real
    names = ["add", "subtract", "multiply", "maximum", "minimum", "add", "multiply"]
    names += ["divide", "floor_divide", "floor_mod", "mod", "power"]
    name = d.pick(names if real else names + list(BITWISE))
    if name in ("divide", "floor_divide", "floor_mod", "mod"):
        y = partner(d, x, 1, 9) if real else d.leaf(
            d.value(x).shape[d.int(0, d.value(x).exact.ndim) :], d.value(x).dtype, 1, 12
        )  # fmt: skip
        return d.call(name, x, y)
    if name == "power":
        if real:
            x = d.call("add", d.call("abs", x), d.append_const(np.asarray(0.5, d.value(x).dtype)))
            return d.call(name, x, partner(d, x, -2, 2))
        shape = d.value(x).shape if d.chance(0.5) else ()
        return d.call(name, x, d.leaf(shape, d.value(x).dtype, 0, 40 if shape else 3))
    if "shift" in name:
        return d.call(name, x, partner(d, x, 0, 40))
    y = x if d.chance(0.08) else partner(d, x)
    return d.call(name, *((x, y) if d.chance(0.6) else (y, x)))


@maker(2)
def truth(d):
    """Comparisons, logic on them, and `where`."""
    x = d.find(lambda v: v.dtype != "bool")
    condition = d.call(d.pick(COMPARE), x, partner(d, x))
    if d.chance(0.3):
        other = d.leaf(d.value(condition).shape, "bool")
        condition = d.call(d.pick(LOGICAL), condition, other)
    if d.chance(0.3):
        condition = d.call("logical_not", condition)
    if d.chance(0.7):
        return d.call("where", condition, x, partner(d, x))
    return condition


@maker(2)
def cast(d):
    x = d.find()
    value = d.value(x)
    to = d.pick(["float32", "float32", "int32", "int8", "float16", "bool", *INTEGERS])
    if value.real and to in INTEGERS:
        top = 100.0 if to[0] != "u" else 200.0
        x = d.call("clip", x, a_min=0.0 if to[0] == "u" else -top, a_max=top)
    return d.call("cast", x, dtype=to)


@maker(0.3)
def bits(d):
    x = d.find(lambda v: v.certain and v.dtype in ("float32", "int32", "uint8", "int8"))
    to = {"float32": "int32", "int32": "uint32", "uint8": "int8", "int8": "uint8"}
    return d.call("reinterpret", x, dtype=to[d.value(x).dtype])


@maker(1.5)
def bias(d):
    x = d.find(lambda v: v.dtype != "bool" and v.exact.ndim > 0)
    axis = d.axis(d.value(x).exact.ndim)
    b = d.weights((d.value(x).shape[axis],), d.value(x).dtype)
    return d.call("nn.bias_add", x, b, axis=axis)


@maker(1)
def residual(d):
    """x + f(x) and x * sigmoid(x): two readers of one tensor."""
    x = d.find(lambda v: v.real)
    return d.call(d.pick(["add", "multiply"]), x, d.call(d.pick(["tanh", "sigmoid", "nn.relu"]), x))
