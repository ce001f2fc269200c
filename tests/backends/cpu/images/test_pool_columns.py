"""Largest values of windows with channels innermost, rows first: against the reference."""

import re

import numpy as np
import pytest
from kernel_check import TARGETS, run, var

from slipway import relay
from slipway.backends.primitive import schedule_primitive
from slipway.compiler.emit import build_module
from slipway.compiler.kernels import lower_kernel
from slipway.compiler.operator_module import OperatorModule
from slipway.relay.interpret import interpret
from slipway.target import Target


@pytest.mark.parametrize("target", [*TARGETS, "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64", "c"])
@pytest.mark.parametrize(
    ("window", "stride", "padding", "dilation", "ceil"),
    [
        (3, 2, 1, 1, False), ((2, 3), (3, 2), (1, 0, 0, 2), 1, False), (3, 2, 0, 1, True),
        (2, 2, 0, 1, False), (3, 1, 2, 2, False), ((2, 4), 5, (1, 3, 1, 3), 1, True),
    ],
)  # fmt: skip
def test_windows_of_images(target, window, stride, padding, dilation, ceil):
    for shape, layout in (((1, 2, 11, 19, 16), "NCHW16c"), ((2, 7, 23, 48), "NHWC")):
        options = {"layout": layout, "ceil_mode": ceil}
        pool = relay.nn.max_pool2d(var("x", *shape), window, stride, dilation, padding, **options)
        assert run(pool, target) == "pool.columns"
        run(relay.nn.relu(pool) * pool, target)  # an epilogue that reads it twice


@pytest.mark.parametrize("target", TARGETS)
def test_windows_of_volumes(target):
    x = var("x", 1, 6, 7, 13, 16)
    pool = relay.nn.max_pool3d(x, (2, 2, 3), 2, padding=(0, 1, 1, 0, 1, 1), layout="NDHWC")
    assert run(pool, target) == "pool.columns"


def test_large_and_flat_windows_are_not():
    x = var("x", 1, 20, 20, 16)
    for window in ((1, 3), (3, 1), (9, 9)):
        assert run(relay.nn.max_pool2d(x, window, layout="NHWC"), "llvm") == "pool.window"


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8"])
@pytest.mark.parametrize("target", ["llvm", "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64"])
def test_each_type_and_every_nan(dtype, target):
    x = relay.var("x", shape=(1, 9, 11, 64), dtype=dtype)
    body = relay.nn.max_pool2d(x, 3, 2, padding=1, layout="NHWC")
    function = body.as_function().with_attr("Primitive", 1)
    chosen = Target(target)
    assert schedule_primitive(function, chosen).implementation == "pool.columns"
    lowered = lower_kernel("kernel", function, chosen)
    given = np.random.default_rng(0).uniform(-99, 99, x.checked_type.shape).astype(dtype)
    if dtype.startswith("float"):
        for channel in range(60):  # one of the values that some windows share, and infinities
            given[0, channel % 9, channel % 11, channel] = np.nan
        given[..., 60], given[..., 61], given[0, 4, 4, 62] = -np.inf, np.inf, -np.inf
    wanted = interpret(function, given)
    found = np.empty(wanted.shape, dtype)
    OperatorModule(build_module({"kernel": lowered}, chosen))(given, found)
    np.testing.assert_array_equal(found, wanted)


def test_columns_are_shared_by_the_windows_of_a_run():
    """Of 3x3 and stride 1: two maxima for each column and each window, and no first value."""
    body = relay.nn.max_pool2d(var("x", 1, 30, 34, 16), 3, layout="NHWC")
    target = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -num-cores=1")
    lowered = lower_kernel("kernel", body.as_function().with_attr("Primitive", 1), target)
    text = build_module({"kernel": lowered}, target).get_source("asm")
    assert len(re.findall(r"\tfmax\t", text)) == 2 * 18 + 2 * 16
