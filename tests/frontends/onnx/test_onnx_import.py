"""Whole models through the importer: agreement with onnxruntime, inputs, parameters, errors."""

import numpy as np
import onnxruntime
import pytest
from graphs import helper, model, small_cnn

from slipway import relay
from slipway.compiler.optimize import optimize
from slipway.errors import ModelError
from slipway.frontends.onnx.importer import check_onnx
from slipway.relay.interpret import interpret

X = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)


def reference(proto, feeds):
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def test_small_cnn_agrees_before_and_after_optimisation():
    proto = small_cnn()
    (want,) = reference(proto, {"x": X})
    mod, _ = relay.frontend.from_onnx(proto)
    np.testing.assert_allclose(interpret(mod, x=X), want, rtol=1e-4, atol=1e-6)
    for lanes in (0, 8):
        done = optimize(mod, opt_level=3, layout_lanes=lanes)
        np.testing.assert_allclose(interpret(done, x=X), want, rtol=1e-4, atol=1e-6)


def test_what_convert_config_asks_is_done_or_refused():
    proto = small_cnn()
    for config in (None, {}, {"use_nt_batch_matmul": False}, {"use_nt_batch_matmul": True}):
        relay.frontend.from_onnx(proto, convert_config=config)
    with pytest.raises(ModelError, match=r"convert_config=\{'fast': True\} is nothing"):
        relay.frontend.from_onnx(proto, convert_config={"fast": True})
    with pytest.raises(ModelError, match="is a dictionary of options, got list"):
        relay.frontend.from_onnx(proto, convert_config=[1])


def test_weights_are_constants_or_parameters():
    proto = small_cnn()
    frozen, params = relay.frontend.from_onnx(proto)
    assert [p.name for p in frozen["main"].params] == ["x"]
    assert set(params) == {i.name for i in proto.graph.initializer}
    free, params = relay.frontend.from_onnx(proto, freeze_params=False)
    assert {p.name for p in free["main"].params} == {"x", *params}
    np.testing.assert_allclose(
        interpret(frozen, x=X), interpret(free, x=X, params=params), rtol=1e-6
    )


def test_path_bytes_and_output_names(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(small_cnn().SerializeToString())
    for source in (path, str(path), path.read_bytes()):
        mod, _ = relay.frontend.from_onnx(source)
        assert mod["main"].attr("output_names") == ("probabilities",)


def test_open_dimension_needs_a_shape():
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", ("batch", 4))}, ["y"])
    with pytest.raises(ModelError, match=r"open: x \(batch, 4\)\. Pass shape={'x': \(1, 4\)}"):
        relay.frontend.from_onnx(proto)
    mod, _ = relay.frontend.from_onnx(proto, shape={"x": (2, 4)})
    assert mod["main"].checked_type.ret_type.shape == (2, 4)
    with pytest.raises(ModelError, match="no input 'y'"):
        relay.frontend.from_onnx(proto, shape={"y": (2, 4)})
    with pytest.raises(ModelError, match="the model has"):
        relay.frontend.from_onnx(proto, shape={"x": (2, 5, 1)})


def test_shapes_computed_in_the_graph_are_folded():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    weights = {"zero": np.array([0], np.int64), "rest": np.array([-1], np.int64)}
    mod, _ = relay.frontend.from_onnx(model(nodes, {"x": ("float32", (2, 3, 4))}, ["y"], weights))
    assert mod["main"].checked_type.ret_type.shape == (2, 12)


def test_everything_unsupported_is_reported_at_once():
    nodes = [
        helper.make_node("Nonsense", ["x"], ["a"], name="first"),
        helper.make_node("Nonsense", ["a"], ["b"], name="second"),
        helper.make_node("Relu", ["b"], ["c"], name="fine"),
        helper.make_node("Resize", ["x", "", "s"], ["d"], name="third", mode="strange"),
        helper.make_node("Add", ["c", "d"], ["y"], name="sum"),
    ]
    proto = model(nodes, {"x": ("float32", (1, 1, 4, 4))}, ["y"], {"s": np.ones(4, np.float32)})
    with pytest.raises(ModelError) as error:
        relay.frontend.from_onnx(proto)
    text = str(error.value)
    assert "2 operators" in text
    assert "3 nodes" in text
    assert "Nonsense x 2 (first, second): there is no converter" in text
    assert "Resize x 1 (third): mode 'strange'" in text
    assert "Relu" not in text
    assert "Add" not in text


def test_a_node_of_wrong_type_is_named():
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], name="layer7")]
    proto = model(
        nodes, {"x": ("float32", (1, 3, 8, 8))}, ["y"], {"w": np.ones((4, 2, 3, 3), np.float32)}
    )
    with pytest.raises(ModelError, match=r"layer7.*argument 'weight'"):
        relay.frontend.from_onnx(proto)


@pytest.mark.parametrize("keep", [0, 1, 50, 700])
def test_truncated_file_is_one_paragraph(tmp_path, keep):
    path = tmp_path / "cut.onnx"
    path.write_bytes(small_cnn().SerializeToString()[:keep])
    with pytest.raises(ModelError, match=r"(no|not an) ONNX model") as error:
        relay.frontend.from_onnx(path)
    assert "\n" not in str(error.value)


def test_garbage_missing_file_and_wrong_kind(tmp_path):
    path = tmp_path / "cat.onnx"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    with pytest.raises(ModelError, match="not an ONNX model"):
        relay.frontend.from_onnx(path)
    with pytest.raises(ModelError, match="no model file"):
        relay.frontend.from_onnx(tmp_path / "none.onnx")
    with pytest.raises(ModelError, match="takes a ModelProto"):
        relay.frontend.from_onnx(3)


def test_weight_with_too_few_bytes_is_named():
    proto = small_cnn()
    proto.graph.initializer[0].raw_data = b"\0" * 10
    with pytest.raises(ModelError, match="'w0' should hold 216 float32"):
        relay.frontend.from_onnx(proto)


def test_run_time_condition_becomes_a_choice():
    def branch(name, kind):
        nodes = [helper.make_node(kind, ["x"], [name])]
        info = helper.make_tensor_value_info(name, 1, (3,))
        return helper.make_graph(nodes, name, [], [info])

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("t", "Abs"), else_branch=branch("e", "Neg")
    )
    proto = model([node], {"c": ("bool", ()), "x": ("float32", (3,))}, ["y"])
    mod, _ = relay.frontend.from_onnx(proto)
    x = np.array([-1, 2, -3], np.float32)
    for flag in (True, False):
        want = np.abs(x) if flag else -x
        assert interpret(mod, c=np.array(flag), x=x).tolist() == want.tolist()


# -- open dimensions ---------------------------------------------------------------------------


def test_a_dimension_stays_open_where_operators_allow_it():
    """The network in miniature for any number of images, computed for several."""
    any_size = relay.Any()
    proto = small_cnn()
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    with pytest.raises(ModelError, match=r"open: x .*Pass shape=.*or relay.Any\(\)"):
        relay.frontend.from_onnx(proto)
    mod, _ = relay.frontend.from_onnx(proto, shape={"x": (any_size, 3, 16, 16)})
    assert str(mod["main"].checked_type.ret_type) == "Tensor[(?, 5), float32]"
    run = relay.create_executor("vm", mod=mod).evaluate()
    for count in (1, 3):
        x = np.random.default_rng(count).standard_normal((count, 3, 16, 16)).astype(np.float32)
        fixed, _ = relay.frontend.from_onnx(proto, shape={"x": x.shape})
        wanted = interpret(fixed, x)
        np.testing.assert_allclose(interpret(mod, x), wanted, rtol=1e-6)
        np.testing.assert_allclose(run(x).numpy(), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Softmax", ["x"], ["y"]),
        helper.make_node("Flatten", ["x"], ["y"], axis=2),
        helper.make_node("Flatten", ["x"], ["y"], axis=0),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("MatMul", ["x", "x"], ["y"]),
        helper.make_node("Dropout", ["x"], ["y", "mask"]),
        helper.make_node("Celu", ["x"], ["y"]),
    ],
)
def test_nodes_on_an_open_dimension(node):
    weights = {"w": np.ones((4, 5), np.float32)}
    proto = model([node], {"x": ("float32", ("n", 3, 4, 4))}, ["y"], weights, opset=12)
    mod, _ = relay.frontend.from_onnx(proto, shape={"x": (relay.Any(), 3, 4, 4)})
    for count in (1, 2, 5):
        x = np.random.default_rng(count).standard_normal((count, 3, 4, 4)).astype(np.float32)
        fixed, _ = relay.frontend.from_onnx(proto, shape={"x": x.shape})
        np.testing.assert_allclose(interpret(mod, x), interpret(fixed, x), rtol=1e-6)


def test_a_node_that_needs_the_size_is_named():
    shape = np.array([6, 4], np.int64)
    node = helper.make_node("Reshape", ["x", "s"], ["y"], name="turn")
    proto = model([node], {"x": ("float32", ("n", 3, 4))}, ["y"], {"s": shape})
    with pytest.raises(ModelError, match=r"Reshape x 1 \(turn\).*does not allow the open dim"):
        relay.frontend.from_onnx(proto, shape={"x": (relay.Any(), 3, 4)})


def test_a_check_of_what_is_no_tensor():
    """An optional that is missing, and a sequence, are results of nodes like any other."""
    kind = helper.make_tensor_type_proto(1, (2,))
    nodes = [
        helper.make_node("Optional", [], ["none"], type=kind),
        helper.make_node("OptionalHasElement", ["none"], ["there"]),
        helper.make_node("SequenceConstruct", ["x", "x"], ["list"]),
        helper.make_node("ConcatFromSequence", ["list"], ["y"], axis=0),
    ]
    proto = model(nodes, {"x": ("float32", (2,))}, ["y", "there"], opset=18)
    statuses = {e.kind: e.status for e in check_onnx(proto)}
    assert statuses["ConcatFromSequence"] == "native"
    assert "unsupported" not in statuses.values()
