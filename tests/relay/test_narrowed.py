"""Graphs for a part of the range of their sizes, and with sizes of their own."""

import numpy as np
import pytest

from slipway import relay
from slipway.ir.expr import SizeVar
from slipway.ir.function import IRModule
from slipway.relay.dims import Dim
from slipway.relay.interpret import interpret
from slipway.relay.narrowed import narrowed, with_own_sizes
from slipway.runtime.devices import cpu
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.transform.graph.infer_type import infer_type

N = Dim("n", 4, 20)


def function(expr):
    return infer_type(expr.as_function())


def shapes(made):
    return [str(p.checked_type.shape) for p in made.params], str(made.body.checked_type.shape)


def test_types_and_attributes_have_the_new_size():
    x = relay.var("x", shape=(N, 3))
    made = narrowed(function(relay.nn.relu(relay.repeat(x, 2, 0))), {N.formula: 5})
    assert shapes(made) == (["(5, 3)"], "(10, 3)")
    part = narrowed(function(relay.nn.relu(x)), {N.formula: SizeVar("n", "int32", 6, 7)})
    (extent, _) = part.body.checked_type.shape
    assert (extent.low, extent.high) == (6, 7)


def test_an_axis_becomes_the_size_that_others_follow():
    x, y = relay.var("x", shape=(N - 2, 3)), relay.var("y", shape=(2 * N, 3))
    made = with_own_sizes(function(relay.concatenate([relay.nn.relu(x), y], 0)))
    assert shapes(made)[0] == ["(size0, 3)", "(size0 * 2 + 4, 3)"]
    kept = function(relay.nn.relu(relay.var("x", shape=(N, N - 2))))
    assert with_own_sizes(kept) is kept


@pytest.mark.parametrize("length", [4, 9, 20])
def test_kernels_between_which_no_axis_is_the_size_itself(length):
    """Windows without padding: n - 2 columns are all that later kernels read."""
    rng = np.random.default_rng(0)
    w = relay.const(rng.standard_normal((4, 3, 3)).astype(np.float32))
    y = relay.nn.softmax(relay.nn.conv1d(relay.var("x", shape=(1, 3, N)), w))
    mod = IRModule.from_expr(y)
    module = GraphModule(relay.build(mod, target="llvm")["default"](cpu(0)))
    x = rng.standard_normal((1, 3, length)).astype(np.float32)
    module.set_input("x", x)
    module.run()
    np.testing.assert_allclose(module.get_output(0).numpy(), interpret(mod, x), rtol=1e-4)
