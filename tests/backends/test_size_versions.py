"""Kernels of open sizes in versions: which there are, that all of them compute the same."""

import numpy as np
import pytest

from slipway import relay
from slipway.backends.backend import compile_target
from slipway.backends.size_versions import in_versions, size_versions
from slipway.compiler.kernels import lower_kernel
from slipway.ir.interpreter.interpret import run as run_loops
from slipway.ir.stmt import IfThenElse
from slipway.ir.visit import walk
from slipway.relay.dims import Dim
from slipway.relay.interpret import interpret
from slipway.transform.graph.fuse_ops import fuse_ops
from slipway.transform.graph.infer_type import infer_type

TARGET = compile_target("llvm -mcpu=x86-64-v3", None)


def product(n):
    """One kernel: rows by packed weights, with an epilogue."""
    x, w = relay.var("x", shape=(n, 6)), relay.var("w", shape=(2, 6, 8))
    y = relay.nn.relu(relay.op.nn.contrib_dense_pack(x, w))
    return kernel(y)


def kernel(expr):
    function = fuse_ops(infer_type(expr.as_function()))
    return function.body.op


def ranges(function, target=TARGET):
    found = size_versions(function, target)
    return None if found is None else [(v.low, v.high) for v in found[1]]


def test_small_ranges_have_a_version_for_each_tile():
    assert ranges(product(Dim("n", 1, 8))) == [(1, 1), (2, 2), (3, 3), (4, 5), (6, 7), (8, 8)]


def test_parts_with_the_same_tile_are_one():
    found = ranges(product(Dim("n", 1, 500)))
    assert found[0] == (1, 1)
    assert found[-1][1] == 500
    assert len(found) <= 7


def test_what_is_scheduled_alike_for_all_sizes_has_one_version():
    x = relay.var("x", shape=(Dim("n", 1, 8), 6))
    assert ranges(kernel(relay.nn.relu(x + x))) is None
    assert ranges(product(4)) is None
    image = relay.var("x", shape=(Dim("n", 1, 8), 3, 8, 8))
    taps = relay.const(np.ones((4, 3, 3, 3), np.float32))
    assert ranges(kernel(relay.nn.conv2d(image, taps))) is None


@pytest.mark.parametrize("high", [8, 40])
def test_every_version_computes_what_the_operator_does(high):
    function = product(Dim("n", 1, high))
    loops = lower_kernel("f", function, TARGET)
    rng = np.random.default_rng(2)
    w = rng.standard_normal((2, 6, 8)).astype(np.float32)
    for size in {*range(1, 9), 13, high} if high > 8 else range(1, 9):
        x = rng.standard_normal((size, 6)).astype(np.float32)
        out = np.full((size, 16), np.nan, np.float32)
        run_loops(loops, x, w, out)
        np.testing.assert_allclose(out, interpret(function, x, w), rtol=1e-5, atol=1e-6)


def test_a_kernel_on_a_device_with_threads_stays_one():
    function = product(Dim("n", 1, 8))
    gpu = compile_target("opencl", None)
    assert size_versions(function, TARGET) is not None
    made = in_versions(function, gpu, lambda f: lower_kernel("f", f, TARGET))
    assert isinstance(made.body, IfThenElse)  # what `lowered` gave, and nothing around it
    assert sum(isinstance(n, IfThenElse) for n in walk(made.body)) >= 5
