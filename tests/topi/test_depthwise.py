"""The gradients of depthwise convolutions against PyTorch's."""

import numpy as np
import pytest
import torch
from tests.topi.checks import check, given

from slipway import te, topi
from slipway.errors import InvalidShapeError


@pytest.mark.parametrize(
    ("data", "multiplier", "window", "stride", "padding"),
    [((2, 7, 9, 3), 2, 3, 2, 1), ((1, 6, 5, 4), 1, 3, 1, 0), ((1, 11, 8, 2), 3, 5, 3, 2)],
)
def test_gradients_by_data_and_by_kernel(data, multiplier, window, stride, padding):
    n, h, w, c = data
    x = torch.tensor(given(n, c, h, w), requires_grad=True)
    kernel = torch.tensor(given(c * multiplier, 1, window, window), requires_grad=True)
    made = torch.nn.functional.conv2d(x, kernel, stride=stride, padding=padding, groups=c)
    grad = torch.tensor(given(*made.shape))
    made.backward(grad)
    last = lambda t: np.ascontiguousarray(t.detach().numpy().transpose(0, 2, 3, 1))  # noqa: E731

    def of_kernel(t):
        by_channel = t.detach().numpy().reshape(c, multiplier, window, window)
        return np.ascontiguousarray(by_channel.transpose(2, 3, 0, 1))

    shape = last(grad).shape
    check(
        lambda k, g: topi.nn.depthwise_conv2d_backward_input_nhwc(
            k, g, shape, data, [stride, stride], [padding, padding]
        ),
        lambda k, g: last(x.grad), of_kernel(kernel), last(grad), rtol=1e-4,
        schedule=topi.generic.schedule_depthwise_conv2d_backward_input_nhwc,
    )  # fmt: skip
    check(
        lambda d, g: topi.nn.depthwise_conv2d_backward_weight_nhwc(
            d, g, shape, (window, window, c, multiplier), stride, padding
        ),
        lambda d, g: of_kernel(kernel.grad), last(x), last(grad), rtol=1e-4,
        schedule=topi.generic.schedule_depthwise_conv2d_backward_weight_nhwc,
    )  # fmt: skip


def test_a_gradient_of_another_shape_is_refused():
    kernel, grad = te.placeholder((3, 3, 2, 1)), te.placeholder((1, 4, 4, 2))
    with pytest.raises(InvalidShapeError, match=r"gradient of the result has shape .*not \(1, 5"):
        topi.nn.depthwise_conv2d_backward_input_nhwc(kernel, grad, (1, 5, 5, 2), (1, 7, 7, 2), 1, 0)
