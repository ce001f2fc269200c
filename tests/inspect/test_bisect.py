"""`slipway bisect` finds the fault that was put in: importer, pass, kernel; here and remote."""

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
import typer
from onnx import TensorProto, helper, numpy_helper

from slipway import relay, rpc
from slipway.backends.cpu import graph
from slipway.cli.inspect import bisect as command
from slipway.compiler.relay_build import kernel_graph
from slipway.frontends.onnx import converters
from slipway.inspect.bisect import find_kernel, node_values, trace_of
from slipway.inspect.difference import difference
from slipway.relay import op_registry
from slipway.relay.dims import Dim
from slipway.relay.interpret import interpret
from slipway.target import Target
from slipway.transform.graph.pipeline import graph_pass


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((8, 3, 3, 3)), "w2": rng.standard_normal((5, 8)),
        "b2": rng.standard_normal(5),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], name="first_conv", pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"], name="the_relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "w2", "b2"], ["g"], name="head", transB=1),
        helper.make_node("Tanh", ["g"], ["y"], name="squash"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()],
    )
    path = tmp_path / "model.onnx"
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(proto, path)
    return path


def bisect(model, folder, **options):
    """Run the command; return the culprit that it wrote, or None."""
    given = {"output": folder, "target": ["llvm"], "tolerance": 1e-4, "opt_level": 3}
    given |= {"inputs": None, "input_shapes": None, "framework": True}
    given |= {"rpc_host": None, "rpc_port": 9090, "rpc_key": "", "tracker": None, **options}
    try:
        command.bisect(model, **given)
    except typer.Exit as left:
        code = left.exit_code
    else:
        return None
    assert code == 1
    return json.loads((folder / "culprit.json").read_text())


def test_what_counts_as_a_difference():
    one = np.array([1.0, 2.0, np.nan, np.inf], np.float32)
    assert difference(one, one) is None
    assert difference(one * np.float32(1 + 1e-6), one) is None
    far = difference(np.array([1.0, 2.1, np.nan, np.inf], np.float32), one)
    assert far.index == (1,)
    assert far.error == pytest.approx(0.05, rel=1e-3)
    assert difference(np.array([1, 2, 3, 4], np.float32), one).error == np.inf
    assert difference(np.int8([1, 2]), np.int8([1, 3])).error == 1
    assert difference(np.zeros((2, 1)), np.zeros((1, 2))).error == np.inf
    assert difference(np.zeros((0,)), np.zeros((0,))) is None


def test_traces_are_the_models_values(model):
    mod, _ = relay.frontend.from_onnx(model)
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    graph = kernel_graph(mod, Target("llvm"))
    trace = trace_of(graph, {"x": x})
    (out,) = graph.outputs
    wanted = interpret(mod, x)
    np.testing.assert_allclose(trace[out.node][out.index], wanted, rtol=1e-4, atol=1e-5)
    values = node_values(mod["main"], {"x": x})
    np.testing.assert_array_equal(values["squash"][0], wanted)
    assert values["the_relu"][0].min() == 0


def test_a_sound_model(model, tmp_path, capsys):
    assert bisect(model, tmp_path / "out") is None
    assert not (tmp_path / "out").exists()
    said = capsys.readouterr().out
    assert "the import agrees with ONNX Runtime" in said
    assert "every kernel agrees" in said
    assert bisect(model, tmp_path / "out", as_json=True) is None
    assert json.loads(capsys.readouterr().out) == {"agrees": True, "targets": ["llvm -keys=cpu"]}


def test_a_wrong_kernel(model, tmp_path, monkeypatch, capsys):
    tanh = op_registry.get("tanh")
    right = tanh.compute_function

    def wrong(attrs, inputs, out_types):
        from slipway import te

        (result,) = right(attrs, inputs, out_types)
        return [te.compute(result.shape, lambda *i: result(*i) * 1.01, tag="elemwise")]

    monkeypatch.setattr(tanh, "compute_function", wrong)
    folder = tmp_path / "out"
    found = bisect(model, folder, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert {name: told[name] for name in found} == found
    assert told["agrees"] is False
    assert "repro.py" in told["files"]
    assert found["kind"] == "kernel"
    assert "squash" in found["nodes"]
    assert found["error"] == pytest.approx(0.01, rel=0.1)
    with np.load(folder / "arrays.npz") as arrays:
        np.testing.assert_allclose(arrays["got_0"], arrays["wanted_0"] * 1.01, rtol=1e-4)
    done = subprocess.run(
        [sys.executable, "repro.py"], cwd=folder, capture_output=True, text=True, timeout=240
    )  # without the fault, which this process only has
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[4]) < 1e-5
    assert "define" in (folder / "kernel.ll").read_text()
    assert (folder / "kernel.s").stat().st_size > 100
    small = run_case(folder / "onnx")
    assert "Tanh" in [n.op_type for n in small.graph.node]


def run_case(folder):
    """Check the small model that was written: ONNX Runtime gives its outputs; return it."""
    onnxruntime = pytest.importorskip("onnxruntime")
    data = folder / "test_data_set_0"

    def tensors(kind):
        return [
            onnx.load_tensor(data / f"{kind}_{i}.pb")
            for i in range(len(list(data.glob(f"{kind}_*.pb"))))
        ]

    small = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(small, full_check=True)
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    found = session.run(None, {t.name: numpy_helper.to_array(t) for t in tensors("input")})
    assert [o.name for o in small.graph.output] == [t.name for t in tensors("output")]
    for got, wanted in zip(found, tensors("output"), strict=True):
        np.testing.assert_allclose(got, numpy_helper.to_array(wanted), rtol=1e-5, atol=1e-6)
    mod, _ = relay.frontend.from_onnx(small)
    assert len(mod["main"].params) == len(tensors("input"))
    return small


def test_a_wrong_pass(model, tmp_path, monkeypatch):
    def wrong(function):
        return relay.Function(function.params, relay.add(function.body, relay.const(0.5)))

    steps = (*graph.PASSES[:4], graph_pass("Wrong", wrong, opt_level=0), *graph.PASSES[4:])
    monkeypatch.setattr("slipway.backends.cpu.graph.PASSES", steps)
    found = bisect(model, tmp_path / "out")
    assert (found["kind"], found["name"]) == ("pass", "Wrong")


def test_a_wrong_import(model, tmp_path, monkeypatch):
    monkeypatch.setitem(
        converters.load_converters(), "Relu", lambda node: relay.nn.leaky_relu(node.input(0), 0.3)
    )
    found = bisect(model, tmp_path / "out")
    assert (found["kind"], found["name"]) == ("import", "the_relu")
    small = run_case(tmp_path / "out" / "onnx")
    assert [n.op_type for n in small.graph.node] == ["Relu"]
    assert [i.name for i in small.graph.input] == ["c"]
    assert bisect(model, tmp_path / "none", framework=False) is None


def test_a_wrong_device(model, tmp_path, monkeypatch):
    """Another machine's kernel is at fault: here it is stood in for by a call that changes bits."""
    server = rpc.Server("127.0.0.1", 0, use_popen=False, silent=True)
    try:
        remote = {"rpc_host": "127.0.0.1", "rpc_port": server.port, "framework": False}
        assert bisect(model, tmp_path / "sound", **remote) is None
        right = command.ModelDevices.caller

        def faulty(devices, library, kernel_devices):
            call = right(devices, library, kernel_devices)

            def changed(name, arguments, like):
                results = call(name, arguments, like)
                return [r + 1 for r in results] if "global_avg_pool" in name else results

            return changed

        monkeypatch.setattr(command.ModelDevices, "caller", faulty)
        found = bisect(model, tmp_path / "out", **remote)
        assert (found["kind"], found["name"]) == ("kernel", "pool")
    finally:
        server.terminate()


def test_kernels_with_several_results():
    x = relay.var("x", shape=(4, 6))
    parts = relay.split(x, 2, 1)
    top = relay.topk(relay.add(parts[0], parts[1]), 2, 1)
    mod = relay.Function([x], relay.Tuple([top[0], top[1], parts[1]]))
    from slipway.ir.function import IRModule

    graph = kernel_graph(IRModule.from_expr(mod), Target("llvm"))
    trace = trace_of(graph, {"x": np.arange(24, dtype=np.float32).reshape(4, 6)})
    seen = []

    def call(name, arguments, like):
        seen.append(name)
        return list(like)

    assert find_kernel(graph, trace, call) is None
    assert seen
    results = [trace[r.node][r.index] for r in graph.outputs]
    assert [r.shape for r in results] == [(4, 2), (4, 2), (4, 3)]


def test_a_kernel_without_inputs_has_the_sizes_of_the_models():
    """The first state of an LSTM with an open batch: zeros, whose kernel no argument tells n."""
    from slipway.ir.function import IRModule

    n = Dim("n", 1, 4)
    x = relay.var("x", shape=(n, 3))
    mod = relay.Function([x], relay.Tuple([relay.tanh(x), relay.zeros((n, 2), "float32")]))
    graph = kernel_graph(IRModule.from_expr(mod), Target("llvm"))
    trace = trace_of(graph, {"x": np.ones((3, 3), np.float32)})
    assert [trace[r.node][r.index].shape for r in graph.outputs] == [(3, 3), (3, 2)]
