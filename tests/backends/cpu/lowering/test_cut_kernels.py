"""Taps that meet nothing but padding are no part of the kernel any longer."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.cut_kernels import cut_kernels
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order


def kernels(function):
    calls = [e for e in post_order(function.body) if isinstance(e, relay.Call)]
    return [c.args[1].array.shape[2:] for c in calls if c.op.name.startswith("nn.conv")]


@pytest.mark.parametrize(
    ("size", "window", "strides", "padding", "dilation", "left"),
    [
        ((9, 1), (3, 3), (1, 1), (1, 1), (1, 1), (3, 1)),
        ((1, 1), (5, 3), (1, 1), (2, 1), (1, 1), (1, 1)),
        ((7, 7), (3, 3), (1, 1), (12, 12), (12, 12), (1, 1)),
        ((7, 7), (3, 3), (1, 1), (6, 6), (6, 6), (3, 3)),
        ((2, 3), (7, 7), (2, 2), (3, 3), (1, 1), (2, 5)),
        ((3, 3), (3, 3), (3, 2), (1, 1), (2, 1), (3, 3)),
        ((4, 5), (3, 3), (5, 5), (1, 1), (1, 1), (2, 2)),
        ((4, 5), (3, 3), (9, 9), (1, 1), (2, 2), (3, 3)),
        ((5, 5), (3, 3), (1, 1), (0, 0), (1, 1), (3, 3)),
        ((1, 4), (3, 2), (1, 1), (4, 0), (1, 1), (3, 2)),
        ((3,), (5,), (1,), (4,), (2,), (3,)),
        ((1,), (3,), (9,), (4,), (1,), (1,)),
        ((2, 1, 5), (3, 3, 3), (1, 1, 1), (2, 1, 1), (2, 1, 1), (1, 1, 3)),
    ],
)  # fmt: skip
def test_what_is_left(size, window, strides, padding, dilation, left):
    rng = np.random.default_rng(0)
    make = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}[len(size)]
    x = relay.var("x", shape=(2, 6, *size))
    weight = rng.standard_normal((4, 3, *window)).astype("float32")
    before = make(
        x, relay.const(weight), strides=strides, padding=padding, dilation=dilation, groups=2,
        kernel_size=window,
    ).as_function()  # fmt: skip
    after = cut_kernels(before)
    data = rng.standard_normal((2, 6, *size)).astype("float32")
    np.testing.assert_allclose(
        interpret(after, data), interpret(before, data), rtol=1e-5, atol=1e-5
    )
    assert kernels(after) == [left]
    assert (after is before) == (left == window)


def test_other_layouts():
    rng = np.random.default_rng(0)
    x = relay.var("x", shape=(1, 9, 1, 6))
    weight = rng.standard_normal((3, 3, 6, 4)).astype("float32")
    before = relay.nn.conv2d(
        x, relay.const(weight), padding=1, data_layout="NHWC", kernel_layout="HWIO"
    ).as_function()
    after = cut_kernels(before)
    data = rng.standard_normal((1, 9, 1, 6)).astype("float32")
    np.testing.assert_allclose(
        interpret(after, data), interpret(before, data), rtol=1e-5, atol=1e-5
    )
    (call,) = (e for e in post_order(after.body) if isinstance(e, relay.Call))
    assert call.args[1].array.shape == (3, 1, 6, 4)


def test_a_kernel_that_is_no_constant_stays():
    x, w = relay.var("x", shape=(1, 3, 9, 1)), relay.var("w", shape=(4, 3, 3, 3))
    function = relay.nn.conv2d(x, w, padding=1).as_function()
    assert cut_kernels(function) is function
