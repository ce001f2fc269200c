"""Integers for real numbers: quantise, sums of stored integers, the rule of requantisation.

The rule (docs/quantization.md) is written here once more with Python's own integers, which are
of any size: nothing can overflow unseen.
"""

import math

import numpy as np

from benchmarks.fuzz_graphs.drawing import maker
from benchmarks.fuzz_graphs.graph import rule
from benchmarks.fuzz_graphs.products import convolution, geometry
from benchmarks.fuzz_graphs.values import UNIT, linear, need, result, stepped

STORED = ("int8", "uint8", "int16")


def _along(array, rank, axis):
    array = np.asarray(array)
    if array.ndim == 0:
        return array
    view = [1] * rank
    view[axis % rank] = -1
    return array.reshape(view)


@rule("qnn.quantize")
def _quantize(attrs, x, scale, zero):
    rank, axis, dtype = x.exact.ndim, attrs["axis"], attrs["out_dtype"]
    divisor, shift = _along(scale.exact, rank, axis), _along(zero.exact, rank, axis)
    info = np.iinfo(dtype)

    def steps(real):
        return np.clip(np.rint(real / divisor) + shift, info.min, info.max)

    rounded = UNIT["float32"] * np.abs(x.exact) + 1e-30  # of the division
    inexact = result(x.exact, x.error + rounded, x.dtype, 0)
    return stepped(steps, inexact, dtype)


@rule("qnn.dequantize")
def _dequantize(attrs, x, scale, zero):
    rank, axis = x.exact.ndim, attrs["axis"]
    factor, shift = _along(scale.exact, rank, axis), _along(zero.exact, rank, axis)
    exact = factor * (x.exact.astype(np.float64) - shift)
    return result(exact, x.error * factor, "float32")


def multiplier(real: float) -> tuple[int, int]:
    """A real factor as (m, s) with m * 2**(s - 31) close to it."""
    if real == 0:
        return 0, 0
    fraction, shift = math.frexp(real)
    whole = math.floor(fraction * 2**31 + 0.5)
    if whole == 2**31:
        whole, shift = whole // 2, shift + 1
    return (0, 0) if shift < -31 else (whole, shift)


def rescaled(total: int, m: int, s: int) -> int:
    """`total` times m * 2**(s - 31): the doubled high half, then a rounding to nearest."""
    left, right = max(s, 0), max(-s, 0)
    shifted = ((total << left) + 2**31) % 2**32 - 2**31
    high = (shifted * m + 2**30) >> 31
    if not right:
        return high
    mask = 2**right - 1
    return (high >> right) + int((high & mask) > (mask >> 1) + (1 if high < 0 else 0))


@rule("qnn.op.requantize")
def _requantize(attrs, x):
    rank, axis = x.exact.ndim, attrs["axis"]
    ratio = np.asarray(attrs["input_scale"], np.float64) / float(attrs["output_scale"])
    scales = np.broadcast_to(_along(ratio, rank, axis), x.shape)
    zeros = int(attrs["input_zero_point"])
    info = np.iinfo(attrs["out_dtype"])
    made = np.zeros(x.shape, np.int64)
    for at in np.ndindex(x.shape):
        m, s = multiplier(float(scales[at]))
        value = rescaled(int(x.exact[at]) - zeros, m, s) + int(attrs["output_zero_point"])
        made[at] = min(max(value, info.min), info.max)
    need(bool((np.abs(x.exact.astype(np.float64)) < 2**30).all()))
    error = np.where(x.error > 0, np.ceil(x.error * scales) + 1, 0.0)
    return result(made, error, attrs["out_dtype"])


@rule("qnn.op.conv2d")
def _conv2d(attrs, x, w):
    zero, other = attrs["input_zero_point"], attrs["kernel_zero_point"]

    def direct(a, b):
        return convolution(
            a, b, attrs["strides"], attrs["padding"], attrs["dilation"], attrs["groups"]
        )

    centred = result(x.exact.astype(np.int32) - zero, x.error, "int32")
    kernel = result(w.exact.astype(np.int32) - other, w.error, "int32")
    return linear(direct, "int32", 1, centred, kernel)


@rule("qnn.op.dense")
def _dense(attrs, x, w):
    centred = result(x.exact.astype(np.int32) - attrs["input_zero_point"], x.error, "int32")
    kernel = result(w.exact.astype(np.int32) - attrs["kernel_zero_point"], w.error, "int32")
    return linear(lambda a, b: a @ b.T, "int32", 1, centred, kernel)


@rule("qnn.conv2d_nhwc", "qnn.depthwise_conv2d_nhwc")
def _conv_nhwc(attrs, x, w):
    depthwise = "groups" not in attrs
    groups = x.shape[3] if depthwise else attrs["groups"]
    top, left, bottom, right = attrs["padding"]

    def direct(a, b):
        a = np.transpose(a, (0, 3, 1, 2))
        b = np.moveaxis(b, -1, 0)[:, None] if depthwise else np.transpose(b, (3, 2, 0, 1))
        a = np.pad(
            a, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=attrs["pad_value"]
        )
        out = convolution(a, b, attrs["strides"], (0,) * 4, attrs["dilation"], groups)
        return np.transpose(out, (0, 2, 3, 1))

    need(x.certain and w.certain)
    return linear(direct, attrs["out_dtype"], 1, x, w)


@rule("qnn.leading_zeros")
def _leading_zeros(attrs, x):
    need(x.certain and bool((x.exact > 0).all()))
    bits = [32 - int(v).bit_length() for v in x.exact.ravel()]
    return result(np.array(bits, np.int32).reshape(x.shape), np.zeros(x.shape), "int32")


@rule("qnn.lookup")
def _lookup(attrs, x, table):
    need(x.certain and table.certain)
    positions = x.exact.astype(np.int64) - np.iinfo(x.dtype).min
    return result(table.exact[positions], np.zeros(x.shape), table.dtype)


# -- makers ------------------------------------------------------------------------------------


def _stored(d, shape=None):
    """A tensor of stored integers: an earlier one, or a new one."""
    if d.chance(0.5):
        wanted = None if shape is None else len(shape)
        return d.find(lambda v: v.dtype in STORED and v.certain and wanted in (None, v.exact.ndim))
    return d.leaf(shape or d.shape(1, 4), d.pick(STORED[:2]), -128, 255, const=0.0)


def requantize(d, x, axis):
    """Behind sums: bring them to bytes, with one scale or one per channel."""
    rank = d.value(x).exact.ndim
    top = max(1.0, float(np.max(np.abs(d.value(x).exact.astype(np.float64)), initial=0.0)))
    out = d.pick(STORED[:2])
    scale = float(d.rng.uniform(0.3, 1.3)) * 127 / top
    scales = scale
    if d.chance(0.5) and rank:
        scales = (scale * d.rng.uniform(0.5, 1.5, d.value(x).shape[axis])).astype("float32")
    return d.call(
        "qnn.op.requantize", x, input_scale=scales, input_zero_point=0, output_scale=1.0,
        output_zero_point=0 if out == "int8" else d.int(0, 255), axis=axis, out_dtype=out,
    )  # fmt: skip


@maker(3)
def layer(d):
    """An integer convolution or dense layer, its bias, and the way back to bytes."""
    need(d.kind in ("integers", "float32"))
    if d.chance(0.35):
        x = _stored(d, (d.extent(7), d.extent(65)))
        units = d.pick([1, 3, 8, 16, 17, 33])
        w = d.weights((units, d.value(x).shape[1]), "int8", -127, 127)
        y = d.call(
            "qnn.op.dense", x, w, input_zero_point=d.int(-3, 3), kernel_zero_point=0,
            input_scale=1.0, kernel_scale=1.0, units=units,
        )  # fmt: skip
        axis = 1
    else:
        nhwc = d.chance(0.5)
        channels, height, width = d.pick([1, 2, 3, 4, 8, 16, 17]), d.extent(17), d.extent(17)
        need(channels * height * width <= 4000)
        depthwise = d.chance(0.3)
        units = channels * d.pick([1, 1, 2]) if depthwise else d.pick([1, 3, 8, 16, 17])
        window, strides, dilation, padding = geometry(d, (height, width), 2)
        if nhwc:
            x = _stored(d, (d.int(1, 2), height, width, channels))
            need(d.value(x).shape[3] == channels and d.value(x).shape[1] == height)
            attrs = {
                "strides": strides, "padding": padding, "dilation": dilation,
                "pad_value": d.int(-3, 3) if d.value(x).dtype == "int8" else d.int(0, 9),
                "out_dtype": "int32",
            }  # fmt: skip
            if depthwise:
                w = d.weights((*window, units), "int8", -127, 127)
                y = d.call("qnn.depthwise_conv2d_nhwc", x, w, **attrs)
            else:
                w = d.weights((*window, channels, units), "int8", -127, 127)
                y = d.call("qnn.conv2d_nhwc", x, w, **attrs, groups=1)
            axis = 3
        else:
            x = _stored(d, (d.int(1, 2), channels, height, width))
            need(d.value(x).shape[1] == channels and d.value(x).shape[2] == height)
            groups = channels if depthwise else 1
            w = d.weights((units, channels // groups, *window), "int8", -127, 127)
            y = d.call(
                "qnn.op.conv2d", x, w, input_zero_point=d.int(-3, 3), kernel_zero_point=0,
                input_scale=1.0, kernel_scale=1.0, kernel_size=window, channels=units,
                strides=strides, padding=padding, dilation=dilation, groups=groups,
            )  # fmt: skip
            axis = 1
    if d.chance(0.6):
        bias = d.weights((d.value(y).shape[axis],), "int32", -1000, 1000)
        y = d.call("nn.bias_add", y, bias, axis=axis)
    return requantize(d, y, axis)


@maker(1.5)
def affine(d):
    """Quantise a real tensor, or make stored integers real."""
    scale = float(np.float32(d.rng.uniform(0.01, 0.1)))
    if d.chance(0.5):
        x = d.find(lambda v: v.dtype == "float32")
        out = d.pick(STORED)
        zero = d.int(0, 100) if out == "uint8" else d.int(-20, 20)
        return d.call(
            "qnn.quantize", x, d.append_const(np.float32(scale)), d.append_const(np.int32(zero)),
            axis=-1, out_dtype=out,
        )  # fmt: skip
    x = d.find(lambda v: v.dtype in STORED)
    shape = d.value(x).shape
    axis = d.int(0, len(shape) - 1) if shape else 0
    size = (shape[axis],) if shape and d.chance(0.4) else ()
    scales = d.rng.uniform(0.01, 0.1, size).astype("float32")
    zeros = d.rng.integers(-9, 9, size).astype("int32")
    return d.call(
        "qnn.dequantize", x, d.append_const(scales), d.append_const(zeros), axis=axis,
        out_dtype="float32",
    )  # fmt: skip


@maker(0.4)
def table(d):
    x = d.find(lambda v: v.dtype in ("int8", "uint8") and v.certain)
    return d.call("qnn.lookup", x, d.leaf((256,), d.pick(STORED[:2]), const=0.9))


@maker(0.2)
def zeros(d):
    return d.call("qnn.leading_zeros", d.leaf(d.shape(), "int32", 1, 2**31 - 1))


@rule("qnn.avg_pool2d")
def _average(attrs, x):
    """Halves away from zero, of what lies inside; window by window in whole numbers."""
    need(x.certain)
    kernel, strides, padding = attrs["pool_size"], attrs["strides"], attrs["padding"]
    size = x.shape[1:3]
    out = [(size[a] + padding[a] + padding[a + 2] - kernel[a]) // strides[a] + 1 for a in (0, 1)]
    need(min(out) > 0)
    made = np.zeros((x.shape[0], *out, x.shape[3]), x.dtype)
    for n, y, w, c in np.ndindex(*made.shape):
        begin = [p * s - b for p, s, b in zip((y, w), strides, padding, strict=False)]
        part = [
            slice(max(b, 0), min(b + k, e)) for b, k, e in zip(begin, kernel, size, strict=True)
        ]
        taken = x.exact[(n, *part, c)]
        need(taken.size > 0)
        total = sum(map(int, taken.ravel()))
        rounded = (2 * abs(total) + taken.size) // (2 * taken.size)
        made[n, y, w, c] = rounded if total > 0 else -rounded
    return result(made, 0.0, x.dtype)


@maker(0.5)
def integer_average(d):
    shape = (d.int(1, 2), d.extent(7), d.extent(7), d.extent(17))
    kernel = (d.int(1, 3), d.int(1, 3))
    return d.call(
        "qnn.avg_pool2d", d.leaf(shape, d.pick(STORED), const=0.1), pool_size=kernel,
        strides=(d.int(1, 2), d.int(1, 2)),
        padding=tuple(d.int(0, kernel[a % 2] - 1) for a in range(4)),
    )  # fmt: skip
