"""Running a model kernel by kernel."""

import json

import numpy as np
import pytest

import slipway as tvm
from slipway import relay
from slipway.contrib.debugger import debug_executor
from slipway.errors import ExecutionError


def test_a_run_prints_times_and_writes_what_kernels_compute(tmp_path, capsys):
    x = relay.var("x", shape=(2, 8), dtype="float32")
    w = relay.const(np.eye(8, dtype="float32") * 2)
    f = relay.Function([x], relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, w))))
    lib = relay.build(tvm.IRModule.from_expr(f), "llvm")
    m = debug_executor.create(
        lib.get_graph_json(), lib.get_lib(), tvm.cpu(0), dump_root=str(tmp_path)
    )
    m.load_params(relay.save_param_dict(lib.get_params()))
    given = np.random.default_rng(0).normal(size=(2, 8)).astype("float32")
    m.run(number=2, x=given, sort_by_time=True)
    relu = np.maximum(given * 2, 0)
    wanted = np.exp(relu) / np.exp(relu).sum(1, keepdims=True)
    np.testing.assert_allclose(m.get_output(0).numpy(), wanted, rtol=1e-5)
    kernels = [i for i, (_, function) in enumerate(m.node_names()) if function]
    assert len(capsys.readouterr().out.splitlines()) == len(kernels) + 2
    assert json.loads((tmp_path / "_tvmdbg_graph_dump.json").read_text())["nodes"]
    stored = relay.load_param_dict((tmp_path / "output_tensors.params").read_bytes())
    assert len(stored) == len(kernels)
    assert any(np.allclose(v.numpy(), wanted, rtol=1e-5) for v in stored.values())
    times = m.run_individual(3, 2)
    assert [len(row) for row in times] == [2] * len(kernels)
    assert m.run_individual_node(kernels[0], 3, 2).mean > 0
    assert m.run_individual_node(0).mean == 0  # an input
    table = m.debug_datum.get_debug_result().splitlines()
    assert table[0].split()[:2] == ["Node", "Name"]
    assert table[-1].startswith("Total_time")
    assert len(table) == len(kernels) + 3
    events = json.loads((tmp_path / "_tvmdbg_execution_trace.json").read_text())["traceEvents"]
    assert [e["ph"] for e in events] == ["B", "E"] * len(m.node_names())
    with pytest.raises(ExecutionError, match="there is no node 99"):
        m.run_individual_node(99)
    m.exit()
    assert tmp_path.exists()


def test_what_is_written_is_what_each_kernel_computed_though_its_memory_is_used_again(tmp_path):
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=(8, 8)).astype("float32") for _ in range(5)]
    y = x = relay.var("x", shape=(2, 8), dtype="float32")
    for weight in weights:
        y = relay.nn.dense(y, relay.const(weight))
    lib = relay.build(tvm.IRModule.from_expr(relay.Function([x], y)), "llvm")
    m = debug_executor.create(
        lib.get_graph_json(), lib.get_lib(), tvm.cpu(0), dump_root=str(tmp_path)
    )
    m.load_params(relay.save_param_dict(lib.get_params()))
    value = rng.normal(size=(2, 8)).astype("float32")
    m.run(number=1, x=value)
    stored = relay.load_param_dict((tmp_path / "output_tensors.params").read_bytes())
    for weight in weights:
        value = value @ weight.T
        assert any(np.allclose(v.numpy(), value, rtol=1e-4, atol=1e-4) for v in stored.values())


def test_a_factory_makes_the_module_of_a_debugged_model(capsys):
    x = relay.var("x", shape=(2, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    lib = relay.build(mod, "llvm", mod_name="own")
    assert lib["list_module_names"]() == ["own"]
    for name in ("default", "own"):
        made = lib["debug_create"](name, tvm.cpu())
        debugged = debug_executor.GraphModuleDebug(made, [tvm.cpu()], lib.get_graph_json(), None)
        debugged.run(x=np.full((2, 3), -1, "float32"))
        assert not debugged.get_output(0).numpy().any()
    capsys.readouterr()
    with pytest.raises(ExecutionError, match="no model 'other' here: this one is 'own'"):
        lib["debug_create"]("other", tvm.cpu())
