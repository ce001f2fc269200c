"""Sizes that a model computes from those of its image in floats, as detectors scale to a size."""

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import ModelError
from slipway.relay.backend import Executor
from slipway.runtime import cpu
from slipway.runtime.executor import AotModule
from slipway.runtime.graph.graph_executor import GraphModule

N = helper.make_node
LONG = 24.0


def scaled(last, names=("y", "size")):
    """The shorter side becomes 12 and the longer one at most LONG, then `last`."""
    nodes = [
        N("Shape", ["x"], ["shape"]), N("Slice", ["shape", "two", "four"], ["sides"]),
        N("Cast", ["sides"], ["floats"], to=1),
        N("ReduceMin", ["floats"], ["short"], keepdims=0),
        N("ReduceMax", ["floats"], ["long"], keepdims=0),
        N("Reciprocal", ["short"], ["by_short"]), N("Mul", ["by_short", "twelve"], ["one"]),
        N("Div", ["most", "long"], ["other"]), N("Min", ["one", "other"], ["scale"]),
        N("Mul", ["floats", "scale"], ["exact"]), N("Floor", ["exact"], ["whole"]),
        N("Cast", ["whole"], ["wanted"], to=7), N("Slice", ["shape", "zero", "two"], ["front"]),
        N("Concat", ["front", "wanted"], ["sizes"], axis=0),
        N("Resize", ["x", "", "", "sizes"], ["image"], mode="linear"), *last,
    ]  # fmt: skip
    weights = {
        "two": np.int64([2]), "four": np.int64([4]), "zero": np.int64([0]),
        "twelve": np.float32(12), "most": np.float32(LONG),
        "w": np.random.default_rng(2).standard_normal((4, 3, 3, 3)).astype(np.float32),
    }  # fmt: skip
    return model(nodes, {"x": ("float32", ("n", 3, "h", "w_"))}, list(names), weights)


NETWORK = [
    N("Conv", ["image", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
    N("MaxPool", ["c"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
    N("Shape", ["c"], ["at_last"]),
    N("Resize", ["pooled", "", "", "at_last"], ["larger"], mode="nearest"),
    N("Add", ["larger", "c"], ["y"]), N("Shape", ["image"], ["size"]),
]  # fmt: skip
DIMS = {"n": (1, 2), "h": (8, 30), "w_": (8, 30)}
SIZES = [(1, 8, 8), (2, 30, 30), (1, 8, 30), (2, 30, 9), (1, 13, 29), (1, 24, 12), (2, 17, 8)]


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_an_image_is_scaled_to_a_size(executor):
    onnxruntime = pytest.importorskip("onnxruntime")
    proto = scaled(NETWORK)
    proto.graph.output[1].type.tensor_type.elem_type = 7
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    mod, _ = relay.frontend.from_onnx(proto, dims=DIMS)
    lib = relay.build(mod, "llvm", executor=Executor(executor))
    module = (AotModule if executor == "aot" else GraphModule)(lib["default"](cpu()))
    for n, h, w in SIZES:
        x = np.random.default_rng(h).standard_normal((n, 3, h, w)).astype(np.float32)
        module.set_input("x", x)
        module.run()
        want, size = session.run(None, {"x": x})  # which has coordinates in float32
        np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(module.get_output(1).numpy(), size)


def test_each_kind_of_node_takes_such_sizes():
    """Numbers up to a computed one, so many zeros, the first ones of an axis."""
    onnxruntime = pytest.importorskip("onnxruntime")
    last = [
        N("ConstantOfShape", ["wanted"], ["zeros"]), N("CumSum", ["zeros", "one_"], ["sums"]),
        N("ReduceMax", ["wanted"], ["high"], keepdims=0),
        N("Range", ["none", "high", "one_"], ["numbers"]), N("Cast", ["numbers"], ["u"], to=1),
        N("Sin", ["u"], ["y"]), N("Shape", ["sums"], ["size"]),
    ]  # fmt: skip
    proto = scaled(last)
    for name, value in (("one_", 1), ("none", 0)):
        proto.graph.initializer.append(helper.make_tensor(name, 7, [], [value]))
    proto.graph.output[1].type.tensor_type.elem_type = 7
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    mod, _ = relay.frontend.from_onnx(proto, dims=DIMS)
    module = GraphModule(relay.build(mod, "llvm")["default"](cpu()))
    for n, h, w in SIZES[:4]:
        x = np.zeros((n, 3, h, w), np.float32)
        module.run(x=x)
        want, size = session.run(None, {"x": x})
        np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(module.get_output(1).numpy(), size)


def test_a_size_that_values_of_the_image_decide_has_no_bounds():
    nodes = [
        N("ReduceMax", ["x"], ["high"], keepdims=0), N("Cast", ["high"], ["number"], to=7),
        N("Unsqueeze", ["number", "zero"], ["shape"]), N("ConstantOfShape", ["shape"], ["y"]),
    ]  # fmt: skip
    proto = model(nodes, {"x": ("float32", (4,))}, ["y"], {"zero": np.int64([0])})
    with pytest.raises(ModelError, match="depends on the model's inputs; it must be constant"):
        relay.frontend.from_onnx(proto)


def of_an_input(kind):
    """Return a model whose sizes are elements of the input `s`, and values that fit it."""
    x = {"x": ("float32", (1, 4))}
    weights = {"one": np.int64([1]), "four": np.int64([4]), "first": np.int64([0])}
    if kind == "Loop":
        inner = helper.make_graph(
            [N("Identity", ["c"], ["on"]), N("Tanh", ["v"], ["v2"]), N("Neg", ["v2"], ["row"])],
            "body",
            [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("c", 9, []),
             helper.make_tensor_value_info("v", 1, [1, 4])],
            [helper.make_tensor_value_info("on", 9, []),
             *(helper.make_tensor_value_info(n, 1, [1, 4]) for n in ("v2", "row"))],
        )  # fmt: skip
        nodes = [N("Loop", ["s", "", "x"], ["last", "y"], body=inner)]
        return model(nodes, {**x, "s": ("int64", ())}, ["last", "y"], {}), np.int64(5)
    if kind == "Expand":
        nodes = [
            N("Unsqueeze", ["s", "first"], ["s1"]), N("Add", ["s1", "one"], ["s2"]),
            N("Concat", ["s2", "four"], ["shape"], axis=0), N("Expand", ["x", "shape"], ["y"]),
        ]  # fmt: skip
        return model(nodes, {**x, "s": ("int64", ())}, ["y"], weights), np.int64(6)
    if kind == "ConstantOfShape":
        nodes = [N("ConstantOfShape", ["s"], ["zeros"]), N("Shape", ["zeros"], ["y"])]
        return model(nodes, {"s": ("int64", (2,))}, ["zeros", "y"], {}), np.int64([3, 7])
    nodes = [N("Reshape", ["x", "s"], ["y"])]
    return model(nodes, {"x": ("float32", (3, 4)), "s": ("int64", (1,))}, ["y"], {}), np.int64([12])


@pytest.mark.parametrize("kind", ["Loop", "Expand", "ConstantOfShape", "Reshape"])
def test_sizes_that_are_values_of_an_input(kind):
    """`dims` says between which ends the elements of the input lie."""
    import slipway

    onnxruntime = pytest.importorskip("onnxruntime")
    proto, sizes = of_an_input(kind)
    for output in proto.graph.output:
        if kind == "ConstantOfShape":
            output.type.tensor_type.elem_type = 7 if output.name == "y" else 1
        output.type.tensor_type.ClearField("shape")
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    with pytest.raises(ModelError, match=r"must be constant|trip count"):
        relay.frontend.from_onnx(proto)
    compiled = slipway.compile(proto, dims={"s": (1, 20)})
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim]
              for i in proto.graph.input}  # fmt: skip
    draw = np.random.default_rng(1)
    given = {name: draw.random(shape, dtype="float32") for name, shape in shapes.items()}
    for value in (sizes, np.ones_like(sizes)) if kind != "Reshape" else (sizes,):
        given["s"] = np.asarray(value)
        found = compiled(**given)
        found = list(found.values()) if isinstance(found, dict) else [found]
        for one, two in zip(found, session.run(None, given), strict=True):
            np.testing.assert_allclose(one, two, atol=1e-6)
