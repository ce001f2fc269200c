"""Tiles of integer sums: the sample cases of the operators, shapes that fit no vector."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.ir.function import IRModule
from slipway.relay import op_registry
from slipway.relay.expr import Function, Var
from slipway.relay.types import TensorType

NAMES = [name for name in op_registry.load_ops() if name.startswith("qnn.")]


def run(function, arrays, target):
    lib = relay.build(IRModule((("main", function),)), target=target)
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    for index, value in enumerate(arrays):
        executor.set_input(index, value)
    executor.run()
    return executor.get_output(0).numpy()


def variables(arrays):
    return [Var(f"x{i}", TensorType(a.shape, a.dtype.name)) for i, a in enumerate(arrays)]


@pytest.mark.parametrize("name", NAMES)
def test_compiled_operator_equals_its_reference(name):
    definition = op_registry.get(name)
    for case in definition.cases:
        arrays = case.arrays(3)
        made = variables(arrays)
        function = Function(tuple(made), definition(*made, attrs=case.attrs))
        want = definition.evaluate(case.attrs, *arrays)
        np.testing.assert_array_equal(run(function, arrays, "llvm"), want)


@pytest.mark.parametrize("channels", [5, 12, 16, 40, 96])
@pytest.mark.parametrize("width", [1, 7, 24])
def test_convolution_with_requantisation_behind(channels, width):
    rng = np.random.default_rng(6)
    data = rng.integers(-128, 128, (1, 9, width, 8)).astype(np.int8)
    weight = rng.integers(-128, 128, (3, 1, 8, channels)).astype(np.int8)
    (x,) = variables([data])
    total = relay.qnn.op.conv2d_nhwc(x, weight, padding=(1, 0, 1, 0), pad_value=-5)
    scaled = relay.qnn.op.requantize(total, np.linspace(0.001, 0.002, channels), 0, 0.9, -3, axis=3)
    function = Function((x,), scaled)
    want = relay.interpret.interpret(function, data)
    np.testing.assert_array_equal(run(function, [data], "llvm"), want)
