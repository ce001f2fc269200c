"""Pain 3: the model does not fit, which is learned from the linker, or from a crash."""

import json
import re
import shutil

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from slipway.cli.app import app
from slipway.cli.exit_codes import code_of
from slipway.errors import DoesNotFitError


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A convolution whose result alone is 500 KB, and a product with 900 KB of weights."""
    rng = np.random.default_rng(0)
    weights = {
        "filter": rng.normal(size=(32, 3, 3, 3)).astype("float32"),
        "product": rng.normal(size=(32 * 64 * 64 // 16, 28)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["x", "filter"], ["wide"], name="widest", pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["wide"], ["p"], name="p", kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Flatten", ["p"], ["flat"], name="flat"),
        helper.make_node("MatMul", ["flat", "product"], ["y"], name="heaviest"),
    ]
    graph = helper.make_graph(
        nodes,
        "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 64, 64))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 28))],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    path = tmp_path_factory.mktemp("large") / "large.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    onnx.save(model, path)
    return path


def test_it_is_told_before_any_compiler_runs_with_what_is_in_the_way(large, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")  # no compiler, no linker
    done = CliRunner().invoke(app, ["fit", str(large), "--board", "nucleo-f446re"])
    assert done.exit_code == 4, done.output
    assert "DOES NOT FIT" in done.output
    assert "heaviest" in done.output  # the layer with the weights
    assert "widest" in done.output  # the one that sets the peak of RAM
    assert "int8" in done.output or "quantize" in done.output  # what would make it fit


def test_a_board_that_has_the_room_is_named(large):
    words = ["--board", "rp2040", "--board", "mps2-an386"]
    done = CliRunner().invoke(app, ["fit", str(large), *words, "--json"])
    fits = {row["board"]: row["fits"] for row in json.loads(done.stdout)}
    assert fits == {"rp2040": False, "mps2-an386": True}


def test_check_says_so_as_well(large):
    done = CliRunner().invoke(app, ["check", str(large), "--target", "arm/cortex-m4"])
    assert "nrf52840: does not fit" in done.output


def test_a_build_that_does_not_fit_says_so_and_no_linker(large, tmp_path):
    """It ended with what GNU's linker and make say, and as a compiler that had failed."""
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    project = str(tmp_path / "p")
    run = CliRunner().invoke
    done = run(app, ["micro", "create", str(large), project, "--board", "nucleo-f446re"])
    assert done.exit_code == 0, done.output
    done = run(app, ["micro", "build", project])
    assert isinstance(done.exception, DoesNotFitError)
    assert code_of(done.exception) == 4
    said = str(done.exception)
    assert re.search(r"it does not fit, FLASH lacks [\d,]+ bytes, RAM lacks [\d,]+ bytes", said)
    assert "slipway fit" in said
    assert "\n" not in said
