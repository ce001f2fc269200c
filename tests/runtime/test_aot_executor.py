"""Models compiled ahead of time as classic scripts run them: inputs by number, by either name."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import ExecutionError
from slipway.relay.backend import Executor
from slipway.runtime.executor import AotModule


@pytest.fixture(scope="module")
def module():
    x, y, z = (relay.var(n, shape=(2, 3)) for n in ("input:0", "out/a", "out_a"))
    func = relay.Function([x, y, z], x - y * z)
    built = relay.build(tvm.IRModule.from_expr(func), "llvm", executor=Executor("aot"))
    return AotModule(built["default"](tvm.cpu(0)))


def test_inputs_go_by_their_names_in_c(module):
    values = {n: np.full((2, 3), v, np.float32) for n, v in (("input_0", 5), ("out/a", 2))}
    module.set_input(**values, out_a=np.full((2, 3), 3, np.float32))
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), np.full((2, 3), -1, np.float32))
    assert [module.get_input_name(i) for i in range(3)] == ["input:0", "out/a", "out_a"]
    assert module.get_input_index("input_0") == module.get_input_index("input:0") == 0
    assert module.get_input_index("out_a") == 2  # a name of its own comes first
    np.testing.assert_array_equal(module.get_input("input_0").numpy(), values["input_0"])


def test_names_that_no_input_has(module):
    with pytest.raises(ExecutionError, match=r"Invalid input name.*'input:0', 'out/a', 'out_a'"):
        module.set_input("input_1", np.zeros((2, 3), np.float32))
    with pytest.raises(ExecutionError, match="Invalid input name"):
        module.get_input_index("nothing")
    with pytest.raises(IndexError, match="no input 3, the model has 3"):
        module.get_input_name(3)


def test_memory_of_the_caller_by_keyword():
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    func = relay.Function([x, y], x - y)
    built = relay.build(tvm.IRModule.from_expr(func), "llvm")
    graph = tvm.contrib.graph_executor.GraphModule(built["default"](tvm.cpu(0)))
    a, b = (tvm.nd.array(np.full(4, v, np.float32)) for v in (3, 1))
    graph.set_input_zero_copy(x=a, y=b)
    graph.run()
    np.testing.assert_array_equal(graph.get_output(0).numpy(), np.full(4, 2, np.float32))
    a.copyfrom(np.full(4, 7, np.float32))
    graph.run()
    np.testing.assert_array_equal(graph.get_output(0).numpy(), np.full(4, 6, np.float32))
