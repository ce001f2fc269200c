"""Largest values of windows, rows first, against the reference; which pooling is done so."""

import pytest
from kernel_check import TARGETS, run, var

from slipway import relay


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("window", "stride", "padding", "dilation", "ceil"),
    [
        (3, 2, 1, 1, False), ((2, 3), (3, 2), (1, 0, 0, 2), 1, False), (3, 2, 0, 1, True),
        (2, 2, 0, 1, False), (3, 1, 2, 2, False),
    ],
)  # fmt: skip
def test_windows_of_images(target, window, stride, padding, dilation, ceil):
    x = var("x", 2, 3, 17, 75)
    pool = relay.nn.max_pool2d(x, window, stride, dilation, padding, ceil_mode=ceil)
    assert run(pool, target) == "pool.rows"
    run(relay.nn.relu(pool), target)


@pytest.mark.parametrize(("width", "stride"), [(28, 2), (27, 3), (19, 2)])
def test_rows_of_half_a_vector(width, stride):
    x = var("x", 2, 3, 9, width)
    assert run(relay.nn.max_pool2d(x, 3, stride, padding=1), "llvm") == "pool.rows"
    assert run(relay.nn.avg_pool2d(x, 3, stride, padding=1), "llvm") == "pool.rows"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("width", "window", "stride"), [(3, 3, 1), (7, 5, 2), (7, 3, 3), (13, 5, 1), (5, 2, 2)]
)
def test_short_rows_that_windows_fit_in(target, width, window, stride):
    x = var("x", 2, 3, 9, width)
    for pool in (relay.nn.max_pool2d, relay.nn.avg_pool2d):
        body = pool(x, window, stride, padding=window // 2)
        assert run(relay.nn.relu(body), target) == "pool.rows"


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize(
    ("window", "stride", "padding", "dilation", "ceil"),
    [(3, 1, 1, 1, False), ((2, 3), (3, 2), (1, 0, 0, 2), 1, True), (3, 1, 2, 2, False)],
)  # fmt: skip
def test_averages_of_images(window, stride, padding, dilation, ceil, counted):
    pool = relay.nn.avg_pool2d(
        var("x", 2, 3, 17, 75), window, stride, dilation, padding,
        ceil_mode=ceil, count_include_pad=counted,
    )  # fmt: skip
    assert run(relay.nn.relu(pool), "llvm") == "pool.rows"


@pytest.mark.parametrize("target", TARGETS)
def test_windows_of_volumes(target):
    pool = relay.nn.max_pool3d(var("x", 1, 2, 6, 7, 40), (2, 3, 2), 2, padding=(0, 1, 1, 0, 1, 1))
    assert run(pool, target) == "pool.rows"


def test_short_rows_and_flat_windows_are_not():
    x = var("x", 1, 3, 40, 40)
    assert run(relay.nn.max_pool2d(var("x", 1, 3, 3, 3), 3, 2), "llvm") == "pool.whole"
    assert run(relay.nn.max_pool2d(var("x", 1, 3, 5, 3), 5, 1, padding=2), "llvm") == "pool.whole"
    assert run(relay.nn.max_pool2d(x, (1, 3)), "llvm") == "pool.whole"
    assert run(relay.nn.max_pool2d(x, (3, 1)), "llvm") == "pool.whole"
