"""Resize and Upsample by factors that are inputs: as with the same factors in the file."""

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import OpNotImplemented
from slipway.relay.interpret import interpret
from slipway.runtime import cpu
from slipway.runtime.graph.graph_executor import GraphModule

RNG = np.random.default_rng(0)
SHAPE = (1, 2, 7, 9)
DATA = RNG.standard_normal(SHAPE).astype(np.float32)
SCALES = np.array([1, 1, 0.7, 1.9], np.float32)
STATED = (1, 2, 4, 17)
# as text, so that the cases have names
CASES = {
    "nearest": {"mode": "nearest"},
    "nearest ceil": {"mode": "nearest", "nearest_mode": "ceil",
                     "coordinate_transformation_mode": "asymmetric"},
    "linear": {"mode": "linear"},
    "linear corners": {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    "linear antialias": {"mode": "linear", "antialias": 1},
    "linear symmetric": {"mode": "linear",
                         "coordinate_transformation_mode": "half_pixel_symmetric"},
    "cubic": {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"},
    "cubic antialias": {"mode": "cubic", "antialias": 1, "exclude_outside": 1},
    "cubic outside": {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
}  # fmt: skip


def resize(open_scales, stated=STATED, scales=SCALES, **attributes):
    inputs = {"x": ("float32", SHAPE)}
    if open_scales:
        inputs["s"] = ("float32", scales.shape)
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], **attributes)
    proto = model([node], inputs, ["y"], {} if open_scales else {"s": scales}, opset=19)
    if stated:
        shape = proto.graph.output[0].type.tensor_type.shape
        for size in stated:
            shape.dim.add().dim_value = size
    return relay.frontend.from_onnx(proto)


@pytest.mark.parametrize("case", CASES)
def test_factors_that_are_inputs(case):
    want = interpret(resize(False, **CASES[case])[0], x=DATA)
    found = interpret(resize(True, **CASES[case])[0], x=DATA, s=SCALES)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    # other factors that give the same size
    other = np.array([1, 1, 0.6, 1.93], np.float32)
    want = interpret(resize(False, scales=other, **CASES[case])[0], x=DATA)
    found = interpret(resize(True, **CASES[case])[0], x=DATA, s=other)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", ["nearest", "cubic antialias"])
def test_compiled(case):
    want = interpret(resize(False, **CASES[case])[0], x=DATA)
    mod, params = resize(True, **CASES[case])
    module = GraphModule(relay.build(mod, target="llvm", params=params)["default"](cpu()))
    module.run(x=DATA, s=SCALES)
    np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-5, atol=1e-6)


def test_without_a_stated_shape_it_is_refused():
    with pytest.raises(OpNotImplemented, match=r"the scales \(input 2\) depends on the model's"):
        resize(True, stated=None, mode="nearest")


def test_a_shape_that_follows_is_the_shape_before():
    """The logarithm's shape is stated: the sum along axes that are an input has it, too."""
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["total"], keepdims=0),
        helper.make_node("Log", ["total"], ["wide"]),
        helper.make_node("Cast", ["wide"], ["y"], to=1),
    ]
    proto = model(nodes, {"x": ("float32", (3, 2, 3)), "axes": ("int64", (1,))}, ["y"], opset=18)
    for size in (3, 2):
        proto.graph.output[0].type.tensor_type.shape.dim.add().dim_value = size
    mod, _ = relay.frontend.from_onnx(proto)
    data = np.arange(1, 19, dtype=np.float32).reshape(3, 2, 3)
    found = interpret(mod, x=data, axes=np.array([-1], np.int64))
    np.testing.assert_allclose(found, np.log(data.sum(-1)), rtol=1e-6)
