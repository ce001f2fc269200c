"""Interpolation of blocked images: rows first, then along them; the numbers are the reference's."""

import pytest
from kernel_check import TARGETS, run, var

from slipway import relay


@pytest.mark.parametrize(
    ("target", "method", "mode"),
    [(TARGETS[0], "linear", "half_pixel"), (TARGETS[1], "cubic", "align_corners")],
)
@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((1, 3, 5, 6, 16), (10, 12)), ((2, 4, 9, 7, 32), (4, 15)), ((1, 2, 1, 3, 16), (5, 1)),
        ((1, 2, 3, 4, 5, 16), (6, 3, 11)),
    ],
)  # fmt: skip
def test_rows_are_interpolated_first(target, method, mode, shape, size):
    resized = relay.image.resize(
        var("x", *shape), (0, 0, *size, 0), method=method, coordinate_transformation_mode=mode
    )
    assert run(relay.nn.relu(resized), target) == "resize.blocked"


def test_given_scales_go_with_their_axes():
    scales = (1.0, 1.0, 2.5, 1.5, 1.0)
    resized = relay.image.resize(var("x", 1, 2, 6, 8, 16), (0, 0, 15, 12, 0), scales)
    assert run(resized, "llvm") == "resize.blocked"


def test_one_axis_alone_or_part_of_a_vector_is_left_to_others():
    one = relay.image.resize(var("x", 1, 2, 6, 8, 16), (0, 0, 6, 16, 0))
    assert run(one, "llvm") != "resize.blocked"
    part = relay.image.resize(var("x", 1, 2, 6, 8, 3), (0, 0, 12, 16, 0))
    assert run(part, "llvm") != "resize.blocked"
