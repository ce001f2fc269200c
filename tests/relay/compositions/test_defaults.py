"""What operators do without their options, as the releases of classic TVM defined it."""

import numpy as np
import pytest

from slipway import relay
from slipway.relay.interpret import interpret

X = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")


def run(build, x=X):
    return interpret(build(relay.var("x", shape=x.shape)).as_function(), x)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_sums_go_over_all_elements(name):
    make, want = getattr(relay, name), getattr(np, name)
    np.testing.assert_allclose(run(lambda x: make(x)), want(X), rtol=1e-5)
    np.testing.assert_allclose(run(lambda x: make(x, None)), want(X), rtol=1e-5)
    np.testing.assert_allclose(run(lambda x: make(x, 0)), want(X, 0), rtol=1e-5)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_are_int32(name):
    found = run(lambda x: getattr(relay, name)(x, 1))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, getattr(np, name)(X, 1))


def nearest(mode, extent, size):
    at = np.arange(size)
    if mode == "align_corners":
        return np.floor(at * (extent - 1) / (size - 1) + 0.5).astype(int)
    shift = 0.5 if mode == "half_pixel" else 0.0
    return np.floor((at + shift) * extent / size - shift).clip(0, extent - 1).astype(int)


@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("size", [(7, 9), (2, 3)])
def test_the_nearest_pixel_is_the_one_before_but_for_aligned_corners(mode, size):
    x = np.arange(4 * 5, dtype="float32").reshape(1, 1, 4, 5)
    found = run(
        lambda v: relay.image.resize2d(
            v, size, method="nearest_neighbor", coordinate_transformation_mode=mode
        ),
        x,
    )
    want = x[:, :, nearest(mode, 4, size[0])][..., nearest(mode, 5, size[1])]
    np.testing.assert_array_equal(found, want)


def test_the_cubic_parameter_is_minus_a_half():
    x = np.array([[[[0, 0, 1, 0, 0]]]], "float32")
    found = run(lambda v: relay.image.resize2d(v, (1, 10), method="cubic"), x)[0, 0, 0]
    # Keys' kernel at distances 0.25, 0.75, 1.25 and 1.75 of the one pixel that is not zero.
    a = -0.5
    d = np.array([1.75, 1.25, 0.75, 0.25, 0.25, 0.75, 1.25, 1.75])
    inner, far = (a + 2) * d**3 - (a + 3) * d**2 + 1, a * (d**3 - 5 * d**2 + 8 * d - 4)
    np.testing.assert_allclose(found[1:9], np.where(d <= 1, inner, far), atol=1e-6)
