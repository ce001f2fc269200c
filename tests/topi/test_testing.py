"""The NumPy references: against explicit sums, and the expressions of the same name."""

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


def test_one_explicit_sum():
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


def test_windows_against_torch():
    """Convolutions along one and three axes, transposed ones, and pools."""
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    F, t = torch.nn.functional, torch.from_numpy

    def same(made, expected):
        np.testing.assert_allclose(made, expected.numpy(), rtol=1e-4, atol=1e-5)

    x, w = given(2, 4, 9), given(6, 2, 3)
    same(testing.group_conv1d_ncw_python(x, w, 2, 1, 2, 2),
         F.conv1d(t(x), t(w), stride=2, padding=1, dilation=2, groups=2))  # fmt: skip
    x, w = given(1, 3, 4, 5, 6), given(2, 3, 2, 3, 3)
    expected = F.conv3d(t(x), t(w), stride=(1, 2, 1), padding=1)
    same(testing.conv3d_ncdhw_python(x, w, (1, 2, 1), 1), expected)
    last = testing.conv3d_ndhwc_python(
        np.moveaxis(x, 1, 4), w.transpose(2, 3, 4, 1, 0), (1, 2, 1), 1
    )
    same(np.moveaxis(last, 4, 1), expected)
    x, w = given(1, 4, 5, 6), given(4, 3, 3, 2)
    expected = F.conv_transpose2d(t(x), t(w), stride=2, padding=1, output_padding=1, groups=2)
    same(testing.conv2d_transpose_nchw_python(x, w, 2, 1, (1, 1), 2), expected)
    same(testing.conv1d_transpose_ncw_python(x[:, :, 0], w[:, :, 0], 2, 1, 1),
         F.conv_transpose1d(t(x[:, :, 0]), t(w[:, :, 0]), stride=2, padding=1,
                            output_padding=1))  # fmt: skip
    same(testing.poolnd_python(x, (3, 2), (2, 1), (1, 1), (1, 0), (1, 0), "avg", False),
         F.avg_pool2d(t(x), (3, 2), (2, 1), (1, 0), count_include_pad=False))  # fmt: skip
    same(testing.adaptive_pool(x, (2, 3), "max", "NCHW"), F.adaptive_max_pool2d(t(x), (2, 3)))


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_gradients_of_pools_against_torch(kind, counted):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    x = torch.from_numpy(given(1, 2, 6, 7)).requires_grad_()
    if kind == "avg":
        y = torch.nn.functional.avg_pool2d(x, 3, 2, 1, count_include_pad=counted)
    else:
        y = torch.nn.functional.max_pool2d(x, 3, 2, 1)
    grad = given(*y.shape)
    y.backward(torch.from_numpy(grad))
    made = testing.pool_grad_nchw(
        x.detach().numpy(), grad, (3, 3), (2, 2), (1, 1, 1, 1), kind, False, counted
    )
    np.testing.assert_allclose(made, x.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_selections():
    data = np.arange(20.0, dtype="float32").reshape(4, 5)
    np.testing.assert_array_equal(
        testing.matrix_set_diag(data, np.array([9.0, 8, 7, 6], "float32"), 1)[[0, 3], [1, 4]],
        [9, 6],
    )
    np.testing.assert_array_equal(testing.strided_slice_python(data, [1], [3], None), data[1:3])
    np.testing.assert_array_equal(
        testing.strided_slice_python(data, [1, 2], [2, -1], [7, 7], "size"), data[1:3, 2:]
    )
    np.testing.assert_array_equal(
        testing.strided_slice_python(data, [4], [0], [-2], axes=[1]), data[:, 4:0:-2]
    )
    np.testing.assert_array_equal(
        testing.one_hot(np.array([[1, 0]]), 5, 2, 3, 1, "int32"), [[[2, 5], [5, 2], [2, 2]]]
    )
    np.testing.assert_array_equal(
        testing.sequence_mask(data, np.array([1, 2, 0, 4, 1]), -1, 0)[:, 1], [1, 6, -1, -1]
    )
    loss = testing.nll_loss(-data[:3], np.array([0, -100, 2]), np.array([1.0, 1, 3, 1, 1]))
    assert loss == pytest.approx((0 * 1 + 12 * 3) / 4)


def test_a_comparison_notices_a_difference():
    data = given(3, 4)
    args = [data], np.tanh(data), "llvm", None, topi.tanh
    testing.compare_numpy_tvm(*args, testing.get_injective_schedule("llvm"))
    with pytest.raises(AssertionError):
        testing.compare_numpy_tvm(*args[:4], topi.exp, testing.get_injective_schedule("llvm"))


def test_a_window_of_padding_alone_is_zero():
    x = np.ones((1, 2, 4), "float32")
    for kind in ("max", "avg"):
        made = testing.poolnd_python(x, [2], [2], [1], [0], [3], kind, False)
        np.testing.assert_array_equal(made, [[[1, 1, 0]] * 2])


def test_correlation_of_an_image_with_itself():
    x = np.arange(1 * 2 * 5 * 5, dtype="float32").reshape(1, 2, 5, 5)
    made = testing.correlation_nchw_python(x, x, 1, 1, 1, 1, 1, True)
    assert made.shape == (1, 9, 5, 5)
    np.testing.assert_allclose(made[:, 4], (x * x).mean(1), rtol=1e-5)
    moved = (x[:, :, :, :-1] * x[:, :, :, 1:]).mean(1)
    np.testing.assert_allclose(made[:, 5, :, :-1], moved, rtol=1e-5)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    ("before", "after"), [((2, 1), (0, 3)), ((0, 0), (0, 0)), ((0, 3), (5, 0))]
)
def test_pools_over_one_two_and_three_axes(kind, ceil_mode, before, after):
    """Windows that begin in the padding after the data count, as classic TVM has it."""
    for counted in (True, False):
        for pool, shape, layout in (
            (topi.nn.pool1d, (1, 2, 11), "NCW"),
            (topi.nn.pool2d, (1, 11, 10, 2), "NHWC"),
            (topi.nn.pool3d, (1, 2, 5, 6, 7), "NCDHW"),
        ):
            axes = len(shape) - 2
            first, last = (before * 2)[:axes], (after * 2)[:axes]
            check(
                lambda a, pool=pool, n=axes, edges=(*first, *last), layout=layout, c=counted: (
                    topi.maximum(
                        pool(a, [3] * n, [2] * n, [1] * n, edges, kind, ceil_mode, layout, c), 0.0
                    )
                ),
                lambda a, n=axes, f=first, e=last, layout=layout, c=counted: np.maximum(
                    testing.poolnd_python(a, [3] * n, [2] * n, [1] * n, f, e, kind, c, ceil_mode,
                                          layout=layout), 0),
                np.abs(given(*shape)), schedule=topi.generic.schedule_pool, rtol=1e-4,
            )  # fmt: skip
