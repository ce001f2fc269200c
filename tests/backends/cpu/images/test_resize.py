"""Resizing along the innermost axis against the reference; which resizing gets which schedule."""

import pytest
from kernel_check import TARGETS, run, var

from slipway import relay
from slipway.backends.primitive import schedule_primitive
from slipway.target import Target


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("method", ["linear", "cubic"])
@pytest.mark.parametrize(
    ("shape", "size", "mode"),
    [
        ((2, 3, 20, 37), (0, 0, 40, 74), "half_pixel"),
        ((1, 3, 17, 24), (0, 0, 33, 50), "align_corners"),
        ((19, 40), (7, 16), "asymmetric"),
        ((2, 5, 37, 19), (0, 0, 111, 9), "half_pixel"),
        ((1, 3, 20, 5), (0, 0, 9, 7), "half_pixel"),
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
        ((1, 3, 20, 7), (0, 0, 40, 14), "nearest_neighbor"),
        ((2, 7), (0, 5), "nearest_neighbor"),
        ((1, 3, 20, 37), (0, 0, 0, 74), "linear"),
        ((1, 3, 20, 3), (0, 0, 9, 7), "linear"),
    ],
)
def test_others_are_elementwise(shape, size, method):
    body = relay.image.resize(var("x", *shape), size, method=method)
    assert run(body, "llvm") == "loops.sums"


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize(
    ("shape", "size", "mode"),
    [
        ((2, 3, 28, 28), (0, 0, 13, 13), "half_pixel"),
        ((1, 4, 17, 24), (0, 0, 33, 48), "align_corners"),
        ((1, 2, 9, 12, 16), (0, 0, 7, 18, 0), "asymmetric"),
        ((3, 19, 40), (0, 7, 3), "asymmetric"),
        ((2, 5, 9, 11), (0, 0, 27, 16), "half_pixel"),
        ((1, 2, 5, 7, 20), (0, 0, 10, 8, 13), "half_pixel"),
    ],
)
def test_nearest_places_are_found_once(target, rounding, shape, size, mode):
    body = relay.image.resize(
        var("x", *shape), size, method="nearest_neighbor", coordinate_transformation_mode=mode,
        rounding_method=rounding,
    )  # fmt: skip
    assert run(relay.nn.relu(body), target) == "resize.nearest"


@pytest.mark.parametrize("target", [*TARGETS, "c"])
@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((2, 3, 9, 33), (0, 0, 18, 66)), ((1, 2, 5, 23), (0, 0, 15, 69)),
        ((1, 3, 4, 40), (0, 0, 4, 160)), ((5, 80), (0, 160)), ((1, 2, 3, 4, 65), (0, 0, 6, 4, 130)),
        ((1, 2, 7, 21), (0, 0, 7, 147)), ((3, 11), (0, 88)),
    ],
)  # fmt: skip
def test_rows_of_whole_times(target, shape, size):
    body = relay.image.resize(
        var("x", *shape), size, method="nearest_neighbor",
        coordinate_transformation_mode="half_pixel",
    )  # fmt: skip
    run(relay.nn.relu(body), target)


@pytest.mark.parametrize(
    ("shape", "size", "cpu", "name"),
    [
        ((1, 64, 20, 33), (0, 0, 40, 66), "znver4", "resize.repeated"),
        ((1, 64, 20, 20), (0, 0, 60, 60), "znver4", "loops.sums"),
        ((1, 64, 20, 20), (0, 0, 60, 60), "znver3", "resize.repeated"),
        ((1, 64, 20, 20), (0, 0, 0, 400), "znver3", "loops.sums"),
        ((1, 64, 20, 33), (0, 0, 40, 70), "znver4", "resize.nearest"),
    ],
)
def test_longer_rows_than_are_one_vector_are_read_in_vectors(shape, size, cpu, name):
    x = var("x", *shape)
    body = relay.image.resize(
        x, size, method="nearest_neighbor", coordinate_transformation_mode="half_pixel"
    )
    function = relay.Function([x], body).with_attr("Primitive", 1)
    assert schedule_primitive(function, Target(f"llvm -mcpu={cpu}")).implementation == name
