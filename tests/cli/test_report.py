"""``slipway report``: the command, and what it refuses."""

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

DIGITS = Path(str(files("slipway"))) / "models" / "digits" / "digits.onnx"


def slipway(*arguments, cwd=None):
    command = [sys.executable, "-m", "slipway", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=250, cwd=cwd)


def report(*arguments, cwd=None):
    return slipway("report", *arguments, cwd=cwd)


def test_it_writes_a_page_with_how_to_repeat_it(tmp_path):
    done = report(DIGITS, "--no-limits", "-o", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["repeat"][0].startswith("slipway report ")
    assert len(data["repeat"][1].split()[-1]) == 64
    assert {node["status"] for node in data["rewritten"]} & {"native", "rewritten"}
    assert all(layer["agrees"] for layer in data["layers"])


def test_json_is_what_the_page_holds(tmp_path):
    done = report(DIGITS, "--target", "arm/cortex-m4", "--json", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert data["boards"]
    assert data["flash"]
    assert data["layers"][0]["seconds"] is None
    assert list(tmp_path.iterdir()) == []
    done = report(DIGITS, "--target", "arm/cortex-m4", "--json", "-o", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert json.loads(page.split('id="data">')[1].split("</script>")[0]) == json.loads(done.stdout)


def test_what_does_not_go_together_is_refused():
    done = report(DIGITS, "--tracker", "lab:9190")
    assert done.returncode == 2
    assert "--tracker needs --device" in done.stderr


def test_a_side_for_a_gpu_is_compared_and_does_not_run():
    done = slipway("compare", DIGITS, "--target", "llvm", "--target", "webgpu", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["a"]["seconds"]
    assert not found["b"]["seconds"]
    assert "kernels are for webgpu" in found["b"]["why_not_run"]


def open_model(folder):
    """Write an ONNX file whose rows have a name, and return its path."""
    onnx = pytest.importorskip("onnx")
    weights = onnx.numpy_helper.from_array(np.eye(8, 6, dtype="float32"), "w")
    tensor, float32 = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["m"]),
        onnx.helper.make_node("Relu", ["m"], ["y"]),
    ]
    graph = onnx.helper.make_graph(
        nodes, "g", [tensor("x", float32, ["batch", 8])], [tensor("y", float32, ["batch", 6])],
        [weights],
    )  # fmt: skip
    opset = onnx.helper.make_opsetid("", 17)
    path = folder / "rows.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


def test_a_range_of_sizes_is_reported_profiled_and_compared(tmp_path):
    path = open_model(tmp_path)
    done = report(path, "--dim", "batch=1..5", "--no-limits", "-o", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["inputs"] == ["x: float32[batch, 8], at most [5, 8]"]
    assert "Open sizes: batch from 1 to 5." in data["notes"][0]
    assert data["run_seconds"]
    assert all(layer["agrees"] for layer in data["layers"])
    done = slipway("profile", path, "--dim", "batch=1..5", "--no-limits", "--json")
    assert done.returncode == 0, done.stderr
    targets = ("--target", "llvm", "--target", "llvm -mcpu=x86-64-v2")
    done = slipway("compare", path, *targets, "--dim", "batch=1..5", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["a"]["inputs"] == data["inputs"]
    done = report(path, "--dim", "rows=1..5")
    assert done.returncode == 5
    assert "batch" in done.stderr
