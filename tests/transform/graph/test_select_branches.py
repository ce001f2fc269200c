"""An If whose branches call operators only is computed in a compiled model."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.relay.expr import If
from slipway.relay.visit import post_order
from slipway.transform.graph.infer_type import infer_type
from slipway.transform.graph.select_branches import select_branches

X = np.linspace(-2, 2, 7).astype(np.float32)


def variables():
    return relay.var("x", shape=(7,)), relay.var("flag", shape=(), dtype="bool")


def run(function, target, **inputs):
    lib = relay.build(tvm.IRModule.from_expr(function), target)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.set_input(**inputs)
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("flag", [False, True])
def test_a_branch_of_tensors(target, flag):
    x, condition = variables()
    function = relay.Function((x, condition), relay.If(condition, relay.exp(x), x * x))
    (got,) = run(function, target, x=X, flag=np.array(flag))
    np.testing.assert_allclose(got, np.exp(X) if flag else X * X, rtol=1e-5)


@pytest.mark.parametrize("flag", [False, True])
def test_nested_branches_of_tuples(flag):
    """The untaken branch divides by zero, in floats and in integers, and gives NaN."""
    x, condition = variables()
    whole = relay.cast(x, "int32")
    inner = relay.If(relay.logical_not(condition), relay.log(x), x)
    one = relay.Tuple((relay.divide(x, x - x), whole / (whole - whole)))
    other = relay.Tuple((inner, whole))
    function = relay.Function((x, condition), relay.If(condition, other, one))
    got = run(function, "llvm", x=X, flag=np.array(flag))
    if flag:
        np.testing.assert_array_equal(got[0], X)
        np.testing.assert_array_equal(got[1], X.astype(np.int32))
    else:
        assert not np.isfinite(got[0]).any()


def test_a_branch_that_calls_a_function_stays():
    x, condition = variables()
    own = relay.var("v", shape=(7,))
    called = relay.Function((own,), own + own)
    function = infer_type(
        relay.Function((x, condition), relay.If(condition, relay.Call(called, (x,)), x))
    )
    assert select_branches(function) is function
    assert any(isinstance(e, If) for e in post_order(function))
