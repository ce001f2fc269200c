"""Operators on quantised integers: every result exact."""

import numpy as np
from drawing import OPS, Case
from strategies import strategy
from strategies_products import geometry

from slipway.relay import quantization as rule
from slipway.relay.ops.packed.qnn_depthwise_packed import pack_weights, together


def attrs_of(d, *fields):
    return OPS[d.name].attrs_type(*fields)


def _scales(d, shape):
    per = shape and d.bool()
    axis = d.axis(len(shape)) if shape else -1
    count = (shape[axis],) if per else ()
    return axis, d.array(count, "float32", 0.01, 0.3), d.array(count, "int32", -30, 30)


@strategy("qnn.quantize")
def quantize(d):
    shape = d.shape()
    axis, scale, zero = _scales(d, shape)
    attrs = attrs_of(d, axis, d.pick(["int8", "uint8", "int16", "uint16", "int32"]))
    data = d.array(shape, "float32", -50, 50, edges=True)
    return Case((data, scale, zero), attrs)


@strategy("qnn.dequantize")
def dequantize(d):
    shape = d.shape()
    axis, scale, zero = _scales(d, shape)
    attrs = attrs_of(d, axis, "float32")
    dtype = d.pick(["int8", "uint8", "int16", "uint16", "int32"])
    return Case((d.array(shape, dtype, -(1 << 30), 1 << 30), scale, zero), attrs, ulps=1)


@strategy("qnn.conv2d_nhwc", "qnn.depthwise_conv2d_nhwc")
def conv(d):
    size, window, strides, dilation, padding = geometry(d, 2)
    dtype = d.pick(["int8", "int8", "uint8", "int16"])
    zero = 0 if dtype == "int16" else int(d.array((), dtype))
    attrs = OPS[d.name].attrs_type
    out_dtype = "int64" if dtype == "int16" else "int32"
    if "depthwise" in d.name:
        channels, times = d.pick([1, 3, 8, 16]), d.pick([1, 2, 4])
        made = attrs(strides, padding, dilation, 1, zero, out_dtype)
        weight = (*window, channels * times)
    else:
        groups, per_group = d.pick([1, 1, 2, 3]), d.pick([1, 3, 4, 8])
        made = attrs(strides, padding, dilation, groups, zero, out_dtype)
        channels = groups * per_group
        weight = (*window, per_group, groups * d.pick([1, 4, 5, 16]))
    data = d.array((d.int(1, 2), *size, channels), dtype)
    return Case((data, d.array(weight, "int8")), made)


@strategy("qnn.contrib_conv2d_packed")
def packed_conv(d):
    size, window, strides, dilation, padding = geometry(d, 2)
    dtype = d.pick(["int8", "uint8"])
    lanes, depth, kind = d.pick([(8, 2, "int16"), (4, 4, dtype), (16, 4, "int8")])
    channels = d.int(1, 9)
    made = OPS[d.name].attrs_type(
        strides, padding, dilation, 1, int(d.array((), dtype)), "int32"
    )  # fmt: skip
    weight = (d.int(1, 3), *window, -(-channels // depth), lanes, depth)
    data = d.array((d.int(1, 2), *size, channels), dtype)
    return Case((data, d.array(weight, kind, -256, 255)), made)


@strategy("qnn.contrib_conv2d_winograd")
def winograd_conv(d):
    lanes, depth = d.pick([(8, 2), (4, 2), (8, 4)])
    height, width, chunks = d.int(1, 9), d.int(1, 9), d.int(1, 5)
    dtype = d.pick(["int8", "uint8"])
    padding = (d.int(1, 2), d.int(1, 2), d.int(1, 2), d.int(1, 2))
    made = OPS[d.name].attrs_type((1, 1), padding, (1, 1), 1, int(d.array((), dtype)), "int32")
    data = d.array((d.int(1, 2), height, width, chunks * depth), dtype)
    weight = d.array((d.int(1, 3), 4, 4, chunks, lanes, depth), "int16", -1152, 1152)
    return Case((data, weight), made)


@strategy("qnn.contrib_words")
def words(d):
    return Case((d.array(d.shape(4, 4), "uint8"),))


@strategy("nn.float_parts")
def float_parts(d):
    data = d.array(d.shape(1, 4), "float32")
    parts = d.pick([(0,), (1, 0, 0), (0, 1, 0), (2, 0, 1, 1, 0, 0)])
    return Case((data,), OPS[d.name].attrs_type(parts, d.int(-data.ndim, data.ndim - 1)))


@strategy("qnn.contrib_depthwise_packed")
def packed_depthwise(d):
    kh, window, stride = d.int(1, 3), d.int(1, 6), d.int(1, 2)
    channels, results = d.pick([1, 5, 32, 40, 70]), d.int(1, together(window, stride, 4))
    attrs = attrs_of(
        d, (d.int(1, 2), stride), d.ints(4, 0, 2), (1, 1), 1, d.int(0, 255), "int32", window
    )
    plain = d.array((kh, window, channels), "int8")
    data = d.array((d.int(1, 2), d.int(3, 8), d.int(6, 12), channels), "uint8")
    return Case((data, pack_weights(plain, stride, 4, results)), attrs)


@strategy("qnn.dense_packed")
def dense(d):
    depth, units = d.int(1, 70), d.pick([1, 3, 8, 16, 33])
    dtype = d.pick(["int8", "uint8", "int16"])
    attrs = attrs_of(d, "int64" if dtype == "int16" else d.pick(["int32", "int64"]))
    return Case((d.array((*d.shape(0, 2, size=12), depth), dtype), d.array((depth, units), "int8")),
                attrs)  # fmt: skip


@strategy("qnn.avg_pool2d")
def avg_pool(d):
    window = d.ints(2, 1, 3)
    padding = tuple(d.int(0, w - 1) // 2 for w in (*window, *window))
    attrs = attrs_of(d, window, d.ints(2, 1, 3), padding)
    size = tuple(d.int(w, 9) for w in window)
    dtype = d.pick(["int8", "uint8", "int16", "int32"])
    bound = None if dtype != "int32" else 1 << 26
    data = d.array((d.int(1, 2), *size, d.pick([1, 3, 8, 16])), dtype, bound and -bound, bound)
    return Case((data,), attrs)


@strategy("qnn.rescale")
def rescale(d):
    shape = d.shape()
    once = d.bool()
    dtype = d.pick(["int32", "int64"])
    count = (shape[-1],) if shape and d.bool() else ()
    multiplier = d.array(count, "int32", 1 << 30, (1 << 31) - 1)
    left = 2 if dtype == "int32" else 0
    shift = d.array(count, "int32", -20, left)
    bound = 1 << (27 if dtype == "int32" else 40)
    if dtype == "int64":  # what does not fit into int32 has no defined result
        shift = d.array(count, "int32", -20, -10)
    return Case((d.array(shape, dtype, -bound, bound), multiplier, shift), attrs_of(d, once))


@strategy("qnn.contrib_rescale_high")
def rescale_high(d):
    shape = d.shape()
    count = (shape[-1],) if shape and d.bool() else ()
    factors = (
        d.array(count, "int32", 0, (1 << 31) - 1),
        d.array(count, "int32", -(1 << 29), 1 << 29),
        d.array(count, "int32", 0, 31),
    )
    return Case((d.array(shape, "int32"), *factors), attrs_of(d, d.pick([0, 2])))


@strategy("qnn.lookup")
def lookup(d):
    table = d.array((256,), d.pick(["int8", "uint8", "int16", "int32", "float32"]))
    return Case((d.array(d.shape(), d.pick(["int8", "uint8"])), table))


@strategy("qnn.rsqrt_multiplier", "qnn.rsqrt_shift")
def rsqrt(d):
    high = d.pick([3, 1000, (1 << 31) - 1])
    return Case((d.array(d.shape(), "int32", 0, high),))


@strategy("qnn.reciprocal", "qnn.leading_zeros")
def positive(d):
    high = d.pick([3, 1000, (1 << 31) - 2])
    return Case((d.array(d.shape(), "int32", 1, high),))


@strategy("qnn.normalize")
def normalize(d):
    rows, columns = d.int(1, 5), d.pick([1, 3, 8, 17])
    data = d.array((rows, columns), "int32", 0, (1 << 31) - 1)
    data[:, 0] |= 1 << 30  # the largest of a row is exp(0)
    total = rule.rounding_divide_by_power_of_two(data, 12).sum(1, dtype=np.int32)[:, None]
    reciprocal = OPS["qnn.reciprocal"].evaluate(None, total)
    return Case((data, reciprocal, total), attrs_of(d, d.pick(["int8", "uint8", "int16"])))
