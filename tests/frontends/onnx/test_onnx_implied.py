"""Inputs that the stated shape of a result settles; a transform along an axis that is an input."""

import numpy as np
import pytest
from graphs import helper, model

from slipway import relay
from slipway.errors import OpNotImplemented
from slipway.relay.interpret import interpret


def read(node, inputs, stated, opset=20):
    proto = model([node], inputs, ["y"], opset=opset)
    for size in stated:
        proto.graph.output[0].type.tensor_type.shape.dim.add().dim_value = size
    return relay.frontend.from_onnx(proto)[0]


def test_the_length_of_a_window():
    node = helper.make_node("HannWindow", ["n"], ["y"], periodic=0)
    found = interpret(read(node, {"n": ("int64", ())}, (11,)), n=np.int64(11))
    np.testing.assert_allclose(found, np.hanning(11), atol=1e-6)
    with pytest.raises(OpNotImplemented, match="limit"):
        read(node, {"n": ("int64", ())}, ())


def test_what_is_cut_or_padded_to():
    node = helper.make_node("CenterCropPad", ["x", "s"], ["y"], axes=[0, 2])
    mod = read(node, {"x": ("float32", (4, 3, 5)), "s": ("int64", (2,))}, (2, 3, 7))
    x = np.random.default_rng(0).standard_normal((4, 3, 5)).astype(np.float32)
    want = np.pad(x[1:3], ((0, 0), (0, 0), (1, 1)))
    np.testing.assert_array_equal(interpret(mod, x=x, s=np.array([2, 7])), want)


def test_the_size_of_a_grid():
    node = helper.make_node("AffineGrid", ["t", "s"], ["y"], align_corners=1)
    mod = read(node, {"t": ("float32", (2, 2, 3)), "s": ("int64", (4,))}, (2, 3, 5, 2))
    theta = np.tile(np.array([[1, 0, 0.5], [0, 2, 0]], np.float32), (2, 1, 1))
    found = interpret(mod, t=theta, s=np.array([2, 4, 3, 5]))
    across, down = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 3))
    want = np.stack([across + 0.5, 2 * down], -1)
    np.testing.assert_allclose(found, np.stack([want, want]), atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -2, -3])
def test_a_transform_along_an_axis_that_is_an_input(axis):
    node = helper.make_node("DFT", ["x", "", "a"], ["y"])
    mod = read(node, {"x": ("float32", (4, 4, 2)), "a": ("int64", ())}, (4, 4, 2))
    x = np.random.default_rng(0).standard_normal((4, 4, 2)).astype(np.float32)
    want = np.fft.fft(x[..., 0] + 1j * x[..., 1], axis=axis if axis >= 0 else axis + 1)
    found = interpret(mod, x=x, a=np.int64(axis))
    np.testing.assert_allclose(found, np.stack([want.real, want.imag], -1), atol=1e-5)
