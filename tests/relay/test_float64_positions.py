"""Interpolation of float64 tensors: positions and weights have float64's precision too."""

import numpy as np
import pytest
from scipy import ndimage

import slipway as tvm
from slipway import relay
from slipway.relay.op_registry import make
from slipway.runtime import cpu
from slipway.runtime.graph import graph_executor

RNG = np.random.default_rng(0)
IMAGE = RNG.uniform(-1, 1, (1, 1, 13, 9))


def run(expr, params, *arrays):
    function = relay.Function(params, expr)
    library = relay.build(tvm.IRModule.from_expr(function), target="llvm")
    module = graph_executor.GraphModule(library["default"](cpu(0)))
    for number, array in enumerate(arrays):
        module.set_input(number, array)
    module.run()
    return module.get_output(0).numpy()


def image():
    return relay.var("x", shape=IMAGE.shape, dtype="float64")


@pytest.mark.parametrize("size", [(29, 31), (4, 3), (1, 1)])
def test_linear_resize(size):
    x = image()
    out = make("image.resize")(x, (0, 0, *size), (), "linear", "half_pixel")
    at = np.meshgrid(
        *((np.arange(o) + 0.5) * e / o - 0.5 for o, e in zip(size, (13, 9), strict=True)),
        indexing="ij",
    )
    want = ndimage.map_coordinates(IMAGE[0, 0], at, order=1, mode="nearest")
    np.testing.assert_allclose(run(out, [x], IMAGE)[0, 0], want, rtol=0, atol=1e-14)


def test_cubic_resize_keeps_a_constant_image():
    x = image()
    out = make("image.resize")(x, (0, 0, 7, 20), (), "cubic", "half_pixel")
    got = run(out, [x], np.full(IMAGE.shape, 1 / 3))
    np.testing.assert_allclose(got, 1 / 3, rtol=0, atol=1e-14)


def test_grid_sample():
    x, grid = image(), relay.var("grid", shape=(1, 5, 6, 2), dtype="float64")
    points = RNG.uniform(-0.9, 0.9, (1, 5, 6, 2))
    out = make("image.grid_sample")(x, grid)
    at = [(points[0, ..., 1] + 1) / 2 * 12, (points[0, ..., 0] + 1) / 2 * 8]
    want = ndimage.map_coordinates(IMAGE[0, 0], at, order=1)
    np.testing.assert_allclose(run(out, [x, grid], IMAGE, points)[0, 0], want, rtol=0, atol=1e-14)


def test_roi_align():
    x, rois = image(), relay.var("rois", shape=(1, 5), dtype="float64")
    region = np.array([[0, 1.1, 2.3, 6.7, 9.1]])
    out = make("vision.roi_align")(x, rois, (2, 2), 1.0, 1)
    at = np.meshgrid(
        2.3 + (np.arange(2) + 0.5) * 6.8 / 2, 1.1 + (np.arange(2) + 0.5) * 5.6 / 2, indexing="ij"
    )
    want = ndimage.map_coordinates(IMAGE[0, 0], at, order=1)
    np.testing.assert_allclose(run(out, [x, rois], IMAGE, region)[0, 0], want, rtol=0, atol=1e-14)


def test_deformable_convolution():
    x = image()
    offset, mask = (
        relay.var(n, shape=(1, c, 13, 9), dtype="float64") for n, c in (("o", 2), ("m", 1))
    )
    moves, weights = RNG.uniform(-0.4, 0.4, (1, 2, 13, 9)), RNG.uniform(0, 1, (1, 1, 13, 9))
    im2col = make("nn.deformable_im2col")
    got = run(im2col(x, offset, mask, (1, 1)), [x, offset, mask], IMAGE, moves, weights)
    y, z = np.meshgrid(np.arange(13.0), np.arange(9.0), indexing="ij")
    padded = np.pad(IMAGE[0, 0], 1)
    want = ndimage.map_coordinates(padded, [y + 1 + moves[0, 0], z + 1 + moves[0, 1]], order=1)
    np.testing.assert_allclose(got.reshape(13, 9), want * weights[0, 0], rtol=0, atol=1e-14)
