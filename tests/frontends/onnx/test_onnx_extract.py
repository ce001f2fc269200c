"""Nodes of an ONNX model as a model of their own."""

import numpy as np
import onnx
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import ModelError
from slipway.frontends.onnx import reference
from slipway.frontends.onnx.extract import extract

node = helper.make_node
X = np.array([[1.0, -2.0, 3.0]], np.float32)


def branching():
    """A model whose If reads a value of outside; a Constant and a weight beside it."""

    def branch(kind):
        return helper.make_graph(
            [node(kind, ["a"], ["inner"])],
            kind,
            [],
            [helper.make_tensor_value_info("inner", 1, None)],
        )

    return model(
        [
            node("Constant", [], ["two"], value_floats=[2.0]),
            node("Mul", ["x", "two"], ["a"], name="doubled"),
            node("If", ["on"], ["b"], name="choice", then_branch=branch("Relu"),
                 else_branch=branch("Neg")),
            node("Add", ["b", "w"], ["c"], name="sum"),
            node("Add", ["c", "b"], ["d"]),
        ],
        {"x": ("float32", (1, 3)), "on": ("bool", ())},
        ["d"],
        {"w": np.ones(3, np.float32)},
    )  # fmt: skip


@pytest.mark.parametrize("with_runtime", [True, False])
def test_what_is_read_and_made_becomes_inputs_and_outputs(with_runtime, monkeypatch):
    if not with_runtime:
        monkeypatch.setattr(reference, "has_onnxruntime", lambda: False)
    given = {"x": X, "on": np.array(True)}
    small, inputs, outputs = extract(branching(), ["choice", "sum"], given)
    assert [n.op_type for n in small.graph.node] == ["If", "Add"]
    assert [t.name for t in small.graph.initializer] == ["w"]
    np.testing.assert_array_equal(inputs["a"], 2 * X)
    assert list(inputs) == ["on", "a"]
    np.testing.assert_array_equal(outputs["b"], [[2, 0, 6]])
    np.testing.assert_array_equal(outputs["c"], [[3, 1, 7]])


def test_constants_come_along_and_nodes_without_a_name_are_found():
    given = {"x": X, "on": np.array(False)}
    small, inputs, outputs = extract(branching(), ["doubled"], given)
    assert [n.op_type for n in small.graph.node] == ["Constant", "Mul"]
    assert (list(inputs), list(outputs)) == (["x"], ["a"])
    small, inputs, outputs = extract(branching(), ["d"], given)
    assert (list(inputs), list(outputs)) == (["c", "b"], ["d"])


def test_an_unknown_name():
    with pytest.raises(ModelError, match="no node of the model is called nothing"):
        extract(branching(), ["nothing"], {})


def test_nodes_without_a_name_get_that_of_the_graph(tmp_path):
    """from_onnx's export_node_renamed_model_path, of classic TVM."""
    original = branching()
    before = original.SerializeToString()
    path = tmp_path / "named.onnx"
    given = {"shape": {"x": (1, 3)}, "export_node_renamed_model_path": path}
    module, _ = relay.frontend.from_onnx(original, **given)
    assert original.SerializeToString() == before
    named = onnx.load(path)
    assert [n.name for n in named.graph.node] == ["two", "doubled", "choice", "sum", "d"]
    inner = [a.g.node[0].name for a in named.graph.node[2].attribute]
    assert inner == ["inner", "inner"]
    again, _ = relay.frontend.from_onnx(named)
    assert str(again) == str(module)
