"""Models whose kernels are written in time that grows with them, not with what they expand to."""

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.relay.interpret import interpret


def test_a_chain_of_integers_that_reads_each_part_twice():
    """40 sums of a value and itself, in one kernel: 2^40 reads written as a tree."""
    x = relay.var("x", shape=(3, 5), dtype="int8")
    one, two, zero = relay.const(np.float32(0.1)), relay.const(np.float32(0.2)), relay.const(3)
    y = x
    for _ in range(40):
        y = relay.qnn.op.add(y, y, one, zero, one, zero, two, zero)
    function = relay.Function([x], y)
    built = relay.build(tvm.IRModule.from_expr(function), target="llvm")
    module = tvm.contrib.graph_executor.GraphModule(built["default"](tvm.cpu()))
    value = np.random.default_rng(0).integers(-9, 9, (3, 5)).astype("int8")
    module.run(x=value)
    np.testing.assert_array_equal(module.get_output(0).numpy(), interpret(function, value))
