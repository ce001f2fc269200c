"""tvmc from Python: files in, packages and results out."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import slipway as tvm
from slipway import relay
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


@pytest.mark.parametrize("layout", [None, "NHWC"])
def test_a_model_file_becomes_results(model, layout, tmp_path):
    path = tmp_path / "package.tar"
    package = tvmc.compile(
        model, target="llvm", package_path=str(path), desired_layout=layout, dump_code="relay,asm",
        pass_context_configs=["relay.FuseOps.max_depth=10"], disabled_pass="FoldScaleAxis",
    )  # fmt: skip
    assert package.package_path == str(path)
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
        (lambda: tvmc.load("model.h5"), "format '.h5' cannot be read"),
        (lambda: tvmc.load("nowhere.onnx"), "no file nowhere.onnx"),
        (lambda: tvmc.TVMCModel(), "takes mod and params"),
        (lambda: tvmc.TVMCModel(model_path=str(tmp_path / "not.model")), "not what TVMCModel.save"),
        (lambda: tvmc.TVMCPackage("nowhere.tar"), "no package nowhere.tar"),
        (lambda: tvmc.compile(model, "llvm", output_format="zip"), "not one of so, tar"),
        (lambda: tvmc.compile(model, "llvm", dump_code="assembly"), "dump_code names 'assembly'"),
        (lambda: tvmc.compile(model, "llvm", desired_layout="NCWH"), "not NCHW or NHWC"),
        (lambda: tvmc.compile(model, "llvm", pass_context_configs=["x"]), "not name=value"),
        (lambda: tvmc.compile(model, "llvm", use_vm=True), "use_vm is not there"),
        (lambda: tvmc.run(package, "cpu", inputs={"xx": X}), "no input 'xx'"),
        (lambda: tvmc.run(package, "cpu", fill_mode="one"), "Did you mean 'ones'"),
        (lambda: tvmc.run("package.tar", "cpu"), "takes what tvmc.compile gives"),
        (lambda: tvmc.tune(model, "llvm", tuner="ga"), "one search"),
        (lambda: tvmc.tune(model, "llvm", rpc_key="pi"), "hostname and rpc_key"),
        (lambda: tvmc.tune(model, "llvm", trails=3), "takes no trails"),
        (lambda: tvmc.run(package, "cpu").get_output("y"), "there are output_0"),
    ]
    for use, words in cases:
        with pytest.raises(tvm.TVMError, match=words):
            use()
