"""Buffers whose elements are vectors of any number of lanes, which lie without gaps."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.codegen.llvm.address import in_steps

N = 21


def test_three_lanes_take_the_bytes_of_three():
    assert in_steps("<3 x float>") == "[3 x float]"
    assert in_steps("float") == "float"


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    "dtype", ["float32x3", "int8x3", "uint8x5", "float16x6", "int32x4", "float64x3", "int16x7"]
)
def test_elements_are_found_where_arrays_have_them(target, dtype):
    x = te.placeholder((N,), name="x", dtype=dtype)
    moved = te.compute((N - 1,), lambda i: x[i + 1] + tvm.tir.const(1, dtype), name="moved")
    out = te.compute((N - 2,), lambda i: moved[i] + moved[i + 1], name="out")
    function = tvm.build(te.create_schedule(out.op), [x, out], target)
    scalar, _, lanes = dtype.partition("x")
    values = np.random.default_rng(0).integers(0, 50, (N, int(lanes))).astype(scalar)
    given = tvm.nd.empty((N,), dtype).copyfrom(values)
    found = tvm.nd.empty((N - 2,), dtype)
    function(given, found)
    np.testing.assert_array_equal(found.numpy(), values[1:-1] + values[2:] + 2)
