"""What outputs are: told by what computes them, where the shape is the same for all."""

import numpy as np
import pytest

from slipway import relay
from slipway.inspect.output_kinds import output_kinds

onnx = pytest.importorskip("onnx")
REAL, WHOLE, FLAG = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
# Nodes after scores "s" (of a layer with weights) that compute "y" -> what y is.
CASES = {
    "logits": ([("Identity", ["s"], ["y"])], "scores"),
    "relu, as of an embedding": ([("Relu", ["s"], ["y"])], "unknown"),
    "normalized": ([("LpNormalization", ["s"], ["y"])], "unknown"),
    "softmax": ([("Softmax", ["s"], ["y"])], "shares"),
    "logarithms": ([("LogSoftmax", ["s"], ["y"])], "log shares"),
    "sigmoid, in another shape": ([("Sigmoid", ["s"], ["t"]), ("Reshape", ["t", "three"], ["y"])],
                                  "chances"),
    "softmax of single operators": (
        [("Exp", ["s"], ["e"]), ("ReduceSum", ["e", "one"], ["t"]), ("Div", ["e", "t"], ["y"])],
        "shares",
    ),
    "quantized softmax": (
        [("Softmax", ["s"], ["t"]), ("QuantizeLinear", ["t", "scale", "point"], ["y"])], "shares"),
    "three largest": ([("Softmax", ["s"], ["t"]), ("TopK", ["t", "two"], ["y", "i"])], "chosen"),
    "their indices": ([("TopK", ["s", "two"], ["v", "y"])], "indices"),
    "argmax": ([("ArgMax", ["s"], ["y"], {"axis": 1})], "indices"),
    "some of them": ([("Gather", ["s", "two"], ["y"], {"axis": 1})], "chosen"),
    "largest of rows": ([("ReduceMax", ["s"], ["y"], {"axes": [0]})], "chosen"),
    "one of two by a condition": ([("If", ["c"], ["y"])], "shares"),
}  # fmt: skip


def branch(name):
    node = onnx.helper.make_node("Softmax", ["s"], [name])
    out = onnx.helper.make_tensor_value_info(name, REAL, None)
    return onnx.helper.make_graph([node], name, [], [out])


@pytest.mark.parametrize("name", CASES)
def test_what_computes_an_output_says_what_it_is(name):
    helper = onnx.helper
    nodes, wanted = CASES[name]
    made = [helper.make_node("Gemm", ["x", "w", "b"], ["s"])]
    for kind, inputs, outputs, *rest in nodes:
        attributes = dict(*rest)
        if kind == "If":
            attributes = {"then_branch": branch("p"), "else_branch": branch("q")}
        made.append(helper.make_node(kind, inputs, outputs, **attributes))
    weights = {
        "w": np.ones((4, 3), "float32"), "b": np.ones(3, "float32"), "three": np.array([-1, 3, 1]),
        "one": np.array([1]), "two": np.array([2]), "scale": np.float32(1 / 256),
        "point": np.int8(-128),
    }  # fmt: skip
    constants = [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in weights.items()]
    given = [helper.make_tensor_value_info("x", REAL, ("n", 4))]
    given += [helper.make_tensor_value_info("c", FLAG, ())]
    # With a number of samples that is open, and with one.
    for shapes in ({}, {"x": (1, 4)}):
        graph = helper.make_graph(
            made, "g", given, [helper.make_empty_tensor_value_info("y")], constants
        )
        opset = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=9)
        dims = {} if shapes else {"n": (1, 8)}
        mod, _ = relay.frontend.from_onnx(model, shape=shapes, dims=dims)
        ((found, extents),) = output_kinds(mod["main"])
        assert found == wanted, mod
        assert len(extents) <= 1
