"""`slipway compile` and `slipway run`, from a model file to numbers."""

import json
import os
import subprocess
import sys
import tarfile

import numpy as np
import onnx
import pytest

from slipway.cli.exit_codes import DEFECT, DONE, USAGE


@pytest.fixture(scope="module")
def digits(repository):
    return repository / "src" / "slipway" / "models" / "digits"


@pytest.fixture(scope="module")
def artifact(digits, tmp_path_factory):
    path = tmp_path_factory.mktemp("artifact") / "digits.tar"
    done = slipway("compile", digits / "digits.onnx", "-o", path)
    assert done.returncode == 0, done.stderr
    assert str(path) in done.stdout
    return path


def slipway(*arguments):
    command = [sys.executable, "-m", "slipway", *map(str, arguments)]
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=240)


def failure(*arguments):
    """Return the one paragraph that a failing command prints."""
    done = slipway(*arguments)
    assert done.returncode not in (DONE, USAGE, DEFECT), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.split("slipway: error: ", 1)[1]


def test_run_gives_the_models_outputs(artifact, digits, tmp_path):
    with np.load(digits / "digits_test.npz") as stored:
        image, logits = stored["images"][:1], stored["logits"][:1]
    np.savez(tmp_path / "x.npz", image=image)
    done = slipway(
        *("run", artifact, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"),
        *("--print-top", 3, "--print-time", "--repeat", 3, "--number", 2),
    )
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "y.npz") as stored:
        np.testing.assert_allclose(stored["output_0"], logits, rtol=1e-4, atol=1e-4)
    assert str(logits.argmax()) in done.stdout
    assert "3 x 2" in done.stdout


def test_run_gives_outputs_as_long_as_found(tmp_path):
    """As onnxruntime and `slipway.compile` do; firmware, whose sizes are fixed, has their room."""
    nodes = [
        onnx.helper.make_node("NonZero", ["x"], ["found"]),
        onnx.helper.make_node("Unique", ["x"], ["different", "", "", "often"]),
    ]
    ports = (("found", 7), ("different", 1), ("often", 7))
    graph = onnx.helper.make_graph(
        nodes, "g", [onnx.helper.make_tensor_value_info("x", 1, (3, 4))],
        [onnx.helper.make_tensor_value_info(name, dtype, None) for name, dtype in ports],
    )  # fmt: skip
    opset = onnx.helper.make_opsetid("", 17)
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[opset], ir_version=9), tmp_path / "m.onnx"
    )
    x = np.float32([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 1]])
    np.savez(tmp_path / "x.npz", x=x)
    done = slipway("compile", tmp_path / "m.onnx", "-o", tmp_path / "m.tar")
    assert done.returncode == 0, done.stderr
    files = ("--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz")
    done = slipway("run", tmp_path / "m.tar", *files)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "y.npz") as stored:
        found = [stored[name] for name in sorted(stored)]
    for value, wanted in zip(
        found, (np.nonzero(x), *np.unique(x, return_counts=True)), strict=True
    ):
        np.testing.assert_array_equal(value, wanted)
    for_crt = ("--target", "c", "--executor", "aot", "--runtime", "crt", "-f", "mlf")
    done = slipway("compile", tmp_path / "m.onnx", "-o", tmp_path / "m-mlf.tar", *for_crt)
    assert done.returncode == 0, done.stderr


def test_run_fills_what_is_not_given(artifact):
    done = slipway("run", artifact, "--fill-mode", "zeros", "--profile")
    assert done.returncode == 0, done.stderr
    assert "float32 (1, 10)" in done.stdout
    assert "Time of each layer" in done.stdout
    assert "'image' is not given: filled with zeros" in done.stderr


def test_profile_of_a_model_file(digits, tmp_path):
    trace = tmp_path / "trace.json"
    done = slipway(
        *("profile", digits / "digits.onnx", "--threads", 1, "--number", 2, "--json"),
        *("--trace", trace),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["peak_flops_per_second"] > 1e8
    nodes = [node.name for node in onnx.load(digits / "digits.onnx").graph.node]
    assert {name for o in report["operators"] for name in o["nodes"]} <= set(nodes)
    strange = {o["name"] for o in report["operators"]} - set(nodes)
    assert strange <= {"layout_transform"}  # the compiler's own, at the graph's edges
    events = json.loads(trace.read_text())["traceEvents"]
    assert len([e for e in events if e["ph"] == "X"]) == len(report["operators"])


def test_profile_of_an_artifact_names_the_models_nodes(artifact, digits):
    done = slipway("profile", artifact, "--no-limits", "--number", 1)
    assert done.returncode == 0, done.stderr
    assert onnx.load(digits / "digits.onnx").graph.node[0].name in done.stdout
    assert "of limit" not in done.stdout


def test_compile_writes_what_it_went_through(digits, tmp_path):
    path = tmp_path / "model.so"
    done = slipway("compile", digits / "digits.onnx", "-o", path, "--dump-code", "relay,ll,asm")
    assert done.returncode == 0, done.stderr
    assert "conv2d" in (tmp_path / "model.relay").read_text()
    assert "define" in (tmp_path / "model.ll").read_text()
    assert ".globl" in (tmp_path / "model.asm").read_text()


def test_compile_for_a_microcontroller(digits, tmp_path):
    path = tmp_path / "digits.tar"
    done = slipway(
        *("compile", digits / "digits.onnx", "--target", "c -mcpu=cortex-m4", "-o", path),
        *("--executor", "aot", "--runtime", "crt", "--output-format", "mlf"),
    )
    assert done.returncode == 0, done.stderr
    with tarfile.open(path) as archive:
        names = archive.getnames()
    assert any(name.endswith("tvmgen_default.h") for name in names), names


def test_an_unknown_executor_is_named(digits, tmp_path):
    output = tmp_path / "x.tar"
    done = slipway("compile", digits / "digits.onnx", "--executor", "graf", "-o", output)
    assert done.returncode == USAGE
    assert "--executor graf: not one of graph, aot. Did you mean 'graph'?" in done.stderr


def test_a_truncated_model_is_named(digits, tmp_path):
    path = tmp_path / "cut.onnx"
    path.write_bytes((digits / "digits.onnx").read_bytes()[:9000])
    assert "cut short" in failure("compile", path, "-o", tmp_path / "x.tar")
    assert not (tmp_path / "x.tar").exists()


def test_an_unknown_target_is_named(digits, tmp_path):
    message = failure(
        "compile", digits / "digits.onnx", "--target", "lvm", "-o", tmp_path / "x.tar"
    )
    assert "Did you mean 'llvm'" in message


def test_a_wrong_input_name_is_named(artifact, tmp_path):
    np.savez(tmp_path / "x.npz", img=np.zeros((1, 1, 8, 8), "float32"))
    message = failure("run", artifact, "--inputs", tmp_path / "x.npz")
    assert "no input 'img'; its inputs: image" in message


@pytest.mark.parametrize("array", [np.zeros((1, 8, 9), "float32"), np.zeros((1, 1, 8, 8), "int8")])
def test_a_wrong_input_array_is_named(artifact, tmp_path, array):
    np.savez(tmp_path / "x.npz", image=array)
    message = failure("run", artifact, "--inputs", tmp_path / "x.npz")
    assert "image" in message
    assert str(array.dtype) in message or str(array.shape) in message


def test_a_corrupted_artifact_is_named(artifact, tmp_path):
    content = bytearray(artifact.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path = tmp_path / "bad.tar"
    path.write_bytes(content)
    assert "bad.tar" in failure("run", path)


def test_an_artifact_for_another_cpu_is_named(digits, tmp_path):
    path = tmp_path / "arm.tar"
    target = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
    done = slipway("compile", digits / "digits.onnx", "--target", target, "-o", path)
    assert done.returncode == 0, done.stderr
    assert "aarch64" in failure("run", path)


def test_a_device_that_is_not_there_is_named(artifact):
    message = failure("run", artifact, "--rpc-host", "127.0.0.1", "--rpc-port", "9")
    assert "127.0.0.1:9" in message


@pytest.fixture
def server():
    """The port of `slipway rpc-server`, started as a user would."""
    command = [
        sys.executable,
        "-m",
        "slipway",
        "rpc-server",
        "--port",
        "9190",
        "--port-end",
        "9290",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    line = next(line for line in process.stderr if "bind to" in line)
    yield line.rstrip().rpartition(":")[2]
    process.terminate()
    process.stderr.close()
    process.wait(10)


def test_run_on_a_device(artifact, digits, server, tmp_path):
    with np.load(digits / "digits_test.npz") as stored:
        image, logits = stored["images"][:1], stored["logits"][:1]
    np.savez(tmp_path / "x.npz", image=image)
    done = slipway(
        *("run", artifact, "-i", tmp_path / "x.npz", "-o", tmp_path / "y.npz", "--print-time"),
        *("--profile", "--threads", 1, "--rpc-host", "127.0.0.1", "--rpc-port", server),
    )
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "y.npz") as stored:
        np.testing.assert_allclose(stored["output_0"], logits, rtol=1e-4, atol=1e-4)
    assert "5 x 10" in done.stdout
    assert "conv2d" in done.stdout
