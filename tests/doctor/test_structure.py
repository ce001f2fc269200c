"""A model without its weights: the same graph and types, and none of what it has learned."""

import io
import zipfile

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from slipway import relay
from slipway.doctor.structure import without_weights
from slipway.errors import ModelError
from slipway.relay.expr import Call, Constant
from slipway.relay.visit import post_order

SECRET = np.linspace(3, 4, 64, dtype="float32").reshape(8, 8)
KEPT = np.array([0, 0, 1, 1, 0, 0, 2, 2], "int64")  # paddings, without which there is no graph


def operators(module):
    """The calls of a program in order, with the types of what they give."""
    calls = [e for e in post_order(module["main"].body) if isinstance(e, Call)]
    return [(str(call.op.name), str(call.checked_type)) for call in calls]


def onnx_model():
    """Weights in an initialiser, a Constant and a branch, and words in properties."""
    branch = helper.make_graph(
        [helper.make_node("Constant", [], ["b"], value=numpy_helper.from_array(SECRET * 2))],
        "branch", [], [helper.make_tensor_value_info("b", TensorProto.FLOAT, [8, 8])],
    )  # fmt: skip
    nodes = [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(SECRET)),
        helper.make_node("MatMul", ["x", "w"], ["m"], doc_string="hunter2"),
        helper.make_node("Add", ["m", "c"], ["a"]),
        helper.make_node("If", ["yes"], ["i"], then_branch=branch, else_branch=branch),
        helper.make_node("Add", ["a", "i"], ["s"]),
        helper.make_node("Unsqueeze", ["s", "axes"], ["u"]),
        helper.make_node("Pad", ["u", "pads"], ["y"]),
    ]
    stored = [
        numpy_helper.from_array(SECRET, "w"),
        numpy_helper.from_array(KEPT, "pads"),
        numpy_helper.from_array(np.array([0, 1]), "axes"),
        numpy_helper.from_array(np.array(True), "yes"),
    ]
    graph = helper.make_graph(
        nodes, "hunter", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 11, 11])], stored,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.doc_string = "hunter2"
    helper.set_model_props(model, {"customer": "hunter2"})
    return model


def test_an_onnx_model_keeps_its_graph_and_loses_its_weights(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(onnx_model(), path)
    content = without_weights(path)
    assert b"hunter2" not in content
    for values in (SECRET, SECRET * 2):
        assert values[3].tobytes() in path.read_bytes()
        assert values[3].tobytes() not in content
    emptied = tmp_path / "e.onnx"
    emptied.write_bytes(content)
    onnx.checker.check_model(onnx.load(emptied), full_check=True)
    before, after = (relay.frontend.from_onnx(onnx.load(p))[0] for p in (path, emptied))
    assert operators(before) == operators(after)
    pads = {t.name: numpy_helper.to_array(t) for t in onnx.load(emptied).graph.initializer}["pads"]
    np.testing.assert_array_equal(pads, KEPT)


@pytest.mark.parametrize(
    "kind", ["FLOAT", "FLOAT16", "BFLOAT16", "INT8", "UINT4", "INT4", "BOOL", "INT64", "STRING"]
)
def test_every_type_has_as_many_values_as_before(tmp_path, kind):
    number, path = TensorProto.DataType.Value(kind), tmp_path / "m.onnx"
    values = [b"hunter2"] * 11 if kind == "STRING" else [1] * 11
    tensor = helper.make_tensor("w", number, [11], values)
    output = helper.make_tensor_value_info("w", number, [11])
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [output], [tensor])), path)
    (found,) = onnx.ModelProto.FromString(without_weights(path)).graph.initializer
    array = numpy_helper.to_array(found)
    assert array.shape == (11,)
    if kind == "STRING":
        assert {*array} == {""}
    else:
        assert len({*array.astype("float32").tolist()}) > 1


def test_trees_and_words_are_taken_out_of_attributes(tmp_path):
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml",
        nodes_values=[7.25 + i for i in range(1, 12)], nodes_modes=["BRANCH_LEQ"] * 11,
        nodes_treeids=[0] * 11,
    )  # fmt: skip
    model = helper.make_model(helper.make_graph([node], "g", [], []))
    onnx.save(model, tmp_path / "m.onnx")
    (found,) = onnx.ModelProto.FromString(without_weights(tmp_path / "m.onnx")).graph.node
    attributes = {a.name: helper.get_attribute_value(a) for a in found.attribute}
    assert max(map(abs, attributes["nodes_values"])) < 1
    assert attributes["nodes_treeids"] == [0] * 11


def test_a_tflite_model_keeps_its_graph_and_loses_weights_and_labels(tmp_path, shared):
    given = (shared / "models" / "tflite" / "hello_world_int8.tflite").read_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("labels.txt", "hunter2\n")
    path = tmp_path / "m.tflite"
    path.write_bytes(given + archive.getvalue())
    content = without_weights(path)
    assert len(content) == len(given)
    assert b"hunter2" not in content
    before, after = (relay.frontend.from_tflite(data) for data in (given, content))
    assert operators(before[0]) == operators(after[0])
    weights = [
        [e.data.numpy() for e in post_order(module["main"].body)
         if isinstance(e, Constant) and e.data.numpy().size > 8]
        for module, _ in (before, after)
    ]  # fmt: skip
    assert weights[0]
    for one, other in zip(*weights, strict=True):
        assert other.any()
        assert (one != other).mean() > 0.5


def test_what_is_no_model_is_refused_or_left_out(tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"\xff" * 40)
    (tmp_path / "bad.tflite").write_bytes(b"a text\n")
    (tmp_path / "weights.npz").write_bytes(b"a text\n")
    for name in ("bad.onnx", "bad.tflite"):
        with pytest.raises(ModelError):
            without_weights(tmp_path / name)
    assert without_weights(tmp_path / "weights.npz") is None
