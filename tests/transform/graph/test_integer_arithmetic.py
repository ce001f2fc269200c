"""Quantised graphs run on integers, within one step of what they say in real numbers."""

import numpy as np
import pytest

from slipway import relay
from slipway.compiler.optimize import optimize
from slipway.ir.function import IRModule
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.integers.integer_arithmetic import integer_arithmetic

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _same_numbers():
    global RNG
    RNG = np.random.default_rng(3)


quantize, dequantize = relay.qnn.op.quantize, relay.qnn.op.dequantize


def again(real, scale, zero, dtype="int8"):
    """Quantise and return to real numbers."""
    return dequantize(quantize(real, scale, zero, out_dtype=dtype), scale, zero)


def weights(*shape, axis=0, per_channel=True):
    """Constant int8 weights behind dequantize, with one scale per channel of `axis`."""
    whole = RNG.integers(-127, 128, shape).astype(np.int8)
    scale = RNG.uniform(0.002, 0.01, shape[axis] if per_channel else ()).astype(np.float32)
    return dequantize(relay.const(whole, "int8"), scale, np.zeros(scale.shape, np.int32), axis)


def bias(units, scale):
    whole = RNG.integers(-2000, 2000, units).astype(np.int32)
    return dequantize(relay.const(whole, "int32"), np.full(units, scale, np.float32),
                      np.zeros(units, np.int32), 0)  # fmt: skip


def conv(x, *shape, **options):
    kernel = weights(*shape)
    total = relay.nn.conv2d(x, kernel, channels=shape[0], kernel_size=shape[2:], **options)
    return relay.nn.bias_add(total, bias(shape[0], 2e-4))


def image(dtype="int8", zero=3):
    x = relay.var("x", shape=(1, 4, 9, 8), dtype="float32")
    return x, again(x, 0.02, zero, dtype)


def residual():
    x, q = image()
    one = again(relay.nn.relu(conv(q, 8, 4, 3, 3, padding=(1, 1))), 0.017, -128)
    two = again(conv(one, 8, 1, 3, 3, padding=(1, 1), groups=8), 0.021, -5)
    total = again(relay.clip(relay.add(one, two), 0.0, 6.0), 0.024, -128)
    pooled = again(relay.nn.max_pool2d(total, (2, 2), (2, 2)), 0.024, -128)
    mean = again(relay.nn.global_avg_pool2d(pooled), 0.012, -128)
    flat = relay.reshape(mean, (1, 8))
    return x, again(relay.add(relay.nn.dense(flat, weights(5, 8)), bias(5, 3e-5)), 0.02, 7), 0.02


def joined():
    x, q = image("uint8", 120)
    one = again(conv(q, 6, 4, 1, 1, strides=(1, 1)), 0.03, 100, "uint8")
    two = again(relay.nn.avg_pool2d(q, (3, 3), (1, 1), padding=(1, 1)), 0.02, 120, "uint8")
    three = again(relay.multiply(q, q), 0.027, 3, "uint8")
    return x, again(relay.concatenate([one, two, three], 1), 0.031, 110, "uint8"), 0.031


def tables():
    x, q = image()
    swish = relay.multiply(
        q, relay.divide(relay.clip(q + relay.const(3.0), 0, 6), relay.const(6.0))
    )
    one = again(swish, 0.015, -60)
    two = again(relay.sigmoid(one), 1 / 256, -128)
    return x, again(relay.multiply(one, two), 0.012, -50), 0.012


def wide():
    x = relay.var("x", shape=(1, 4, 9, 8), dtype="float32")
    q = again(x, 2e-4, 0, "int16")
    one = again(relay.nn.relu(conv(q, 8, 4, 3, 3)), 2e-4, 0, "int16")
    return x, again(relay.add(one, one), 4e-4, 0, "int16"), 4e-4


def moves():
    x, q = image()
    turned = relay.transpose(relay.nn.pad(q, ((0, 0), (0, 0), (1, 1), (0, 2))), (0, 2, 1, 3))
    part = relay.strided_slice(turned, [0, 1, 0, 0], [1, 9, 4, 10], [1, 2, 1, 1])
    scaled = relay.multiply(part, relay.const(0.6))
    return x, again(relay.subtract(scaled, relay.nn.relu(part)), 0.02, 0), 0.02


def matrices():
    x, q = image()
    rows = relay.reshape(q, (4, 9, 8))
    square = relay.nn.batch_matmul(rows, rows, transpose_b=True)
    return x, again(square, 0.1, 9), 0.1


def transposed():
    x, q = image()
    up = relay.nn.conv2d_transpose(q, weights(4, 6, 2, 2, axis=1), strides=(2, 2))
    return x, again(up, 0.02, -3), 0.02


def line():
    x = relay.var("x", shape=(1, 4, 19), dtype="float32")
    q = again(x, 0.02, 1)
    total = relay.nn.conv1d(q, weights(5, 4, 3), padding=(1, 1))
    return x, again(relay.nn.bias_add(total, bias(5, 2e-4)), 0.03, 1), 0.03


def parts():
    """Branches of a channel split, and of rows, each quantised again and joined."""
    x, q = image()
    y = again(relay.nn.conv2d(q, weights(8, 4, 3, 3), padding=1), 0.05, 3)
    one, two, three = relay.split(y, [2, 6], axis=1)
    sides = [again(part, 0.05, 3) for part in relay.split(one, 3, axis=2)]
    two = again(relay.nn.conv2d(again(two, 0.05, 3), weights(2, 4, 1, 1)), 0.05, 3)
    rows = again(relay.concatenate(sides, 2), 0.05, 3)
    joined = relay.concatenate([rows, two, again(three, 0.071, 0)], 1)
    return x, again(joined, 0.071, 0), 0.071


CASES = [residual, joined, tables, wide, moves, matrices, transposed, line, parts]
EXPECTED_REAL = ("qnn.quantize", "qnn.dequantize")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_integers_all_the_way(case):
    x, result, step = case()
    function = infer_type(relay.Function([x], result))
    whole = integer_arithmetic(function)
    floats = [
        e.op.name
        for e in post_order(whole.body)
        if isinstance(e, relay.Call) and "float32" in str(e.type)
    ]
    assert floats == ["qnn.dequantize"], floats
    data = RNG.uniform(-2.5, 2.5, x.tensor_type.shape).astype(np.float32)
    real, given = interpret(function, data), interpret(whole, data)
    steps = np.round(np.abs(real - given) / step)
    assert steps.max() <= 1
    assert steps.mean() < 0.02  # halves, rounded the other way
    lib = relay.build(IRModule.from_expr(function), "llvm")
    from slipway.contrib import graph_executor
    from slipway.runtime import cpu

    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    module.run(x=data)
    np.testing.assert_array_equal(module.get_output(0).numpy(), given)


def test_sums_that_real_operators_read():
    """Without quantize behind it a convolution is still computed exactly, then scaled."""
    x, q = image()
    body = relay.nn.softmax(relay.nn.conv2d(q, weights(8, 4, 3, 3)), axis=1)
    function = infer_type(relay.Function([x], body))
    whole = integer_arithmetic(function)
    names = [e.op.name for e in post_order(whole.body) if isinstance(e, relay.Call)]
    assert "qnn.conv2d_nhwc" in names
    assert "nn.conv2d" not in names
    data = RNG.uniform(-2.5, 2.5, (1, 4, 9, 8)).astype(np.float32)
    np.testing.assert_allclose(interpret(function, data), interpret(whole, data), rtol=1e-4)


def test_real_graphs_are_left_alone():
    x = relay.var("x", shape=(2, 3), dtype="float32")
    function = infer_type(relay.Function([x], relay.nn.relu(x)))
    assert integer_arithmetic(function) is function
    assert optimize(IRModule.from_expr(function)) is not None
