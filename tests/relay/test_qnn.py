"""The rule of requantisation, and the classic relay.qnn.op names built on it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.errors import TypeInferenceError
from slipway.ir.function import IRModule
from slipway.relay import quantization as rule
from slipway.relay.expr import Function, Var
from slipway.relay.interpret import interpret
from slipway.relay.types import TensorType


def c_rule(x, m, s):
    """gemmlowp's own formulation, in Python integers."""
    left, right = max(s, 0), max(-s, 0)
    x = ((x << left) + (1 << 31)) % (1 << 32) - (1 << 31)
    product = x * m
    nudged = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    high = abs(nudged) >> 31
    high = high if nudged >= 0 else -high  # C divides toward zero
    mask = (1 << right) - 1
    return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0))


@given(
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.integers(0, (1 << 31) - 1),
    st.integers(-31, 8),
)
def test_int32_rule_is_gemmlowps(x, m, s):
    assert int(rule.multiply_by_quantized_multiplier(np.int32(x), m, s)) == c_rule(x, m, s)


@given(st.floats(1e-9, 1e6))
def test_multiplier_stands_for_the_factor(real):
    multiplier, shift = rule.quantize_multiplier(real)
    assert 1 << 30 <= multiplier < 1 << 31
    assert multiplier * 2.0 ** (shift - 31) == pytest.approx(real, rel=2**-30)


def test_tiny_factors_are_zero():
    assert rule.quantize_multiplier(2.0**-40) == (0, 0)
    assert rule.quantize_multiplier(0.0) == (0, 0)


def test_a_factor_that_rounds_up_to_a_power_of_two():
    assert rule.quantize_multiplier(1.0 - 2.0**-40) == (1 << 30, 1)


@given(st.integers(0, (1 << 31) - 1))
def test_fixed_point_reciprocal_is_close(a):
    found = int(rule.one_over_one_plus_x(np.int32(a))) / 2**31
    assert found == pytest.approx(1 / (1 + a / 2**31), abs=1e-8)


@given(st.integers(-(1 << 31), 0))
def test_fixed_point_exponential_is_close(a):
    found = int(rule.exp_on_negative_values(np.int32(a), 5)) / 2**31
    assert found == pytest.approx(np.exp(a / 2**26), abs=1e-6)


def both(function, *values):
    """Run in the interpreter and compiled; they must agree bit for bit."""
    want = interpret(function, *values)
    lib = relay.build(IRModule((("main", function),)), target="llvm")
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    for index, value in enumerate(values):
        executor.set_input(index, value)
    executor.run()
    got = executor.get_output(0).numpy()
    np.testing.assert_array_equal(got, want)
    return got


def data(name, *shape, dtype="int8"):
    return Var(name, TensorType(shape, dtype))


def random(*shape, dtype="int8"):
    info = np.iinfo(dtype)
    return np.random.default_rng(1).integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def test_requantize_per_channel():
    x = data("x", 2, 5, 8, dtype="int32")
    scales = np.linspace(1e-4, 3e-3, 8)
    y = relay.qnn.op.requantize(x, scales, 0, relay.const(0.05), relay.const(-3), axis=2)
    value = np.random.default_rng(1).integers(-9000, 9000, (2, 5, 8)).astype(np.int32)
    got = both(Function((x,), y), value)
    exact = np.clip(np.round(value * scales / np.float64(np.float32(0.05))) - 3, -128, 127)
    assert np.abs(got - exact).max() <= 1


def test_quantize_and_dequantize_are_inverse():
    x = data("x", 3, 50)
    real = relay.qnn.op.dequantize(x, 0.25, 7)
    back = relay.qnn.op.quantize(real, 0.25, 7)
    value = random(3, 50)
    np.testing.assert_array_equal(both(Function((x,), back), value), value)


@pytest.mark.parametrize(("layout", "kernel"), [("NCHW", "OIHW"), ("NHWC", "HWIO")])
def test_conv2d_pads_with_the_zero_point(layout, kernel):
    shape, weights = (
        ((1, 3, 6, 6), (4, 3, 3, 3)) if layout == "NCHW" else ((1, 6, 6, 3), (3, 3, 3, 4))
    )
    x = data("x", *shape, dtype="uint8")
    w = random(*weights)
    y = relay.qnn.op.conv2d(
        x, w, 130, 0, 0.1, 0.2, (3, 3), 4, padding=(1, 1), data_layout=layout, kernel_layout=kernel
    )
    value = random(*shape, dtype="uint8")
    got = both(Function((x,), y), value)
    plain = relay.nn.conv2d(
        (value.astype(np.int32) - 130), w.astype(np.int32), padding=(1, 1), data_layout=layout,
        kernel_layout=kernel,
    )  # fmt: skip
    np.testing.assert_array_equal(got, interpret(Function((), plain)))


@pytest.mark.parametrize("per_channel", [False, True])
def test_zero_points_that_the_run_computes(per_channel):
    x, w = data("x", 2, 6, 6, 3, dtype="uint8"), random(3, 3, 3, 4)
    zero, others = data("z", dtype="uint8"), data("k", *([4] if per_channel else []))
    y = relay.qnn.op.conv2d(
        x, w, zero, others, 0.1, 0.2, (3, 3), 4, data_layout="NHWC", kernel_layout="HWIO"
    )
    value, z = random(2, 6, 6, 3, dtype="uint8"), np.array(130, "uint8")
    k = random(4) if per_channel else np.array(-3, "int8")
    got = both(Function((x, zero, others), y), value, z, k)
    plain = relay.nn.conv2d(
        value.astype(np.int32) - 130, w.astype(np.int32) - k, data_layout="NHWC",
        kernel_layout="HWIO",
    )  # fmt: skip
    np.testing.assert_array_equal(got, interpret(Function((), plain)))
    with pytest.raises(TypeInferenceError, match="one number, or one for each channel"):
        relay.qnn.op.dense(data("a", 2, 3), data("b", 4, 3), data("c", 2, 1), 0, 0.1, 0.2)


def test_dense_subtracts_both_zero_points():
    x, w = data("x", 3, 20), random(6, 20)
    y = relay.qnn.op.dense(x, w, 5, -4, 0.1, 0.2)
    value = random(3, 20)
    want = (value.astype(int) - 5) @ (w.astype(int) + 4).T
    np.testing.assert_array_equal(both(Function((x,), y), value), want)


@pytest.mark.parametrize("name", ["add", "subtract", "mul"])
def test_arithmetic_stays_within_one_step(name):
    x, y = data("x", 4, 30), data("y", 4, 30)
    made = getattr(relay.qnn.op, name)(x, y, 0.1, 3, 0.07, -9, 0.2, 4)
    a, b = random(4, 30), random(4, 30)[::-1].copy()
    got = both(Function((x, y), made), a, b)
    numpy_name = {"add": np.add, "subtract": np.subtract, "mul": np.multiply}[name]
    real = numpy_name(0.1 * (a.astype(float) - 3), 0.07 * (b.astype(float) + 9))
    assert np.abs(got - np.clip(np.round(real / 0.2) + 4, -128, 127)).max() <= 1


def test_concatenate_brings_parts_to_one_scale():
    x, y = data("x", 2, 3), data("y", 2, 4)
    made = relay.qnn.op.concatenate([x, y], [0.1, 0.2], [0, 3], 0.1, 0, axis=1)
    a, b = random(2, 3), random(2, 4)
    got = both(Function((x, y), made), a, b)
    np.testing.assert_array_equal(got[:, :3], a)
    np.testing.assert_array_equal(got[:, 3:], np.clip((b.astype(int) - 3) * 2, -128, 127))


def test_scales_must_be_constants():
    x = data("x", 2, 3)
    with pytest.raises(TypeInferenceError, match="'input_scale' must be a constant"):
        relay.qnn.op.requantize(x, data("s", 1, dtype="float32"), 0, 0.1, 0)


def test_unknown_name_gets_a_suggestion():
    with pytest.raises(AttributeError, match="requantize"):
        relay.qnn.op.requantise  # noqa: B018
