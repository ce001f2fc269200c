"""Operators on arrays of com.microsoft against onnxruntime."""

import numpy as np
import pytest
from microsoft import check_both, contrib

RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 4)).astype(np.float32)


@pytest.mark.parametrize("axis", [-2, -1, 0, 1])
def test_a_new_axis(axis):
    check_both([contrib("ExpandDims", ["x", "a"], "y")], {"x": X}, ["y"], {"a": np.int32(axis)})


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_padding(mode):
    weights = {"p": np.int64([1, 0, 2, 1]), "v": np.float32(2)}
    check_both([contrib("Pad", ["x", "p", "v"], "y", mode=mode)], {"x": X}, ["y"], weights)


def test_triangles_and_slices_at_tuples():
    nodes = [
        contrib("Trilu", ["x", "k"], "y", upper=0),
        contrib("GatherND", ["y", "i"], "z"),
    ]
    weights = {"k": np.int64(-1), "i": np.int64([[2], [1]])}
    check_both(nodes, {"x": X}, ["y", "z"], weights)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_inverses(size):
    x = RNG.standard_normal((2, size, size)).astype(np.float32) + 4 * np.eye(size, dtype="float32")
    check_both([contrib("Inverse", ["x"], "y")], {"x": x}, ["y"])


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
def test_distances(metric):
    other = RNG.standard_normal((5, 4)).astype(np.float32)
    node = contrib("CDist", ["x", "b"], "y", metric=metric)
    check_both([node], {"x": X, "b": other}, ["y"], tolerance=1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(2, 4), (1, 3)])
def test_boxes_cut_out_of_images(mode, size):
    images = RNG.standard_normal((2, 3, 7, 8)).astype(np.float32)
    boxes = np.float32([[0.1, 0.2, 0.6, 0.9], [0, 0, 1, 1], [0.5, 0.3, 1.2, 0.8]])
    inputs = {"x": images, "b": boxes, "i": np.int32([0, 1, 1])}
    node = contrib("CropAndResize", ["x", "b", "i", "s"], "y", mode=mode, extrapolation_value=1.5)
    check_both([node], inputs, ["y"], {"s": np.int32(size)})


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_positions_of_a_grid(mode, align_corners):
    images = RNG.standard_normal((1, 2, 4, 5)).astype(np.float32)
    grid = RNG.uniform(-1.2, 1.2, (1, 3, 2, 2)).astype(np.float32)
    node = contrib("GridSample", ["x", "g"], "y", mode=mode, align_corners=align_corners)
    check_both([node], {"x": images, "g": grid}, ["y"])
