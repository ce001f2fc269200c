"""Pain 11: an unsupported operator is found late, and one at a time."""

import json

import onnx
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

from slipway.cli.app import app
from slipway.errors import OpNotImplemented


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Two operators of another vendor, and one of the standard with a window beyond its image."""
    nodes = [
        helper.make_node("FancyGate", ["x"], ["a"], name="gate", domain="com.vendor"),
        helper.make_node("Relu", ["x"], ["b"], name="fine"),
        helper.make_node("FancyNorm", ["b"], ["c"], name="norm", domain="com.vendor"),
        helper.make_node("MaxPool", ["b"], ["d"], name="pool", kernel_shape=[20, 20]),
    ]
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "acd"]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 2, 8, 8))]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.vendor", 1)]
    made = helper.make_model(graph, opset_imports=sets)
    made.ir_version = 10
    path = tmp_path_factory.mktemp("late") / "late.onnx"
    onnx.save(made, path)
    return path


def test_check_tells_all_of_them_at_once_with_the_reason(model):
    done = CliRunner().invoke(app, ["check", str(model), "--json"])
    assert done.exit_code == 1
    nodes = {n["name"]: n for n in json.loads(done.stdout)["nodes"]}
    bad = {name for name, n in nodes.items() if n["status"] == "unsupported"}
    assert bad == {"gate", "norm", "pool"}
    assert nodes["fine"]["status"] == "native"
    assert all(nodes[name]["detail"] for name in bad)


def test_compile_tells_all_operators_too(model):
    done = CliRunner().invoke(app, ["compile", str(model), "--quiet"])
    assert isinstance(done.exception, OpNotImplemented)
    assert "FancyGate" in str(done.exception)
    assert "FancyNorm" in str(done.exception)
