"""`Executor("graph", {"link-params": True})`: a library that carries its parameters."""

import numpy as np

import slipway as tvm
from slipway import relay
from slipway.contrib import graph_executor
from slipway.relay.backend import Executor, Runtime

WEIGHTS = np.arange(12, dtype="float32").reshape(3, 4)


def built(**options):
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(3, 4))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    return relay.build(module, "llvm", params={"w": WEIGHTS}, **options)


def check(executor):
    x = np.random.default_rng(0).normal(size=(2, 4)).astype("float32")
    executor.run(x=x)
    np.testing.assert_allclose(executor.get_output(0).numpy(), x @ WEIGHTS.T, rtol=1e-5)


def test_the_parameters_are_in_the_library(tmp_path):
    runtime = Runtime("cpp", {"system-lib": True})
    factory = built(executor=Executor("graph", {"link-params": True}), runtime=runtime)
    assert factory.get_params() == {}
    assert factory["remove_params"]() is factory
    check(graph_executor.create(factory.get_graph_json(), factory.lib, tvm.cpu(0)))
    factory.lib.export_library(tmp_path / "lib.so")  # as scripts do: the kernels' module
    loaded = tvm.runtime.load_module(tmp_path / "lib.so")
    assert loaded["TVMSystemLibEntryPoint"]() is loaded
    check(graph_executor.create(factory.get_graph_json(), loaded, tvm.cpu(0)))


def test_a_model_without_its_parameters(tmp_path):
    factory = built()
    assert list(factory["get_graph_params"]()) == list(factory.params)
    assert factory["get_graph_json"]() == factory.get_graph_json()
    bare = factory["remove_params"]()
    assert bare.params == {}
    assert factory.params
    bare.export_library(tmp_path / "bare.so")
    executor = graph_executor.GraphModule(
        tvm.runtime.load_module(tmp_path / "bare.so")["default"](tvm.cpu(0))
    )
    executor.load_params(relay.save_param_dict(factory.params))
    check(executor)
