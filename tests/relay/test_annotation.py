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


def test_libraries_of_processors_take_no_part(recwarn):
    """`partition_for_<library>` binds the parameters, says so, and computes the same."""
    from slipway.relay.op.contrib import arm_compute_lib, bnns, cmsisnn, dnnl

    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    weight = np.arange(12, dtype="float32").reshape(3, 4)
    value = np.ones((2, 4), "float32")
    for partition, options in (
        (arm_compute_lib.partition_for_arm_compute_lib, {"disabled_ops": []}),
        (bnns.partition_for_bnns, {}),
        (cmsisnn.partition_for_cmsisnn, {"mcpu": "cortex-m55"}),
        (dnnl.partition_for_dnnl, {"alter_layout": False}),
    ):
        made = partition(mod, {"w": tvm.nd.array(weight)}, **options)
        assert partition(mod).functions == mod.functions
        with tvm.transform.PassContext(config={"relay.ext.cmsisnn.options": {"mcpu": "any"}}):
            out = relay.create_executor("graph", mod=made).evaluate()(value)
        np.testing.assert_array_equal(out.numpy(), value @ weight.T)
    assert len([w for w in recwarn if "no operator is handed to" in str(w.message)]) == 8
    assert not cmsisnn.enabled()
    assert not arm_compute_lib.is_arm_compute_runtime_enabled()
