"""Pools of large windows of volumes, by frames first: the same numbers."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.cpu.lowering.deep_pools import deep_pools
from slipway.relay.interpret import interpret
from slipway.relay.visit import post_order


def pools(function):
    calls = [e for e in post_order(function.body) if isinstance(e, relay.Call)]
    return [c.attrs.pool_size for c in calls if c.op.name == "nn.max_pool3d"]


@pytest.mark.parametrize(
    ("window", "strides", "padding", "dilation", "ceil_mode"),
    [
        ((7, 7, 7), (2, 2, 2), (3, 3, 3), 1, False),
        ((5, 5, 5), (1, 1, 1), (2, 2, 2), 1, False),
        ((5, 6, 7), (2, 1, 2), (2, 1, 0, 1, 3, 2), 1, True),
        ((3, 7, 5), (1, 1, 1), (2, 4, 3), (2, 1, 2), False),
        ((5, 5, 5), (3, 2, 2), (0, 0, 0), 1, True),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_large_windows_are_two_pools(window, strides, padding, dilation, ceil_mode, dtype):
    x = relay.var("x", shape=(2, 3, 11, 13, 12), dtype=dtype)
    body = relay.nn.max_pool3d(x, window, strides, dilation, padding=padding, ceil_mode=ceil_mode)
    before = body.as_function()
    after = deep_pools(before)
    assert pools(after) == [(window[0], 1, 1), (1, *window[1:])]
    data = (np.random.default_rng(0).standard_normal((2, 3, 11, 13, 12)) * 9).astype(dtype)
    np.testing.assert_array_equal(interpret(after, data), interpret(before, data))


@pytest.mark.parametrize(
    ("window", "strides"),
    [((3, 3, 3), (2, 2, 2)), ((2, 2, 2), (2, 2, 2)), ((1, 7, 7), (1, 1, 1)),
     ((7, 1, 1), (1, 1, 1)), ((3, 3, 3), (1, 1, 1))],
)  # fmt: skip
def test_small_windows_stay_whole(window, strides):
    x = relay.var("x", shape=(1, 3, 11, 13, 12))
    function = relay.Function([x], relay.nn.max_pool3d(x, window, strides))
    assert pools(deep_pools(function)) == [window]


def test_averages_stay_whole():
    x = relay.var("x", shape=(1, 3, 11, 13, 12))
    function = relay.Function([x], relay.nn.avg_pool3d(x, (7, 7, 7), (1, 1, 1)))
    assert deep_pools(function) is function
