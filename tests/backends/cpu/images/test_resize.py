"""Resizing along the innermost axis against the reference; which resizing gets which schedule."""

import pytest
from kernel_check import TARGETS, run, var

from slipway import relay


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("method", ["linear", "cubic"])
@pytest.mark.parametrize(
    ("shape", "size", "mode"),
    [
        ((2, 3, 20, 37), (0, 0, 40, 74), "half_pixel"),
        ((1, 3, 17, 24), (0, 0, 33, 50), "align_corners"),
        ((19, 40), (7, 16), "asymmetric"),
    ],
)
def test_both_of_the_last_axes(target, method, shape, size, mode):
    body = relay.image.resize(
        var("x", *shape), size, method=method, coordinate_transformation_mode=mode
    )
    assert run(body, target) == "resize.in_turn"


@pytest.mark.parametrize(
    ("shape", "size", "method"),
    [
        ((1, 3, 20, 37), (0, 0, 9, 21), "nearest_neighbor"),
        ((1, 3, 20, 37), (0, 0, 0, 74), "linear"),
        ((1, 3, 20, 5), (0, 0, 9, 7), "linear"),
    ],
)
def test_others_are_elementwise(shape, size, method):
    body = relay.image.resize(var("x", *shape), size, method=method)
    assert run(body, "llvm") == "loops.sums"
