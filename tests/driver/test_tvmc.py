"""tvmc from Python: files in, packages and results out."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import slipway as tvm
from slipway import autotvm, relay
from slipway.driver import tvmc
from slipway.tuning.database import Database

RNG = np.random.default_rng(1)
WEIGHT = RNG.normal(size=(4, 3, 3, 3)).astype("float32")
X = RNG.normal(size=(1, 3, 8, 8)).astype("float32")


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tvmc") / "model.onnx"
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["y"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 4, 8, 8])],
        [numpy_helper.from_array(WEIGHT, "w")],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture(scope="module")
def model(model_file):
    return tvmc.load(str(model_file), shape_dict={"x": [1, 3, 8, 8]})


def wanted():
    return torch.conv2d(torch.tensor(X), torch.tensor(WEIGHT), padding=1).relu().numpy()


def test_a_search_writes_what_compile_takes(model, tmp_path):
    records = tmp_path / "model.records"
    assert tvmc.tune(model, "llvm", tuning_records=str(records), trials=2) == str(records)
    assert len(Database(f"{records}.sqlite")) >= 2
    package = tvmc.compile(
        model, "llvm", tuning_records=str(records), package_path=str(tmp_path / "package.tar")
    )
    result = tvmc.run(package, "cpu", inputs={"x": X})
    np.testing.assert_allclose(result.get_output("output_0"), wanted(), rtol=1e-4, atol=1e-5)


def test_another_order_of_trials_and_records_of_before(model, tmp_path):
    first, second = str(tmp_path / "ga.json"), str(tmp_path / "second.json")
    assert tvmc.tune(model, "llvm", first, trials=2, early_stopping=2, tuner="ga") == first
    with autotvm.apply_history_best(first) as best:
        assert best.best_by_targetkey
    tvmc.tune(
        model, "llvm", second, prior_records=first, trials=2, early_stopping=2,
        enable_autoscheduler=True,
    )  # fmt: skip
    before = Path(first).read_text()
    assert Path(second).read_text().startswith(before)
    package = tvmc.compile(model, "llvm", tuning_records=second)
    result = tvmc.run(package, "cpu", inputs={"x": X})
    np.testing.assert_allclose(result.get_output("output_0"), wanted(), rtol=1e-4, atol=1e-5)


def test_tasks_of_both_searches(model):
    from slipway.driver.tvmc import autotuner

    tasks = autotuner.autotvm_get_tuning_tasks(model.mod, model.params, "llvm")
    others, weights = autotuner.autoscheduler_get_tuning_tasks(model.mod, model.params, "llvm")
    assert len(tasks) == len(others) == len(weights) > 0
    option = autotvm.measure_option("local", "local")
    with pytest.raises(tvmc.TVMCException, match="no tuner 'invalid'"):
        autotuner.tune_tasks(tasks, "log", option, "invalid", 1, 1)
    autotuner.tune_tasks([], "log", option, "ga", 1, 1)


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_an_archive_for_a_microcontroller_is_run_as_its_project(model, tmp_path, executor):
    package = tvmc.compile(
        model, "c", executor=relay.backend.Executor(executor), output_format="mlf",
        runtime=relay.backend.Runtime("crt", {"system-lib": True}),
        package_path=str(tmp_path / "m.tar"), use_vm=False,
    )  # fmt: skip
    assert (package.type, package.lib_path, package.lib_name) == ("mlf", None, None)
    assert (package.graph is None) == (executor == "aot")
    assert isinstance(package.params, bytearray)
    with pytest.raises(tvmc.TVMCException, match="for microcontrollers"):
        tvmc.run(package, "cpu")
    folder = tmp_path / "project"
    line = ["micro", "create", str(folder), package.package_path, "crt"]
    assert tvmc.main._main([*line, "--project-option", "heap_bytes=262144"]) == 0
    assert tvmc.main._main(["micro", "build", str(folder), "crt"]) == 0
    np.savez(tmp_path / "in.npz", x=X)
    line = ["run", "--device", "micro", str(folder), "--inputs", str(tmp_path / "in.npz")]
    assert tvmc.main._main([*line, "--outputs", str(tmp_path / "out.npz")]) == 0
    found = np.load(tmp_path / "out.npz")["output_0"]
    np.testing.assert_allclose(found, wanted(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", [None, "NHWC"])
def test_a_model_file_becomes_results(model, layout, tmp_path):
    path = tmp_path / "package.tar"
    package = tvmc.compile(
        model, target="llvm", package_path=str(path), desired_layout=layout, dump_code="relay,asm",
        pass_context_configs=["relay.FuseOps.max_depth=10"], disabled_pass="FoldScaleAxis",
    )  # fmt: skip
    assert package.package_path == str(path)
    assert (package.type, package.lib_name) == ("classic", "package.tar")
    assert '"nodes"' in package.graph
    assert isinstance(package.params, bytearray)
    assert ("NHWC" in path.with_name("package.tar.relay").read_text()) == (layout == "NHWC")
    assert path.with_name("package.tar.asm").read_text()
    result = tvmc.run(package, device="cpu", inputs={"x": X})
    np.testing.assert_allclose(result.get_output("output_0"), wanted(), rtol=1e-4, atol=1e-5)
    result.save(str(tmp_path / "out.npz"))
    np.testing.assert_array_equal(
        np.load(tmp_path / "out.npz")["output_0"], result.outputs["output_0"]
    )
    assert "output_0" in str(result)


def test_times_and_fills(model, capsys):
    package = tvmc.compile(model, "llvm")
    result = tvmc.run(
        tvmc.TVMCPackage(package_path=package.package_path), "cpu", fill_mode="ones",
        benchmark=True, repeat=2, number=1, profile=True,
    )  # fmt: skip
    assert len(result.times.results) == 2
    assert "Execution time summary" in str(result)
    assert " us " in capsys.readouterr().out
    ones = torch.conv2d(torch.ones(1, 3, 8, 8), torch.tensor(WEIGHT), padding=1).relu()
    np.testing.assert_allclose(result.get_output("output_0"), ones.numpy(), rtol=1e-4, atol=1e-5)


def test_a_model_is_kept_in_a_file(model, tmp_path, capsys):
    path = str(tmp_path / "kept.model")
    model.save(path)
    again = tvmc.TVMCModel(model_path=path)
    assert tvm.ir.structural_equal(again.mod, model.mod, map_free_vars=True)
    assert list(again.params) == list(model.params)
    tvmc.compile(model, "llvm", use_vm=True)
    model.save(path)
    with_package = tvmc.TVMCModel(model_path=path)
    assert tvmc.TVMCPackage(with_package.default_package_path()).type == "classic"
    again.summary()
    assert "nn.conv2d" in capsys.readouterr().out


def test_relay_text_is_a_model(tmp_path):
    x = relay.var("x", shape=(3,))
    path = tmp_path / "m.relay"
    path.write_text(relay.astext(tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))))
    package = tvmc.compile(tvmc.load(str(path)), "llvm")
    given = np.array([-1, 2, -3], "float32")
    found = tvmc.run(package, "cpu", inputs={"x": given}).get_output("output_0")
    np.testing.assert_array_equal(found, [0, 2, 0])


def test_it_runs_on_a_server(model):
    server = tvm.rpc.Server("127.0.0.1")
    try:
        package = tvmc.compile(model, "llvm")
        result = tvmc.run(package, "cpu", "127.0.0.1", server.port, inputs={"x": X})
        np.testing.assert_allclose(result.get_output("output_0"), wanted(), rtol=1e-4, atol=1e-5)
    finally:
        server.terminate()


def test_errors_say_what_to_do(model, tmp_path):
    package = tvmc.compile(model, "llvm")
    (tmp_path / "not.model").write_text("x")
    cases = [
        (lambda: tvmc.load("model.pdmodel"), "paddle2onnx writes an .onnx of Paddle's"),
        (lambda: tvmc.load("model.onx"), "Did you mean 'onnx'"),
        (lambda: tvmc.load("model", model_format="onx"), "Did you mean 'onnx'"),
        (lambda: tvmc.load("nowhere.onnx"), "no file nowhere.onnx"),
        (lambda: tvmc.TVMCModel(), "takes mod and params"),
        (lambda: tvmc.TVMCModel(model_path=str(tmp_path / "not.model")), "not what TVMCModel.save"),
        (lambda: tvmc.TVMCPackage("nowhere.tar"), "no package nowhere.tar"),
        (lambda: tvmc.compile(model, "llvm", output_format="zip"), "not one of so, tar"),
        (lambda: tvmc.compile(model, "llvm", dump_code="assembly"), "dump_code names 'assembly'"),
        (lambda: tvmc.compile(model, "llvm", desired_layout="NCWH"), "not NCHW or NHWC"),
        (lambda: tvmc.compile(model, "llvm", pass_context_configs=["x"]), "use <config>=<value>"),
        (lambda: tvmc.compile(model, "llwm"), "Did you mean 'llvm'"),
        (lambda: tvmc.TVMCPackage(package.package_path, "p"), "only allowed when importing a MLF"),
        (lambda: tvmc.run(package, "micro"), "takes an archive in Model Library Format"),
        (lambda: tvmc.run(package, "cpu", options={"a": 1}), "for the device 'micro' alone"),
        (lambda: tvmc.run(package, "cpu", inputs={"xx": X}), "no input 'xx'"),
        (lambda: tvmc.run(package, "cpu", fill_mode="one"), "Did you mean 'ones'"),
        (lambda: tvmc.run("package.tar", "cpu"), "takes what tvmc.compile gives"),
        (lambda: tvmc.tune(model, "llvm", tuner="gaa"), "Did you mean 'ga'"),
        (lambda: tvmc.tune(model, "llvm", prior_records="none"), "there is no file none"),
        (lambda: tvmc.tune(model, "llvm", rpc_key="pi"), "hostname and rpc_key"),
        (lambda: tvmc.tune(model, "llvm", trails=3), "takes no trails"),
        (lambda: tvmc.run(package, "cpu").get_output("y"), "there are output_0"),
    ]
    for use, words in cases:
        with pytest.raises(tvm.TVMError, match=words):
            use()
