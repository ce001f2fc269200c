"""Marks in a graph that change no value."""

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor


def ran(function, x, opt_level=3):
    """Return what a function gives, and how many kernels it takes."""
    with tvm.transform.PassContext(opt_level=opt_level):
        made = relay.build(tvm.IRModule.from_expr(function), target="llvm")
    module = graph_executor.GraphModule(made["default"](tvm.cpu(0)))
    module.run(x=x)
    nodes = made.get_graph_json()
    return module.get_output(0).numpy(), nodes.count('"tvm_op"')


def test_a_kernel_ends_where_fusion_is_stopped():
    x = relay.var("x", shape=(3, 5))
    given = np.random.default_rng(0).standard_normal((3, 5)).astype("float32")
    whole, one = ran(relay.Function([x], relay.exp(relay.abs(x))), given)
    marked = relay.exp(relay.annotation.stop_fusion(relay.abs(x)))
    parts, several = ran(relay.Function([x], marked), given)
    np.testing.assert_array_equal(whole, parts)
    assert one == 1
    assert several > 1


def test_a_checkpoint_is_the_value_itself():
    x = relay.var("x", shape=(4,))
    given = np.arange(4, dtype="float32")
    found, _ = ran(relay.Function([x], relay.annotation.checkpoint(relay.negative(x))), given)
    np.testing.assert_array_equal(found, -given)
