"""An image of bytes in words: the first layer of a quantised network."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.cpu.lowering.move_activations import move_activations
from slipway.compiler.optimize import optimize
from slipway.contrib import graph_executor
from slipway.ir.function import IRModule
from slipway.relay.expr import Function, Var
from slipway.relay.op_registry import is_call_of
from slipway.relay.types import TensorType
from slipway.relay.visit import post_order
from slipway.target import Target


def quantized(real, scale, zero):
    stored = relay.qnn.op.quantize(real, relay.const(scale), relay.const(zero, "int32"))
    return relay.qnn.op.dequantize(stored, relay.const(scale), relay.const(zero, "int32"))


def first_layer(channels, outputs, window):
    rng = np.random.default_rng(channels)
    x = Var("x", TensorType((1, channels, 19, 22), "float32"))
    weight = relay.qnn.op.dequantize(
        relay.const(rng.integers(-127, 128, (outputs, channels, window, window)).astype("int8")),
        relay.const(np.linspace(0.01, 0.02, outputs).astype("float32")),
        relay.const(np.zeros(outputs, "int32")),
        axis=0,
    )
    made = relay.nn.conv2d(
        quantized(x, 0.02, -3), weight, strides=(2, 2), padding=(window // 2,) * 2,
        channels=outputs, kernel_size=(window, window),
    )  # fmt: skip
    function = Function((x,), quantized(made, 0.07, 5))
    return function, rng.normal(0, 1, (1, channels, 19, 22)).astype("float32")


@pytest.mark.parametrize("sizes", [(2, 16, 3), (3, 24, 7), (4, 32, 3), (5, 16, 3)])
def test_the_same_bits_as_without_the_instruction(sizes):
    function, data = first_layer(*sizes)
    mod = IRModule((("main", function),))
    want = relay.interpret.interpret(optimize(mod, opt_level=3)["main"], data)
    vnni = optimize(mod, target=Target("llvm -mcpu=cascadelake"), opt_level=3)["main"]
    words = [e for e in post_order(vnni) if is_call_of(e, "qnn.contrib_words")]
    assert len(words) == (sizes[0] <= 4)
    np.testing.assert_array_equal(relay.interpret.interpret(vnni, data), want)
    executor = graph_executor.GraphModule(relay.build(mod, target="llvm")["default"](tvm.cpu(0)))
    executor.set_input(0, data)
    executor.run()
    np.testing.assert_array_equal(executor.get_output(0).numpy(), want)


@pytest.mark.parametrize("sizes", [(2, 16, 3), (3, 24, 7), (4, 32, 3)])
def test_words_are_taken_apart_for_an_instruction_on_int16(sizes):
    if not Target("llvm").has_feature("avx2"):
        pytest.skip("this processor lacks avx2")
    function, data = first_layer(*sizes)
    mod = IRModule((("main", move_activations(function, "uint8")),))
    want = relay.interpret.interpret(optimize(mod, opt_level=3)["main"], data)
    target = Target("llvm -mcpu=haswell")
    packed = optimize(mod, target=target, opt_level=3)["main"]
    words = [e for e in post_order(packed) if is_call_of(e, "qnn.contrib_words")]
    assert len(words) == (sizes[0] > 2)
    np.testing.assert_array_equal(relay.interpret.interpret(packed, data), want)
    executor = graph_executor.GraphModule(relay.build(mod, target=target)["default"](tvm.cpu(0)))
    executor.set_input(0, data)
    executor.run()
    np.testing.assert_array_equal(executor.get_output(0).numpy(), want)
