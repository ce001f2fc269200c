"""Integers less a zero point that their own dtype cannot hold: -1 beside unsigned bytes.

A border of it in stored bytes would be another number, and int16 would wrap around.
"""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import SlipwayError
from slipway.relay.interpret import interpret

RNG = np.random.default_rng(3)
ZEROS = (-200, -3, -1, 0, 5, 255, 300)


def run(function, target, **inputs):
    with tvm.transform.PassContext(opt_level=3):
        library = relay.build(function, target=target)
    module = graph_executor.GraphModule(library["default"](tvm.cpu(0)))
    module.run(**inputs)
    return module.get_output(0).numpy()


def agrees(function, *values):
    names = [p.name for p in function.params]
    wanted = interpret(function, *values)
    for target in ("llvm", "llvm -mcpu=x86-64-v3"):
        found = run(function, target, **dict(zip(names, values, strict=True)))
        np.testing.assert_array_equal(found, wanted, target)


def wide(value, dtype="int32"):
    return relay.cast(value, dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("zero", ZEROS)
def test_the_border_of_a_convolution(dtype, groups, zero):
    info = np.iinfo(dtype)
    value = RNG.integers(info.min, info.max + 1, (2, 2, 5, 3)).astype(dtype)
    weight = RNG.integers(-128, 128, (2, 2 // groups, 2, 4)).astype(np.int8)
    x = relay.var("x", shape=value.shape, dtype=dtype)
    y = relay.nn.conv2d(
        relay.subtract(wide(x), relay.const(zero, "int32")), wide(relay.const(weight)),
        padding=(0, 2, 2, 1), groups=groups, channels=2, kernel_size=(2, 4), out_dtype="int32",
    )  # fmt: skip
    agrees(relay.Function([x], y), value)


@pytest.mark.parametrize(("kind", "zero"), [("int32", -7), ("int32", 300), ("uint8", 200)])
def test_a_zero_point_that_is_computed(kind, zero):
    value = RNG.integers(0, 256, (1, 3, 6, 6)).astype(np.uint8)
    weight = RNG.integers(-128, 128, (3, 1, 3, 3)).astype(np.int8)
    x = relay.var("x", shape=value.shape, dtype="uint8")
    z = relay.var("z", shape=(), dtype=kind)
    y = relay.nn.conv2d(
        relay.subtract(wide(x), wide(z)), wide(relay.const(weight)), padding=(1, 1),
        groups=3, channels=3, kernel_size=(3, 3), out_dtype="int32",
    )  # fmt: skip
    agrees(relay.Function([x, z], y), value, np.array(zero, kind))


def test_products_of_two_matrices_of_which_one_has_any_zero_point():
    """Nothing is known of its numbers, so float32 cannot hold their sums."""
    a = RNG.integers(0, 256, (1, 4, 64)).astype(np.uint8)
    b = RNG.integers(-128, 128, (1, 5, 64)).astype(np.int8)
    x, y = relay.var("x", shape=a.shape, dtype="uint8"), relay.var("y", shape=b.shape, dtype="int8")
    z = relay.var("z", shape=(), dtype="int32")
    product = relay.nn.batch_matmul(relay.subtract(wide(x), z), wide(y), out_dtype="int32")
    agrees(relay.Function([x, y, z], product), a, b, np.array(1234567, np.int32))


@pytest.mark.parametrize("zero", [5, -200, -32700, 32767])
def test_differences_of_16_bits_wrap_around(zero):
    value = RNG.integers(0, 256, (3, 8)).astype(np.uint8)
    weight = RNG.integers(-128, 128, (5, 8)).astype(np.int32)
    x = relay.var("x", shape=value.shape, dtype="uint8")
    for less in (
        relay.subtract(wide(x, "int16"), relay.const(zero, "int16")),
        wide(relay.subtract(wide(x), relay.const(2 * zero, "int32")), "int16"),
    ):
        y = relay.nn.dense(wide(less), relay.const(weight), out_dtype="int32")
        agrees(relay.Function([x], y), value)


@pytest.mark.parametrize("make", ["conv2d_nhwc", "depthwise_conv2d_nhwc"])
@pytest.mark.parametrize(("dtype", "value"), [("uint8", -1), ("uint8", 256), ("int8", 200)])
def test_a_border_that_the_data_cannot_hold_is_refused(make, dtype, value):
    x = relay.var("x", shape=(1, 6, 6, 4), dtype=dtype)
    weight = np.ones((3, 3, 4, 4) if make == "conv2d_nhwc" else (3, 3, 4), np.int8)
    with pytest.raises(SlipwayError, match=f"pad_value.*{value}.*{dtype}"):
        padded = getattr(relay.qnn.op, make)(x, weight, pad_value=value, padding=(1, 1, 1, 1))
        run(relay.Function([x], padded), "llvm")


def quantized(value, zero, dtype="uint8"):
    stored = relay.qnn.op.quantize(value, relay.const(0.5), relay.const(zero), out_dtype=dtype)
    return relay.qnn.op.dequantize(stored, relay.const(0.5), relay.const(zero))


@pytest.mark.parametrize("zero", [-5, 0, 7, 300])
def test_real_convolutions_between_quantised_tensors(zero):
    """`integer_arithmetic` has borders of zero, whose integer is the zero point."""
    value = RNG.uniform(-20, 20, (1, 4, 6, 6)).astype(np.float32)
    weight = RNG.integers(-9, 10, (4, 4, 3, 3)).astype(np.float32)
    x = relay.var("x", shape=value.shape)
    y = relay.nn.conv2d(quantized(x, zero), relay.const(weight), padding=(1, 1))
    agrees(relay.Function([x], quantized(y, 3)), value)


@pytest.mark.parametrize("pad_value", [0.0, 3.0, 1000.0])
def test_a_border_around_quantised_numbers(pad_value):
    value = RNG.uniform(-20, 20, (1, 4, 6, 6)).astype(np.float32)
    x = relay.var("x", shape=value.shape)
    widths = ((0, 0), (0, 0), (1, 1), (2, 0))
    y = relay.nn.pad(quantized(x, 3, "int8"), widths, pad_value)
    agrees(relay.Function([x], y), value)
