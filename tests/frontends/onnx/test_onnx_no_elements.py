"""Operators whose data, or part of it, has no elements, against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from onnx import helper

from slipway import relay
from slipway.errors import SlipwayError
from slipway.runtime import cpu
from slipway.runtime.graph import graph_executor

onnxruntime = pytest.importorskip("onnxruntime")


def model(kind, shapes, constants=(), blanks=0, outputs=("y",), **attributes):
    """One node; its inputs, then left out ones, then constants."""
    names = [f"x{n}" for n in range(len(shapes))]
    initializers = [onnx.numpy_helper.from_array(c, f"c{n}") for n, c in enumerate(constants)]
    read = [*names, *[""] * blanks, *(i.name for i in initializers)]
    inputs = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
    ]
    result = onnx.ValueInfoProto(name="y")
    node = helper.make_node(kind, read, outputs, **attributes)
    graph = helper.make_graph([node], "g", inputs, [result], initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(made)


def agrees(made, shapes):
    """The shape and the elements are ONNX Runtime's."""
    given = {f"x{n}": np.ones(shape, "float32") for n, shape in enumerate(shapes)}
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (want,) = session.run(None, given)
    mod, params = relay.frontend.from_onnx(made)
    library = relay.build(mod, target="c", params=params)
    module = graph_executor.GraphModule(library["default"](cpu()))
    for name, array in given.items():
        module.set_input(name, array)
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), want)


@pytest.mark.parametrize(
    ("mode", "policy"),
    [(mode, "stretch") for mode in ("nearest", "linear", "cubic")]
    + [("nearest", "not_larger"), ("nearest", "not_smaller")],  # ONNX Runtime has no others
)
def test_a_resize_to_sizes(mode, policy):
    shape, sizes = (0, 3, 4, 5), np.array([0, 3, 8, 9])
    made = model("Resize", [shape], [sizes], 2, mode=mode, keep_aspect_ratio_policy=policy)
    agrees(made, [shape])


def test_a_resize_of_nothing_to_something_is_refused():
    sizes = np.array([2, 3, 8, 8])
    with pytest.raises(SlipwayError, match=r"\(0, 3, 4, 4\) has no elements"):
        relay.frontend.from_onnx(model("Resize", [(0, 3, 4, 4)], [sizes], 2))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 0), (0, 3)]),
        ("ij,jk->ik", [(0, 2), (2, 3)]),
        ("bij,bjk->bik", [(0, 2, 2), (0, 2, 3)]),
        ("i,j->ij", [(0,), (3,)]),
    ],
)
def test_an_einsum(equation, shapes):
    agrees(model("Einsum", shapes, equation=equation), shapes)


def test_the_first_none():
    both = ("y", "places")
    agrees(model("TopK", [(3, 4)], [np.int64([0])], outputs=both, axis=1), [(3, 4)])
    below = model("TopK", [(3, 4)], [np.int64([-1])], outputs=both, axis=1)
    with pytest.raises(SlipwayError, match="its k is -1"):
        relay.frontend.from_onnx(below)


def integers_agree(kind, shape, opset=18, **attributes):
    """The same of int64 data, whose end stands where floats have an infinity."""
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.INT64, shape)
    node = helper.make_node(kind, ["x"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    given = np.full(shape, 3, np.int64)
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (want,) = session.run(None, {"x": given})
    mod, params = relay.frontend.from_onnx(onnx.shape_inference.infer_shapes(made))
    module = graph_executor.GraphModule(relay.build(mod, "c", params=params)["default"](cpu()))
    module.set_input("x", given)
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), want)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 0, 4)])
@pytest.mark.parametrize("kind", ["ReduceMax", "ReduceMin", "ReduceLogSum", "ReduceLogSumExp"])
def test_an_extreme_of_integers(kind, shape):
    integers_agree(kind, shape, keepdims=0)


@pytest.mark.parametrize(("shape", "axis"), [((0, 3), 1), ((3, 0), 0), ((2, 0, 4), 2)])
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_place_of_an_extreme(kind, shape, axis, keepdims):
    agrees(model(kind, [shape], axis=axis, keepdims=keepdims), [shape])


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize(("shape", "axis"), [((0, 3), 0), ((3, 0), 1), ((2, 0, 4), 1)])
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax", "Hardmax"])
def test_a_softmax(kind, shape, axis, opset):
    made = model(kind, [shape], axis=axis)
    made.opset_import[0].version = opset
    agrees(made, [shape])


@pytest.mark.parametrize(("shape", "axis"), [((3, 0), 0), ((2, 0, 4), 0), ((2, 0, 4), 1)])
def test_the_logarithm_of_a_sum_of_exponentials(shape, axis):
    agrees(model("ReduceLogSumExp", [shape], [np.int64([axis])], keepdims=0), [shape])


def counted(kind, shape, outputs, **attributes):
    """Run a node whose results' sizes depend on the data; return them cut to their counts."""
    names = [f"y{i}" for i in range(outputs)]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    node = helper.make_node(kind, ["x"], names, **attributes)
    results = [onnx.ValueInfoProto(name=name) for name in names]
    made = helper.make_model(
        helper.make_graph([node], "g", [x], results), opset_imports=[helper.make_opsetid("", 18)]
    )
    mod, params = relay.frontend.from_onnx(made)
    module = graph_executor.GraphModule(relay.build(mod, "c", params=params)["default"](cpu()))
    module.set_input("x", np.ones(shape, "float32"))
    module.run()
    return [module.get_output(i).numpy() for i in range(module.get_num_outputs())]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4)])
def test_places_that_are_not_zero(shape):
    found, count = counted("NonZero", shape, 1)
    assert found.shape == (len(shape), 0)
    assert count.tolist() == [0]


def test_the_place_of_a_scalar_has_no_coordinates():
    """ONNX says (0, N) of a scalar, unlike NumPy and ONNX Runtime."""
    found, count = counted("NonZero", (), 1)
    assert found.shape == (0, 1)
    assert count.tolist() == [1]


@pytest.mark.parametrize(
    ("shape", "axis"), [((0,), None), ((0, 3), 0), ((3, 0), 0), ((2, 0, 4), None), ((2, 0, 4), 2)]
)
def test_different_elements(shape, axis):
    axes = {} if axis is None else {"axis": axis}
    found, count, first, _, inverse, counts, _ = counted("Unique", shape, 4, **axes)
    want = np.unique(np.ones(shape, "float32"), True, True, True, axis=axis)
    number = want[0].shape[axis or 0]
    assert count.tolist() == [number]
    np.testing.assert_array_equal(np.take(found, range(number), axis or 0), want[0])
    np.testing.assert_array_equal(first[:number], want[1])
    np.testing.assert_array_equal(inverse, want[2].reshape(-1))
    np.testing.assert_array_equal(counts[:number], want[3])
