"""The NumPy references: against sums written out, and the expressions of the same name."""

import numpy as np
import pytest
from tests.topi.checks import check, given

from slipway import topi
from slipway.topi import testing


@pytest.mark.parametrize(("stride", "padding"), [(1, 1), ((2, 1), "SAME"), (2, (0, 1, 2, 0))])
def test_convolutions(stride, padding):
    for layout, reference, kernel in [
        ("nchw", testing.conv2d_nchw_python, (4, 3, 3, 2)),
        ("nhwc", testing.conv2d_nhwc_python, (3, 2, 3, 4)),
        ("hwcn", testing.conv2d_hwcn_python, (3, 2, 3, 4)),
    ]:
        data = [{"n": 2, "c": 3, "h": 7, "w": 6}[c] for c in layout]
        expression = getattr(topi.nn, f"conv2d_{layout}")
        check(
            lambda a, b, f=expression: f(a, b, stride, padding, 1),
            lambda a, b, f=reference: f(a, b, stride, padding),
            given(*data),
            given(*kernel),
            rtol=1e-4,
        )
    for layout, data, kernel in [
        ("nchw", (1, 3, 6, 5), (3, 2, 3, 2)),
        ("nhwc", (1, 6, 5, 3), (3, 2, 3, 2)),
    ]:
        expression = getattr(topi.nn, f"depthwise_conv2d_{layout}")
        reference = getattr(testing, f"depthwise_conv2d_python_{layout}")
        check(
            lambda a, b, f=expression: f(a, b, stride, padding, 1),
            lambda a, b, f=reference: f(a, b, stride, padding),
            given(*data),
            given(*kernel),
            rtol=1e-4,
        )


def test_one_sum_written_out():
    x, w = given(1, 2, 3, 3), given(1, 2, 2, 2)
    got = testing.conv2d_nchw_python(x, w, 1, 0)
    np.testing.assert_allclose(got[0, 0, 1, 0], (x[0, :, 1:3, 0:2] * w[0]).sum(), rtol=1e-5)
    with pytest.raises(topi.InvalidShapeError, match="groups"):
        testing.conv2d_nchw_python(x, w, 1, 0, groups=2)


def test_softmax_and_dilate():
    x = given(3, 5) * 50
    np.testing.assert_allclose(testing.softmax_python(x).sum(1), np.ones(3), rtol=1e-5)
    check(topi.nn.softmax, testing.softmax_python, x, rtol=1e-4)
    check(lambda a: topi.nn.dilate(a, (1, 3)), lambda a: testing.dilate_python(a, (1, 3)), x)
