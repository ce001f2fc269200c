"""The graph that an executor runs, and where its tensors lie."""

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.compiler.memory_plan import check_plan
from slipway.compiler.relay_build import kernel_graph
from slipway.contrib import graph_executor


def chain():
    """A chain of kernels that do not fuse, so that buffers are used again along it."""
    x = relay.var("x", shape=(1, 8, 12, 12))
    rng = np.random.default_rng(0)
    y = x
    for _ in range(4):
        weight = relay.const(rng.standard_normal((8, 8, 3, 3)).astype("float32") * 0.1)
        y = relay.nn.max_pool2d(relay.nn.conv2d(y, weight, padding=(1, 1)), (3, 3), padding=(1, 1))
    return tvm.IRModule.from_expr(y)


@pytest.mark.parametrize("opt_level", [0, 2, 3])
def test_running_again_gives_the_same_outputs(opt_level):
    with tvm.transform.PassContext(opt_level=opt_level):
        lib = relay.build(chain(), target="llvm")
    check_plan(lib.memory_plan)
    model = graph_executor.GraphModule(lib["default"](tvm.cpu(0)))
    data = np.random.default_rng(1).standard_normal((1, 8, 12, 12)).astype("float32")
    model.set_input("x", data)
    model.run()
    first = model.get_output(0).numpy()
    for _ in range(3):
        model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), first)
    np.testing.assert_array_equal(model.get_input("x").numpy(), data)


def test_no_tensor_lies_over_an_input():
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(chain(), target="llvm")
    graph, tables = lib.graph, lib.tables

    def span(number):
        entry = tables.entry(number)
        storage = tables.storages[entry.storage]
        return storage.offset, storage.offset + entry.size_bytes

    for index in tables.inputs:
        begin, end = span(index)
        for number, node in enumerate(graph.nodes):
            if number != index and node.function != "__nop":
                start, stop = span(number)
                assert stop <= begin or end <= start, (graph.nodes[index].name, node.name)


def test_a_model_that_only_reshapes_runs(tmp_path):
    module = tvm.IRModule.from_expr(relay.reshape(relay.var("x", shape=(2, 6)), (3, 4)))
    lib = relay.build(module, target="llvm")
    data = np.arange(12, dtype="float32").reshape(2, 6)
    lib.export_library(tmp_path / "model.tar")
    for made in (lib, tvm.runtime.load_module(tmp_path / "model.tar")):
        model = graph_executor.GraphModule(made["default"](tvm.cpu(0)))
        model.run(x=data)
        np.testing.assert_array_equal(model.get_output(0).numpy(), data.reshape(3, 4))


def test_outputs_keep_the_names_of_the_model():
    x = relay.var("x", shape=(2, 3))
    body = relay.Tuple([relay.tanh(x), relay.exp(x), relay.negative(x)])
    main = relay.Function([x], body).with_attr("output_names", ("a", "b\tc", "a"))
    graph = kernel_graph(tvm.IRModule.from_expr(main), tvm.target.Target("llvm"))
    assert graph.output_names == ("a", "b_c", "a_1")
