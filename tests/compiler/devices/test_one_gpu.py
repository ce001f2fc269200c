"""A model for one GPU by the classic three, graph, library and parameters, here and over RPC."""

import json

import numpy as np
import pytest

import slipway as tvm
from slipway import relay, rpc
from slipway.contrib import graph_executor
from slipway.contrib.debugger import debug_executor
from slipway.errors import ExecutionError


@pytest.fixture(scope="module")
def made():
    """A library whose second axis a value decides, its inputs, and what it computes."""
    if not tvm.opencl(0).exist:
        pytest.skip("no OpenCL device: apt-get install pocl-opencl-icd ocl-icd-libopencl1")
    x = relay.var("x", shape=(3, 20))
    count = relay.var("count", shape=(), dtype="int64")
    first = relay.sized(
        relay.exp(x), count + relay.const(1, "int64"), relay.Dim("found", 0, 20), axis=1
    )
    body = relay.nn.relu(first + relay.var("bias", shape=(3, 1)))
    mod = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    bias = np.full((3, 1), -1, "float32")
    library = relay.build(mod, "opencl", params={"bias": bias})
    values = np.random.default_rng(0).normal(size=(3, 20)).astype("float32")
    given = {"x": values, "count": np.int64(6)}
    return library, given, np.maximum(np.exp(values[:, :7]) - 1, 0)


def result(module, given):
    module.run(**given)
    return module.get_output(0).numpy()


def test_the_classic_three_run_on_the_device_that_is_given(made, tmp_path):
    library, given, wanted = made
    graph, code, params = library
    assert set(json.loads(graph)["attrs"]["device_index"][1]) == {4}  # OpenCL
    for devices in (tvm.opencl(0), [tvm.opencl(0)], [tvm.cpu(0), tvm.opencl(0)]):
        module = graph_executor.create(graph, code, devices)
        module.set_input(**params)
        np.testing.assert_allclose(result(module, given), wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(
        ExecutionError, match=r"run on opencl: give a device of each kind, .*opencl\(0\)"
    ):
        graph_executor.create(graph, code, tvm.cpu(0))
    code.export_library(tmp_path / "code.so")
    remote = rpc.PopenSession()
    remote.upload(tmp_path / "code.so")
    module = graph_executor.create(graph, remote.load_module("code.so"), remote.cl(0))
    module.set_input(**params)
    np.testing.assert_allclose(result(module, given), wanted, rtol=1e-5, atol=1e-6)


def test_kernels_are_measured_and_written_one_by_one(made, tmp_path, capsys):
    (graph, code, params), given, wanted = made
    module = debug_executor.create(graph, code, tvm.opencl(0), tmp_path)
    module.set_input(**params)
    np.testing.assert_allclose(result(module, given), wanted, rtol=1e-5, atol=1e-6)
    assert "fused_exp" in capsys.readouterr().out
    last = len(module.node_names()) - 1
    np.testing.assert_allclose(module.debug_get_output(last).numpy(), wanted, rtol=1e-5, atol=1e-6)
