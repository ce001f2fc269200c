"""Bytes between quantize and dequantize get another sign; results and stored outputs stay."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.move_activations import move_activations
from slipway.compiler.optimize import optimize
from slipway.ir.function import IRModule
from slipway.relay.expr import Function, Var
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order
from slipway.target import Target


def quantized(real, scale, zero):
    stored = relay.qnn.op.quantize(real, relay.const(scale), relay.const(zero, "int32"))
    return stored, relay.qnn.op.dequantize(stored, relay.const(scale), relay.const(zero, "int32"))


def network(stored_output):
    """A convolution and a sum in quantise-dequantise form, random weights."""
    rng = np.random.default_rng(2)
    x = Var("x", TensorType((1, 8, 9, 7), "float32"))
    weight = relay.qnn.op.dequantize(
        relay.const(rng.integers(-127, 128, (8, 8, 3, 3)).astype("int8")),
        relay.const(np.linspace(0.01, 0.02, 8).astype("float32")),
        relay.const(np.zeros(8, "int32")),
        axis=0,
    )
    _, first = quantized(x, 0.05, -7)
    total = relay.nn.conv2d(first, weight, padding=(1, 1), channels=8, kernel_size=(3, 3))
    _, second = quantized(relay.nn.relu(total), 0.04, -128)
    stored, third = quantized(relay.add(first, second), 0.06, 3)
    return Function((x,), stored if stored_output else third)


def stored_dtypes(function):
    exprs = post_order(function, into_functions=False)
    names = ("qnn.quantize",)
    return [
        e.checked_type.dtype for e in exprs if getattr(getattr(e, "op", None), "name", "") in names
    ]


@pytest.mark.parametrize("stored_output", [False, True])
def test_the_same_numbers_from_unsigned_bytes(stored_output):
    function = network(stored_output)
    changed = move_activations(function, "uint8")
    data = np.random.default_rng(3).normal(0, 3, (1, 8, 9, 7)).astype("float32")
    want = relay.interpret.interpret(function, data)
    got = relay.interpret.interpret(changed, data)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    last = "int8" if stored_output else "uint8"
    assert stored_dtypes(changed) == ["uint8", "uint8", last]


def test_optimized_for_an_instruction_gives_the_same_bits():
    function = network(True)
    data = np.random.default_rng(4).normal(0, 3, (1, 8, 9, 7)).astype("float32")
    results = []
    for cpu in ("skylake", "alderlake"):
        target = Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
        mod = optimize(IRModule((("main", function),)), target=target, opt_level=3)
        text = str(mod)
        assert ("uint8" in text) == (cpu == "alderlake")
        results.append(relay.interpret.interpret(mod["main"], data))
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("stored_output", [False, True])
def test_there_and_back(stored_output):
    function = network(stored_output)
    back = move_activations(move_activations(function, "uint8"), "int8")
    data = np.random.default_rng(3).normal(0, 3, (1, 8, 9, 7)).astype("float32")
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(relay.interpret.interpret(back, data), want)
    assert stored_dtypes(back) == ["int8"] * 3


def test_unsigned_bytes_for_an_instruction_on_signed_ones():
    """A model of uint8 activations on ARM: all of its layers get the instruction."""
    function = move_activations(network(False), "uint8")
    data = np.random.default_rng(4).normal(0, 3, (1, 8, 9, 7)).astype("float32")
    want = relay.interpret.interpret(function, data)
    for cpu in ("cortex-a76", "cortex-a72"):
        target = Target(f"llvm -mtriple=aarch64-linux-gnu -mcpu={cpu}")
        mod = optimize(IRModule((("main", function),)), target=target, opt_level=3)
        assert "qnn.contrib_conv2d_packed" in str(mod)
        assert "uint8" not in str(mod)
        got = relay.interpret.interpret(mod["main"], data)
        assert np.abs(got - want).max() <= 0.06 * 1.001  # a step of the result


def test_data_of_the_other_sign_is_moved():
    """An input of the model is what it is; sums of it lose what the move adds."""
    rng = np.random.default_rng(5)
    data = rng.integers(0, 256, (1, 6, 5, 12)).astype("uint8")
    weight = rng.integers(-128, 128, (3, 3, 12, 8)).astype("int8")
    x = Var("x", TensorType(data.shape, "uint8"))
    total = relay.qnn.op.conv2d_nhwc(x, weight, padding=(1, 1, 1, 1), pad_value=200)
    function = Function((x,), total)
    target = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76")
    mod = optimize(IRModule((("main", function),)), target=target, opt_level=3)
    assert "qnn.contrib_conv2d_packed" in str(mod)
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(relay.interpret.interpret(mod["main"], data), want)


def test_what_others_read_stays_signed():
    x = Var("x", TensorType((4,), "float32"))
    stored, _ = quantized(x, 0.05, 0)
    function = Function((x,), relay.cast(stored, "int32"))
    assert move_activations(function, "uint8") is function
