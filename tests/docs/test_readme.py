"""The README's program runs, with a small model in the place of MobileNet and an emulated board."""

import re

import numpy as np
import pytest

from slipway import rpc
from slipway.cli.demo.device import KINDS, serve
from slipway.deploy import device
from slipway.toolchain import emulators, native

onnx = pytest.importorskip("onnx")


@pytest.fixture
def board(qemu, tmp_path, monkeypatch):
    """An emulated board that any address leads to."""
    qemu("aarch64")
    server = native.build_device_server(KINDS["aarch64"].server)
    assert server.stat().st_size < 340 * 1000
    connect = rpc.connect
    with serve(server, emulators.find("aarch64"), tmp_path) as port:
        for module in (rpc, device):
            monkeypatch.setattr(module, "connect", lambda *_, **__: connect("127.0.0.1", port))
        yield


def save_small_model(path, batch):
    weight = np.random.default_rng(0).random((8, 3), dtype=np.float32)
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["input"], ["mean"]),
            helper.make_node("Flatten", ["mean"], ["flat"]),
            helper.make_node("Gemm", ["flat", "weight"], ["output"], transB=1),
        ],
        "small",
        [helper.make_tensor_value_info("input", float32, [batch, 3, 224, 224])],
        [helper.make_tensor_value_info("output", float32, [batch, 8])],
        [onnx.numpy_helper.from_array(weight, "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return int(weight.sum(axis=1).argmax())


def test_the_programs_run(repository, board, tmp_path, monkeypatch, capsys):
    text = (repository / "README.md").read_text(encoding="utf-8")
    three_lines, classic = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    want = save_small_model(tmp_path / "mobilenet_v2.onnx", 1)
    exec(compile(three_lines, "README.md", "exec"), {})
    assert int(capsys.readouterr().out) == want
    want = save_small_model(tmp_path / "mobilenet_v2.onnx", "batch")
    exec(compile(classic, "README.md", "exec"), {})
    best, seconds = capsys.readouterr().out.split()
    assert int(best) == want
    assert 0 < float(seconds) < 1


def test_the_packages_to_install_are_those_of_ci(repository):
    text = (repository / "README.md").read_text(encoding="utf-8")
    said = re.search(r"To run them all:\n\n```\nsudo apt-get install (.*?)```", text, re.DOTALL)[1]
    listed = re.search(r"^packages=\(\n(.*?)^\)", (repository / ".ci/run").read_text(), re.M | re.S)
    wanted = re.sub(r"#.*", "", listed[1]).split()
    already = {"make", "python3", "python3-venv"}  # `make demo` asked for them
    assert sorted(said.replace("\\", " ").split()) == sorted(set(wanted) - already)
