"""Sizes that a model leaves open: the ones that are suggested fit the model."""

import numpy as np
import onnx
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import ModelError, OpenShapeError
from slipway.frontends.onnx.open_sizes import candidates
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule


def suggested(proto, **shape):
    with pytest.raises(OpenShapeError) as caught:
        relay.frontend.from_onnx(proto, shape=shape)
    relay.frontend.from_onnx(proto, shape=caught.value.shapes)  # it fits
    return caught.value


def detector(rows="height", columns="width"):
    """Two levels that meet again: sizes must be multiples of 4, and 1 is none."""
    weights = {
        "w": np.ones((3, 3, 2, 2), np.float32),
        "twice": np.array([1, 1, 2, 2], np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["half"], strides=[2, 2]),
        helper.make_node("Conv", ["half", "w"], ["quarter"], strides=[2, 2]),
        helper.make_node("Resize", ["quarter", "", "twice"], ["up"]),
        helper.make_node("Concat", ["half", "up"], ["y"], axis=1),
    ]
    return model(nodes, {"x": ("float32", ("batch", 3, rows, columns))}, ["y"], weights)


def test_an_image_gets_a_size_that_fits_the_whole_model():
    error = suggested(detector())
    assert error.shapes == {"x": (1, 3, 224, 224)}
    assert "x (batch, 3, height, width)" in str(error)


def test_what_is_fixed_stays():
    assert suggested(detector(rows=20)).shapes["x"][2] == 20


def test_a_size_follows_from_what_the_model_states_of_its_output():
    """The result must have 6 columns: of a window of 11 only 16 samples give that."""
    nodes = [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[11])]
    proto = model(nodes, {"x": ("float32", ("n", 2, "samples"))}, ["y"])
    for size in ("n", 2, 6):
        dim = proto.graph.output[0].type.tensor_type.shape.dim.add()
        setattr(dim, "dim_param" if size == "n" else "dim_value", size)
    assert suggested(proto).shapes == {"x": (1, 2, 16)}


def test_sizes_of_one_name_are_one_size_and_a_state_has_one_batch():
    nodes = [
        helper.make_node("Add", ["a", "b"], ["s"]),
        helper.make_node("ReduceSum", ["s"], ["t"], keepdims=0),
        helper.make_node("Add", ["state", "t"], ["y"]),
    ]
    inputs = {
        "a": ("float32", ("n", "length")),
        "b": ("float32", ("n", "length")),
        "state": ("float32", (2, "", 5)),
    }
    shapes = suggested(model(nodes, inputs, ["y"])).shapes
    assert shapes["a"] == shapes["b"]
    assert shapes["state"] == (2, 1, 5)


def test_given_shapes_are_kept_and_named_with_the_rest():
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y"])]
    inputs = {"a": ("float32", ("n", "k")), "b": ("float32", ("k", "m"))}
    shapes = suggested(model(nodes, inputs, ["y"]), a=(3, 16)).shapes
    assert shapes["a"] == (3, 16)
    assert shapes["b"][0] == 16


def test_a_model_that_no_size_fits_says_so():
    nodes = [helper.make_node("Mystery", ["x"], ["y"])]
    proto = model(nodes, {"x": ("float32", ("n", 4))}, ["y"])
    words = (
        r"None of the sizes tried fits the whole model\. With these, which come nearest, Mystery"
    )
    with pytest.raises(OpenShapeError, match=words + r" .*: there is no converter for it"):
        relay.frontend.from_onnx(proto)


def test_what_a_size_of_the_export_leaves_behind_is_named():
    """A traced model has the size of its example in a Reshape, whatever its inputs are called."""
    shape = helper.make_tensor("shape", onnx.TensorProto.INT64, (2,), (9, 4))
    proto = model(
        [helper.make_node("Reshape", ["x", "shape"], ["y"], "fixed")],
        {"x": ("float32", ("n", 4))}, ["y"],
    )  # fmt: skip
    proto.graph.initializer.append(shape)
    with pytest.raises(OpenShapeError, match=r"Reshape 'fixed': .*\(9, 4\) has 36 elements"):
        relay.frontend.from_onnx(proto)


def test_a_vector_and_a_tensor_of_unknown_rank():
    assert candidates({"x": ("?",)})[0] == {"x": (128,)}
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", None)}, ["y"])
    assert not proto.graph.input[0].type.tensor_type.HasField("shape")
    assert suggested(proto).shapes == {"x": (128,)}


def test_names_of_dimensions_become_sizes_and_ranges():
    info = [helper.make_tensor_value_info("x", 1, ["batch", 3, "long"])]
    out = [helper.make_tensor_value_info("y", 1, ["batch", 3, "long"])]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", info, out)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    mod, _ = relay.frontend.from_onnx(proto, dims={"batch": (1, 8), "long": 5})
    assert "%x: Tensor[(batch, 3, 5), float32]" in str(mod)
    mod, _ = relay.frontend.from_onnx(
        proto, shape={"x": (2, 3, relay.Any())}, dims={"long": (1, 9)}
    )
    assert "%x: Tensor[(2, 3, long), float32]" in str(mod)
    with pytest.raises(ModelError, match=r"no dimension 'bath'\. Did you mean 'batch'"):
        relay.frontend.from_onnx(proto, dims={"bath": 1})
    with pytest.raises(ModelError, match=r"dims has 'all' for 'batch': write a size"):
        relay.frontend.from_onnx(proto, dims={"batch": "all"})


def classifier():
    """A network of one image, of which the file states the shape of every result."""
    rng = np.random.default_rng(3)
    weights = {
        "w": rng.standard_normal((4, 3, 3, 3)).astype("float32"),
        "v": rng.standard_normal((4 * 36, 5)).astype("float32"),
        "rows": np.array([0, -1]),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Reshape", ["r", "rows"], ["flat"]),
        helper.make_node("MatMul", ["flat", "v"], ["m"]),
        helper.make_node("Softmax", ["m"], ["y"], axis=1),
    ]
    proto = model(nodes, {"x": ("float32", (1, 3, 8, 8))}, ["y"], weights)
    shape = proto.graph.output[0].type.tensor_type.shape
    del shape.dim[:]
    for extent in (1, 5):
        shape.dim.add().dim_value = extent
    return onnx.shape_inference.infer_shapes(proto)


def test_a_size_that_the_file_has_as_a_number_is_opened():
    proto = classifier()
    assert any(i.name == "m" for i in proto.graph.value_info)
    number = relay.Dim("n", 1, 4)
    mod, _ = relay.frontend.from_onnx(proto, {"x": (number, 3, 8, 8)})
    assert mod["main"].ret_type == relay.TensorType((number, 5))
    library = GraphModule(relay.build(mod, target="llvm")["default"](cpu()))
    fixed, _ = relay.frontend.from_onnx(proto)
    one = GraphModule(relay.build(fixed, target="llvm")["default"](cpu()))
    images = np.random.default_rng(4).random((4, 3, 8, 8), "float32")
    wanted = []
    for image in images:
        one.run(x=image[None])
        wanted.append(one.get_output(0).numpy()[0])
    for count in (1, 3, 4):
        library.run(x=images[:count])
        np.testing.assert_allclose(library.get_output(0).numpy(), wanted[:count], rtol=1e-5)


def test_another_number_stands_for_that_of_the_file():
    proto = classifier()
    images = np.random.default_rng(5).random((3, 3, 8, 8), "float32")
    runs = {}
    for batch in (1, 3):
        mod, params = relay.frontend.from_onnx(proto, {"x": (batch, 3, 8, 8)})
        assert mod["main"].ret_type == relay.TensorType((batch, 5))
        library = GraphModule(relay.build(mod, target="llvm", params=params)["default"](cpu()))
        library.run(x=images[:batch])
        runs[batch] = library.get_output(0).numpy()
    np.testing.assert_allclose(runs[3][:1], runs[1], rtol=1e-5)


def test_a_number_that_does_not_fit_is_told_beside_that_of_the_file():
    with pytest.raises(ModelError, match=r"'x' \(1, 3, 9, 8\) for \(1, 3, 8, 8\)"):
        relay.frontend.from_onnx(classifier(), {"x": (1, 3, 9, 8)})
    with pytest.raises(ModelError, match="but the model has"):
        relay.frontend.from_onnx(classifier(), {"x": (relay.Any(), 3, 8)})


def states_of_their_own():
    """An LSTM as converters of Keras write it: every tensor has a name for its batch."""
    draw = np.random.default_rng(3).standard_normal
    weights = {
        "w": draw((1, 16, 3)).astype(np.float32), "r": draw((1, 16, 4)).astype(np.float32),
        "b": draw((1, 32)).astype(np.float32), "zero": np.int64([0]),
    }  # fmt: skip
    nodes = [
        helper.make_node("Unsqueeze", ["h", "zero"], ["h0"]),
        helper.make_node("Unsqueeze", ["c", "zero"], ["c0"]),
        helper.make_node("LSTM", ["x", "w", "r", "b", "", "h0", "c0"], ["y", "yh"], hidden_size=4),
    ]
    inputs = {"x": ("float32", (5, "n", 3)), "h": ("float32", ("n1", 4))}
    return model(nodes, {**inputs, "c": ("float32", ("n2", 4))}, ["y", "yh"], weights)


def test_names_of_one_size_are_given_one():
    proto = states_of_their_own()
    with pytest.raises(ModelError, match=r"open size n1 where X has n, .*'n1': 'n'.*--dim n1=n"):
        relay.frontend.from_onnx(proto, dims={"n": (1, 8), "n1": (1, 8), "n2": (1, 8)})
    dims = {"n": (1, 8), "n1": "n", "n2": "n"}
    mod, _ = relay.frontend.from_onnx(proto, dims=dims)
    assert mod["main"].params[2].tensor_type.shape == (relay.Dim("n", 1, 8), 4)
    module = GraphModule(relay.build(mod, "llvm")["default"](cpu()))
    session = pytest.importorskip("onnxruntime").InferenceSession(proto.SerializeToString())
    for n in (1, 8, 3):
        draw = np.random.default_rng(n).standard_normal
        values = {"x": draw((5, n, 3)), "h": draw((n, 4)), "c": draw((n, 4))}
        values = {name: value.astype(np.float32) for name, value in values.items()}
        module.run(**values)
        for index, want in enumerate(session.run(None, values)):
            np.testing.assert_allclose(module.get_output(index).numpy(), want, atol=1e-6)


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        (
            {"n": (1, 8), "n1": "m"},
            "dims has 'm' for 'n1': write a size, .*, or another name",
        ),
        ({"n": (1, 8), "n1": "n1"}, "dims has 'n1' for 'n1'"),
        ({"n1": "n2", "n2": "n1"}, "dims has 'n2' for 'n1'"),
        ({"batch": (1, 8), "n1": "bath"}, "Did you mean 'batch'"),
    ],
)
def test_a_name_that_says_no_size(dims, words):
    with pytest.raises(ModelError, match=words):
        relay.frontend.from_onnx(states_of_their_own(), dims=dims)


@pytest.mark.parametrize("kind", ["Concat", "Add"])
def test_names_of_one_size_that_meet_are_told(kind):
    """Keras names the batch of each input for itself."""
    attributes = {"axis": 1} if kind == "Concat" else {}
    node = helper.make_node(kind, ["x", "z"], ["y"], **attributes)
    proto = model([node], {"x": ("float32", ("m", 3)), "z": ("float32", ("n", 3))}, ["y"])
    dims = {"m": (1, 8), "n": (1, 8)}
    with pytest.raises(ModelError, match=r"if they are one size.*'n': 'm'.*--dim n=m"):
        relay.frontend.from_onnx(proto, dims=dims)
    relay.frontend.from_onnx(proto, dims={**dims, "n": "m"})


def test_an_operator_that_its_types_define_takes_open_sizes():
    """Attention of opset 23 has a definition for each type of its inputs, sizes with names too."""
    import onnxruntime

    import slipway

    node = helper.make_node("Attention", ["x", "x", "x"], ["y"], is_causal=1, softcap=2.0)
    proto = model([node], {"x": ("float32", ("n", 2, 6, "m"))}, ["y"], {}, 23)
    shape = (relay.Dim("n", 1, 3), 2, 6, relay.Dim("m", 1, 9))
    compiled = slipway.compile(proto, shapes={"x": shape})
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for n, m in ((1, 1), (3, 9), (2, 5)):
        x = np.random.default_rng(m).standard_normal((n, 2, 6, m)).astype(np.float32)
        np.testing.assert_allclose(compiled(x), session.run(None, {"x": x})[0], atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("opset", [11, 13])
def test_the_largest_along_an_open_axis(axis, opset):
    import onnxruntime

    import slipway

    node = helper.make_node("Hardmax", ["x"], ["y"], axis=axis)
    proto = model([node], {"x": ("float32", ("n", "m", 3))}, ["y"], {}, opset)
    shape = (relay.Dim("n", 1, 3), relay.Dim("m", 1, 9), 3)
    compiled = slipway.compile(proto, shapes={"x": shape})
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for n, m in ((1, 1), (3, 9), (2, 5)):
        x = np.random.default_rng(m).standard_normal((n, m, 3)).astype(np.float32)
        np.testing.assert_array_equal(compiled(x), session.run(None, {"x": x})[0])
