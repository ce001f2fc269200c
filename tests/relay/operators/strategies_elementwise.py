"""Elementwise operators, reductions, normalisation."""

import numpy as np
from drawing import ALL, FLOATS, INTS, NUMBERS, OPS, Case
from strategies import strategy

from slipway.codegen.math import ulp_bound

MATH = {
    "exp": "exp", "log": "log", "log2": "log2", "log10": "log10", "rsqrt": "rsqrt", "tanh": "tanh",
    "sigmoid": "sigmoid", "erf": "erf", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin",
    "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "asinh": "asinh",
    "acosh": "acosh", "atanh": "atanh",
}  # fmt: skip
TRIGONOMETRIC = ("sin", "cos", "tan")


def math_ulps(function, dtype):
    """The bound of docs/codegen.md; half a unit for the rounding of the reference."""
    return ulp_bound(function, "float64" if dtype == "float64" else "float32") + 0.5


@strategy(*MATH)
def math(d):
    shape = d.shape()
    dtype = d.dtype(FLOATS, shape)
    edges = d.name not in TRIGONOMETRIC
    low, high = (-300, 300) if d.name in TRIGONOMETRIC else d.pick([(-4, 4), (-1, 1), (0, 90)])
    bound = math_ulps(MATH[d.name], dtype)
    if dtype == "float64":
        bound += 2  # NumPy's own error: there is nothing wider to compare with
    return Case((d.array(shape, dtype, low, high, edges),), ulps=bound)


@strategy("sqrt", "floor", "ceil", "trunc", "round", "abs", "negative", "sign", "isnan", "isinf",
          "isfinite", "copy", "nn.relu")  # fmt: skip
def exact(d):
    shape = d.shape()
    dtype = d.dtype(ALL, shape)
    low = 1 - 2**63 if d.name in ("abs", "negative") and dtype == "int64" else None
    return Case((d.array(shape, dtype, low, edges=True),))


@strategy("annotation.compiler_begin", "annotation.compiler_end")
def mark(d):
    shape = d.shape()
    attrs = OPS[d.name].attrs_type("accelerator")
    return Case((d.array(shape, d.dtype(ALL, shape), edges=True),), attrs)


@strategy("annotation.stop_fusion", "annotation.checkpoint", "annotation.on_device", "device_copy")
def plain_mark(d):
    shape = d.shape()
    return Case((d.array(shape, d.dtype(ALL, shape), edges=True),), OPS[d.name].attrs_type())


@strategy("logical_not", "bitwise_not")
def inverted(d):
    shape = d.shape()
    dtype = d.dtype(("bool",) if d.name == "logical_not" else (*INTS, "bool"), shape)
    return Case((d.array(shape, dtype),))


@strategy("cast")
def cast(d):
    attrs_type = OPS["cast"].attrs_type
    shape = d.shape()
    source, target = d.pick(ALL), d.pick(ALL)
    low = high = None
    if source in FLOATS and target in INTS:
        # What lies beyond the integers has no defined result.
        info = np.iinfo(target)
        low, high = max(info.min, -60000), min(info.max, 60000)
    return Case((d.array(shape, source, low, high),), attrs_type(target))


@strategy("reinterpret")
def reinterpret(d):
    pairs = [("float32", "int32"), ("int32", "float32"), ("float64", "int64"), ("uint8", "int8"),
             ("float16", "int16"), ("uint32", "float32"), ("int64", "uint64")]  # fmt: skip
    source, target = d.pick(pairs)
    shape = d.shape()
    values = d.array(shape, source)
    if target.startswith("float"):  # no NaN: its payload is free
        values = d.array(shape, target).view(source)
    return Case((values,), OPS["reinterpret"].attrs_type(target))


@strategy("nn.leaky_relu")
def leaky_relu(d):
    shape = d.shape()
    alpha = d.pick([0.01, 0.0, 0.2, 1.5, -0.5])
    attrs = OPS[d.name].attrs_type(alpha)
    return Case((d.array(shape, d.dtype(FLOATS, shape, attrs=attrs), edges=True),), attrs, ulps=2)


@strategy("nn.prelu")
def prelu(d):
    shape = d.shape(1)
    attrs = OPS[d.name].attrs_type(d.axis(len(shape)))
    alpha = (shape[attrs.axis],)
    dtype = d.dtype(FLOATS, shape, alpha, attrs=attrs)
    return Case((d.array(shape, dtype), d.array(alpha, dtype)), attrs, ulps=1)


@strategy("clip")
def clip(d):
    shape = d.shape()
    low = d.pick([-100.0, -1.0, 0.0, 3.0, -np.inf])
    high = d.pick([3.0, 6.0, 127.0, np.inf])
    attrs = OPS[d.name].attrs_type(low, high)
    dtype = d.dtype(NUMBERS, shape, attrs=attrs)
    if dtype.startswith("uint"):
        attrs = OPS[d.name].attrs_type(max(low, 0.0), high)
    return Case((d.array(shape, dtype, edges=dtype in FLOATS),), attrs)


@strategy("nn.dropout")
def dropout(d):
    shape = d.shape()
    attrs = OPS[d.name].attrs_type(0.5)
    return Case((d.array(shape, d.dtype(FLOATS, shape, attrs=attrs)),), attrs)


# -- two arguments -------------------------------------------------------------------------------


@strategy("add", "subtract", "multiply", "maximum", "minimum", "equal", "not_equal", "less",
          "less_equal", "greater", "greater_equal")  # fmt: skip
def binary(d):
    one, other = d.broadcast_pair()
    dtype = d.dtype(ALL, one, other)
    low, high = (0, 3) if d.bool() else (None, None)  # equal elements occur
    edges = d.name not in ("maximum", "minimum")  # of which zero, of NaN: not defined
    return Case((d.array(one, dtype, low, high, edges), d.array(other, dtype, low, high, edges)))


@strategy("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")
def bits(d):
    one, other = d.broadcast_pair()
    dtype = d.dtype(("bool", *INTS), one, other)
    return Case((d.array(one, dtype), d.array(other, dtype)))


@strategy("left_shift", "right_shift")
def shift(d):
    one, other = d.broadcast_pair()
    dtype = d.dtype(INTS, one, other)
    return Case((d.array(one, dtype), d.array(other, dtype, 0, np.iinfo(dtype).bits - 1)))


def _divisor(d, shape, dtype):
    made = d.array(shape, dtype)
    if dtype in FLOATS:
        return np.where(np.abs(made) < 0.1, 1, made).astype(dtype)
    # Neither 0 nor -1, which has no quotient for the lowest number.
    return np.where((made == 0) | (made == np.array(-1).astype(dtype)), 3, made).astype(dtype)


@strategy("divide", "floor_divide", "floor_mod", "mod")
def division(d):
    one, other = d.broadcast_pair()
    dtype = d.dtype(NUMBERS, one, other)
    left, right = d.array(one, dtype), _divisor(d, other, dtype)
    if dtype in FLOATS and d.name != "divide":
        # Quotients of thirds may lie on either side of an integer: use what is exact.
        left, right = np.round(left * 8) / 8, np.round(right * 4 + np.sign(right)) / 4
    return Case((left.astype(dtype), right.astype(dtype)), ulps=1)


@strategy("power")
def power(d):
    one, other = d.broadcast_pair()
    dtype = d.dtype(FLOATS, one, other)
    base, exponent = d.array(one, dtype, 0.05, 4), d.array(other, dtype, -3, 3)
    bound = math_ulps("pow", dtype) + (2 if dtype == "float64" else 0)
    return Case((base, exponent), ulps=bound)


@strategy("where")
def where(d):
    out = d.shape()

    def part():
        kept = out[d.int(0, len(out)) :]
        return tuple(1 if d.int(0, 3) == 0 else e for e in kept)

    shapes = (part(), out, part())
    dtype = d.pick(ALL)
    return Case((d.array(shapes[0], "bool"), d.array(shapes[1], dtype), d.array(shapes[2], dtype)))


# -- reductions ----------------------------------------------------------------------------------


@strategy("sum", "mean", "prod", "max", "min", "all", "any")
def reduction(d):
    shape = d.shape(0, 4, size=600)
    rank = len(shape)
    axes = None if rank == 0 or d.bool() else d.axes(rank, 1)
    exclude = axes is not None and d.int(0, 3) == 0
    attrs = OPS[d.name].attrs_type(axes, d.bool(), exclude)
    dtype = d.dtype(ALL, shape, attrs=attrs)
    low, high = (0.8, 1.25) if d.name == "prod" else (None, None)
    terms = int(np.prod(shape, dtype=int)) if d.name in ("sum", "mean", "prod") else 0
    return Case((d.array(shape, dtype, low, high),), attrs, terms=terms)


@strategy("argmax", "argmin")
def argument(d):
    shape = d.shape(1, 4, size=600)
    axis = None if d.bool() else d.axis(len(shape))
    attrs = OPS[d.name].attrs_type(axis, d.bool(), d.bool(), d.pick(["int64", "int32"]))
    dtype = d.dtype(NUMBERS, shape, attrs=attrs)
    data = d.array(shape, dtype, 0, 5)
    return Case((np.round(data).astype(dtype),), attrs)  # ties occur


@strategy("sized")
def sized(d):
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    count = d.int(0, shape[axis])
    given = np.full(d.pick([(), (1,)]), count, d.pick(["int32", "int64"]))
    return Case((d.array(shape, "float32"), given), OPS[d.name].attrs_type(count, axis))


@strategy("cumsum", "cumprod")
def scan(d):
    shape = d.shape(1, 3, size=400)
    attrs = OPS[d.name].attrs_type(d.axis(len(shape)), d.bool(), d.bool())
    dtype = d.dtype(NUMBERS, shape, attrs=attrs)
    low, high = (0.8, 1.25) if d.name == "cumprod" and dtype in FLOATS else (None, None)
    return Case((d.array(shape, dtype, low, high),), attrs, terms=shape[attrs.axis])


@strategy("nn.softmax", "nn.log_softmax")
def softmax(d):
    shape = d.shape(1, 4)
    attrs = OPS[d.name].attrs_type(d.axis(len(shape)))
    dtype = d.dtype(FLOATS, shape, attrs=attrs)
    high = d.pick([1, 10, 80])
    count = shape[attrs.axis]
    # exp, its sum and the quotient; the subtraction's rounding is an error of the exponent.
    return Case((d.array(shape, dtype, -high, high),), attrs, ulps=8 + count / 2 + high, scale=4)


@strategy("nn.batch_norm")
def batch_norm(d):
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    channels = (shape[axis],)
    attrs = OPS[d.name].attrs_type(axis, 1e-5, d.bool(), d.bool())
    dtype = d.dtype(FLOATS, shape, *(channels,) * 4, attrs=attrs)
    gamma, beta, mean = (d.array(channels, dtype) for _ in range(3))
    return Case(
        (d.array(shape, dtype), gamma, beta, mean, d.array(channels, dtype, 0.5, 2)), attrs,
        ulps=4, scale=8,
    )  # fmt: skip


@strategy("nn.layer_norm", "nn.instance_norm")
def norm(d):
    layer = d.name == "nn.layer_norm"
    shape = d.shape(1 if layer else 3, 4)
    axis = d.axis(len(shape)) if layer else d.int(1, len(shape) - 1)
    attrs = OPS[d.name].attrs_type(axis, d.pick([1e-5, 1e-3]), d.bool(), d.bool())
    count = (shape[axis],)
    dtype = d.dtype(FLOATS, shape, count, count, attrs=attrs)
    data = d.array(shape, dtype)
    if data.size:  # a variance near zero magnifies every rounding
        data = data + np.arange(data.size, dtype=dtype).reshape(shape) % 7
    terms = data.size
    return Case(
        (data.astype(dtype), d.array(count, dtype), d.array(count, dtype)), attrs, ulps=8,
        scale=16 + terms / 4,
    )  # fmt: skip


@strategy("nn.lrn")
def lrn(d):
    shape = d.shape(4, 4)
    attrs = OPS[d.name].attrs_type(d.pick([1, 3, 5]), d.int(0, 3), 2.0, d.pick([1e-4, 0.1]), 0.75)
    dtype = d.dtype(FLOATS, shape, attrs=attrs)
    return Case((d.array(shape, dtype),), attrs, ulps=12)
