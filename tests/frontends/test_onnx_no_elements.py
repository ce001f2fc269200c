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


def model(kind, shapes, constants=(), blanks=0, **attributes):
    """One node; its inputs, then left out ones, then constants."""
    names = [f"x{n}" for n in range(len(shapes))]
    initializers = [onnx.numpy_helper.from_array(c, f"c{n}") for n, c in enumerate(constants)]
    read = [*names, *[""] * blanks, *(i.name for i in initializers)]
    inputs = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in zip(names, shapes, strict=True)
    ]
    result = onnx.ValueInfoProto(name="y")
    node = helper.make_node(kind, read, ["y"], **attributes)
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
