"""ONNX operators that the conformance suite leaves out, against onnxruntime."""

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.relay.interpret import interpret

onnxruntime = pytest.importorskip("onnxruntime")


def both(proto, **inputs):
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    wanted = session.run(None, inputs)
    found = interpret(relay.frontend.from_onnx(proto)[0], **inputs)
    return (found if isinstance(found, tuple) else (found,)), wanted


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_max_roi_pool(scale):
    rng = np.random.default_rng(3)
    regions = np.float32([[0, 1, 1, 6, 5], [1, 0, 2, 3, 3], [0, 5, 0, 7, 7]])
    node = helper.make_node(
        "MaxRoiPool", ["x", "rois"], ["y"], pooled_shape=[2, 3], spatial_scale=scale
    )
    x = ("float32", (2, 3, 8, 8))
    proto = model([node], {"x": x}, ["y"], {"rois": regions})
    found, wanted = both(proto, x=rng.standard_normal((2, 3, 8, 8)).astype(np.float32))
    np.testing.assert_array_equal(found[0], wanted[0])


@pytest.mark.parametrize(("ceil", "order"), [(0, 0), (1, 0), (0, 1)])
def test_max_pool_indices(ceil, order):
    rng = np.random.default_rng(4)
    node = helper.make_node(
        "MaxPool", ["x"], ["y", "i"], kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 0, 1],
        ceil_mode=ceil, storage_order=order,
    )  # fmt: skip
    proto = model([node], {"x": ("float32", (2, 3, 8, 7))}, ["y", "i"])
    proto.graph.output[1].type.tensor_type.elem_type = 7
    found, wanted = both(proto, x=rng.standard_normal((2, 3, 8, 7)).astype(np.float32))
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
