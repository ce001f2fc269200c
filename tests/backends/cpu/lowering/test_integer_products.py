"""Products of integers less their zero points reach the packed kernels, with the same sums."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.compiler.optimize import optimize
from slipway.contrib import graph_executor
from slipway.relay.expr import Call, Op
from slipway.relay.visit import post_order
from slipway.target import Target

TARGET = "llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake"
PACKED = ("qnn.contrib_conv2d_packed", "qnn.contrib_depthwise_packed")
RNG = np.random.default_rng(0)


def random_bytes(shape, dtype):
    bounds = np.iinfo(dtype)
    return RNG.integers(bounds.min, bounds.max + 1, shape).astype(dtype)


def operators(function):
    """Return the names of the operators that `function` becomes on an AVX512-VNNI processor."""
    module = tvm.IRModule.from_expr(function)
    with tvm.transform.PassContext(opt_level=3):
        module = optimize(module, target=Target(TARGET), layout_lanes=16)
    calls = [e for e in post_order(module["main"]) if isinstance(e, Call)]
    return {c.op.name for c in calls if isinstance(c.op, Op)}


def results(function, **inputs):
    """Return what the function computes here."""
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(tvm.IRModule.from_expr(function), target="llvm -mcpu=native")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**inputs)
    return module.get_output(0).numpy()


def centred(name, shape, dtype, zero):
    """Return an input as int32 less `zero`: a number, None, or a relay variable."""
    data = relay.var(name, shape=shape, dtype=dtype)
    whole = relay.cast(data, "int32")
    if zero is None:
        return data, whole
    point = zero if isinstance(zero, relay.Var) else relay.const(zero, "int32")
    return data, relay.subtract(whole, relay.cast(point, "int32"))


def windows(data, weight, strides, padding, dilation, groups):
    """The sums of a convolution in NCHW, in integers."""
    (top, left, bottom, right) = padding
    padded = np.pad(data.astype(np.int64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    count, per_group, kh, kw = weight.shape
    height = (padded.shape[2] - dilation[0] * (kh - 1) - 1) // strides[0] + 1
    width = (padded.shape[3] - dilation[1] * (kw - 1) - 1) // strides[1] + 1
    out = np.zeros((data.shape[0], count, height, width), np.int64)
    each = count // groups
    for o, y, x in np.ndindex(count, kh, kw):
        first, top, left = (o // each) * per_group, y * dilation[0], x * dilation[1]
        part = padded[:, first : first + per_group, top:, left:]
        part = part[:, :, :: strides[0], :: strides[1]][:, :, :height, :width]
        out[:, o] += np.einsum("nihw,i->nhw", part, weight[o, :, y, x].astype(np.int64))
    return out.astype(np.int32)


CONVOLUTIONS = {
    # dtype, zero, weights' dtype and zero, shapes, strides, padding, dilation, groups
    "bytes": (
        "uint8", None, "int8", 0, (1, 16, 9, 9), (32, 16, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1,
    ),
    "zero point": (
        "uint8", 117, "int8", 0, (2, 9, 8, 7), (17, 9, 3, 3), (2, 1), (0, 1, 2, 1), (1, 1), 1,
    ),
    "signed": (
        "int8", -3, "int8", 0, (1, 32, 6, 6), (16, 32, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1,
    ),
    "wide weights": (
        "uint8", 3, "uint8", 127, (1, 8, 7, 7), (16, 8, 3, 3), (1, 1), (1, 1, 1, 1), (2, 1), 1,
    ),
    "groups": (
        "uint8", 5, "int8", 0, (1, 48, 6, 6), (48, 12, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4,
    ),
    "depthwise": (
        "uint8", 200, "int8", 0, (1, 32, 9, 9), (32, 1, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 32,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_of_bytes_are_packed(name):
    dtype, zero, weight_dtype, weight_zero, shape, kernel, *geometry = CONVOLUTIONS[name]
    strides, padding, dilation, groups = geometry
    data, whole = centred("x", shape, dtype, zero)
    weight = random_bytes(kernel, weight_dtype).astype(np.int32) - weight_zero
    body = relay.nn.conv2d(
        whole, relay.const(weight), strides=strides, padding=padding, dilation=dilation,
        groups=groups,
    )  # fmt: skip
    function = relay.Function([data], relay.add(body, relay.const(np.int32(7))))
    found = operators(function)
    assert set(PACKED) & found
    assert "nn.pad" not in found  # what is around the data is in the product's kernel
    x = random_bytes(shape, dtype)
    wanted = windows(x.astype(np.int64) - (zero or 0), weight, *geometry) + 7
    np.testing.assert_array_equal(results(function, x=x), wanted)


@pytest.mark.parametrize("layout", ["NHWC", "HWOI"])
def test_channels_last_convolutions_need_no_transposition(layout):
    groups, kernel = (1, (3, 3, 16, 32)) if layout == "NHWC" else (16, (3, 3, 16, 1))
    data, whole = centred("x", (1, 8, 8, 16), "int8", 4)
    weight = random_bytes(kernel, "int8")
    body = relay.nn.conv2d(
        whole, relay.const(weight.astype(np.int32)), padding=(1, 1), groups=groups,
        data_layout="NHWC", kernel_layout="HWIO" if groups == 1 else "HWOI",
    )  # fmt: skip
    function = relay.Function([data], body)
    found = operators(function)
    assert set(PACKED) & found
    assert not {"transpose", "layout_transform"} & found
    x = random_bytes((1, 8, 8, 16), "int8")
    plain = weight.transpose(3, 2, 0, 1) if groups == 1 else weight.transpose(2, 3, 0, 1)
    geometry = ((1, 1), (1, 1, 1, 1), (1, 1), groups)
    wanted = windows(x.transpose(0, 3, 1, 2).astype(np.int64) - 4, plain, *geometry)
    np.testing.assert_array_equal(results(function, x=x), wanted.transpose(0, 2, 3, 1))


def test_a_computed_zero_point_pads_too():
    zero = relay.var("z", shape=(), dtype="uint8")
    data, whole = centred("x", (1, 16, 5, 6), "uint8", zero)
    weight = random_bytes((16, 16, 3, 3), "int8").astype(np.int32)
    function = relay.Function(
        [data, zero], relay.nn.conv2d(whole, relay.const(weight), padding=(1, 1))
    )
    assert set(PACKED) & operators(function)
    x, geometry = random_bytes((1, 16, 5, 6), "uint8"), ((1, 1), (1, 1, 1, 1), (1, 1), 1)
    for z in (0, 131, 255):
        wanted = windows(x.astype(np.int64) - z, weight, *geometry)
        np.testing.assert_array_equal(results(function, x=x, z=np.uint8(z)), wanted)


def test_a_convolution_of_one_axis_is_an_image():
    data, whole = centred("x", (2, 16, 21), "uint8", 9)
    weight = random_bytes((32, 16, 3), "int8").astype(np.int32)
    body = relay.nn.conv1d(whole, relay.const(weight), strides=(2,), padding=(1, 0))
    function = relay.Function([data], body)
    assert set(PACKED) & operators(function)
    x = random_bytes((2, 16, 21), "uint8")
    geometry = ((1, 2), (0, 1, 0, 0), (1, 1), 1)
    wanted = windows(x[:, :, None].astype(np.int64) - 9, weight[:, :, None], *geometry)
    np.testing.assert_array_equal(results(function, x=x), wanted[:, :, 0])


@pytest.mark.parametrize("weight_zero", [0, 127, 3, 255])
@pytest.mark.parametrize("rows", [1, 5])
def test_dense_layers_of_bytes_are_packed(rows, weight_zero):
    zero = relay.var("z", shape=(1,), dtype="uint8")
    data, whole = centred("x", (rows, 70), "uint8", zero)
    kind = "uint8" if weight_zero else "int8"
    weight = random_bytes((48, 70), kind).astype(np.int32) - weight_zero
    function = relay.Function([data, zero], relay.nn.dense(whole, relay.const(weight)))
    assert set(PACKED) & operators(function)
    x, z = random_bytes((rows, 70), "uint8"), np.array([77], np.uint8)
    wanted = (x.astype(np.int64) - 77) @ weight.T.astype(np.int64)
    np.testing.assert_array_equal(results(function, x=x, z=z), wanted)


@pytest.mark.parametrize("depth", [60, 700])
def test_products_of_computed_bytes_run_in_float32_where_it_is_exact(depth):
    a, left = centred("a", (2, 5, depth), "uint8", 255)
    b, right = centred("b", (2, 7, depth), "int8", 127)
    function = relay.Function([a, b], relay.nn.batch_matmul(left, right))
    # All extremes at once: each sum is the largest that there is.
    x, y = np.zeros((2, 5, depth), np.uint8), np.full((2, 7, depth), -128, np.int8)
    x[1], y[1] = random_bytes(x[1].shape, "uint8"), random_bytes(y[1].shape, "int8")
    wanted = (x.astype(np.int64) - 255) @ (y.astype(np.int64) - 127).transpose(0, 2, 1)
    assert np.abs(wanted).max() == 255 * 255 * depth
    np.testing.assert_array_equal(results(function, a=x, b=y), wanted)
