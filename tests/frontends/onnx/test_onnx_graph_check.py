"""Names, versions, sizes and constants of an ONNX file that mean nothing are refused."""

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import LoweringError, ModelError, TypeInferenceError
from slipway.relay.interpret import interpret
from slipway.relay.types import TensorType

X = {"x": ("float32", (3, 4))}


def relu(*outputs, name="y", opset=17):
    return model([helper.make_node("Relu", ["x"], [name], name="r0")], X, outputs, opset=opset)


@pytest.mark.parametrize("version", [999, -1, -(2**63)])
def test_an_opset_that_onnx_does_not_know(version):
    with pytest.raises(ModelError, match=rf"uses opset {version}; the installed onnx knows 1 to"):
        relay.frontend.from_onnx(relu("y", opset=version))
    with pytest.raises(ModelError, match="asks for opset"):
        relay.frontend.from_onnx(relu("y"), opset=version)


def test_two_outputs_of_one_name():
    with pytest.raises(ModelError, match="two outputs of the model are called 'y'"):
        relay.frontend.from_onnx(relu("y", "y"))


@pytest.mark.parametrize("name", ["x", "w"])
def test_a_node_that_makes_what_is_given(name):
    proto = model(
        [helper.make_node("Relu", ["x"], [name], name="r0")], X, [name], {"w": np.float32([1])}
    )
    with pytest.raises(ModelError, match=rf"'r0' makes '{name}', which is made or given already"):
        relay.frontend.from_onnx(proto)


def test_two_nodes_that_make_one_value():
    nodes = [helper.make_node(k, ["x"], ["y"], name=k) for k in ("Relu", "Neg")]
    with pytest.raises(ModelError, match="'Neg' makes 'y', which is made"):
        relay.frontend.from_onnx(model(nodes, X, ["y"]))


def test_names_are_checked_in_subgraphs_too():
    body = helper.make_graph(
        [helper.make_node(k, ["x"], ["b"], name=k) for k in ("Relu", "Neg")],
        "body", [], [helper.make_tensor_value_info("b", 1, None)],
    )  # fmt: skip
    node = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    with pytest.raises(ModelError, match="'Neg' makes 'b'"):
        relay.frontend.from_onnx(model([node], {**X, "c": ("bool", ())}, ["y"]))


def branch(kind):
    inner = [helper.make_node(kind, ["late"], ["b"]), helper.make_node("Exp", ["x"], ["late"])]
    return helper.make_graph(inner, kind, [], [helper.make_tensor_value_info("b", 1, None)])


@pytest.mark.parametrize("body", ["graph", "branch", "function"])
def test_nodes_out_of_order_are_put_into_it(body):
    """onnxruntime does so, too; the caller's model keeps its order."""
    node, x = helper.make_node, np.float32([[1, -2, 3, 0]] * 3)
    if body == "graph":
        nodes = [node("Neg", ["e"], ["y"]), node("Exp", ["a"], ["e"]), node("Abs", ["x"], ["a"])]
        proto, wanted = model(nodes, X, ["y"]), -np.exp(np.abs(x))
    elif body == "branch":
        proto = model(
            [
                node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs")),
                node("Less", ["m", "w"], ["c"]),
                node("ReduceMin", ["x"], ["m"], keepdims=0),
            ],
            X, ["y"], {"w": np.float32(0)},
        )  # fmt: skip
        wanted = -np.exp(x)
    else:
        inner = [node("Neg", ["t"], ["o"]), node("Exp", ["i"], ["t"])]
        proto = model([node("F", ["x"], ["y"], domain="own")], X, ["y"])
        imports = [helper.make_opsetid("", 17)]
        proto.functions.append(helper.make_function("own", "F", ["i"], ["o"], inner, imports))
        proto.opset_import.append(helper.make_opsetid("own", 1))
        wanted = -np.exp(x)
    before = proto.SerializeToString(deterministic=True)
    mod, _ = relay.frontend.from_onnx(proto)
    np.testing.assert_allclose(interpret(mod, x=x), wanted, rtol=1e-5)
    assert proto.SerializeToString(deterministic=True) == before


def test_nodes_that_wait_for_each_other():
    nodes = [helper.make_node("Exp", ["t"], ["y"]), helper.make_node("Add", ["x", "y"], ["t"])]
    with pytest.raises(ModelError, match="'Exp' reads 't', which no node before it makes"):
        relay.frontend.from_onnx(model(nodes, X, ["y"]))


def test_functions_of_one_name_are_told_apart_by_their_overload():
    nodes = [helper.make_node("F", [i], [o], domain="own") for i, o in (("x", "t"), ("t", "y"))]
    nodes[1].overload = "two"
    proto = model(nodes, X, ["y"])
    proto.opset_import.append(helper.make_opsetid("own", 1))
    for kind, overload in (("Abs", ""), ("Exp", "two")):
        body = [helper.make_node(kind, ["i"], ["o"])]
        made = helper.make_function("own", "F", ["i"], ["o"], body, [helper.make_opsetid("", 17)])
        made.overload = overload
        proto.functions.append(made)
    mod, _ = relay.frontend.from_onnx(proto)
    x = np.float32([[1, -2, 3, 0]] * 3)
    np.testing.assert_allclose(interpret(mod, x=x), np.exp(np.abs(x)), rtol=1e-6)


def test_an_input_may_be_an_output():
    """ONNX allows it: the value goes through."""
    mod, _ = relay.frontend.from_onnx(relu("y", "x"))
    assert mod["main"].attr("output_names") == ("y", "x")


@pytest.mark.parametrize("dims", [[-2, -2], [2**32, 2**32], [1] * 70, [2**62, 4], [-1]])
@pytest.mark.parametrize("field", ["raw_data", "float_data"])
def test_dimensions_of_an_initializer(dims, field):
    proto = model([helper.make_node("Add", ["x", "w"], ["y"])], X, ["y"])
    tensor = proto.graph.initializer.add(name="w", data_type=1, dims=dims)
    if field == "raw_data":
        tensor.raw_data = bytes(16)
    else:
        tensor.float_data.extend([1, 2, 3, 4])
    with pytest.raises(ModelError, match="'w' has dimensions that no tensor has"):
        relay.frontend.from_onnx(proto)


@pytest.mark.parametrize(
    ("kind", "scale"),
    [("QuantizeLinear", s) for s in (0, np.nan, np.inf)]
    + [("DequantizeLinear", s) for s in (np.nan, -np.inf)],
)
def test_scales_that_scale_nothing(kind, scale):
    dtype = "float32" if kind[0] == "Q" else "int64"
    node = helper.make_node(kind, ["x", "s"], ["y"], name="q0")
    proto = model([node], {"x": (dtype, (4,))}, ["y"], {"s": np.float32(scale)})
    with pytest.raises(ModelError, match=rf"{kind} x 1 \(q0\): its scale \(input 1\) is"):
        relay.frontend.from_onnx(proto)


@pytest.mark.parametrize("scale", [0.0, -0.5])
def test_scales_that_onnx_defines(scale):
    """A channel of zeros has scale 0 in some files; the operator is (x - zero) * scale."""
    weights = {"x": np.int8([-3, 0, 7]), "s": np.float32(scale)}
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"])
    mod, _ = relay.frontend.from_onnx(model([node], {}, ["y"], weights))
    np.testing.assert_array_equal(mod["main"].body.array, np.float32([-3, 0, 7]) * scale)


POSITIONS = {
    "Gather": (["x", "i"], [[0, 4]], {"axis": 1}, "position 4 of axis 1, which has 4"),
    "Gather behind": (["x", "i"], [-4], {}, "position -4 of axis 0, which has 3"),
    "GatherElements": (["x", "i"], [[3]], {}, "position 3 of axis 0"),
    "GatherND": (["x", "i"], [[0, 9]], {}, "position 9 of axis 1"),
    "ScatterND": (["x", "i", "u"], [[5]], {}, "position 5 of axis 0"),
    "ScatterElements": (["x", "i", "u"], [[7]], {"axis": -1}, "position 7 of axis 1"),
}


@pytest.mark.parametrize("case", POSITIONS)
def test_constant_positions_lie_inside_the_data(case):
    inputs, positions, attributes, words = POSITIONS[case]
    node = helper.make_node(case.split()[0], inputs, ["y"], name="n0", **attributes)
    weights = {"i": np.array(positions, np.int64), "u": np.zeros((1, 4), np.float32)}
    with pytest.raises(ModelError, match=rf"\(n0\): it reads {words}"):
        relay.frontend.from_onnx(model([node], X, ["y"], weights))


@pytest.mark.parametrize("rank", [33, 2001])
def test_a_rank_beyond_any(rank):
    node = helper.make_node("Reshape", ["x", "s"], ["y"], name="n0")
    shape = np.array([3, 4] + [1] * (rank - 2))
    with pytest.raises(ModelError, match=rf"a tensor of {rank} axes: at most 32"):
        relay.frontend.from_onnx(model([node], X, ["y"], {"s": shape}))


def test_a_rank_that_the_runtime_does_not_carry():
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"], name="n0")]
    proto = model(nodes, X, ["y"], {"s": np.array([3, 4] + [1] * 15)})
    mod, params = relay.frontend.from_onnx(proto)
    with pytest.raises(LoweringError, match="a tensor of 17 axes; the runtime carries at most 16"):
        relay.build(mod, "llvm", params=params)


def test_types_have_limits_of_their_own():
    for shape, dtype in (((2**40, 2**40), "int8"), ((1,) * 40, "int8"), ((1,), "complex64")):
        with pytest.raises(TypeInferenceError):
            TensorType(shape, dtype)
