"""Reductions into shared memory that stand inside loops over threads."""

import numpy as np
import pytest
import run_kernels
from run_kernels import axis

from slipway import te

ROWS, LENGTH, LANES = 7, 45, 16


def quotients(place, bound, by_rows=False):
    """Rows divided by their sums, which all threads of a block read: one for each of its rows."""
    a = te.placeholder((ROWS, LENGTH), name="A")
    k = te.reduce_axis((0, LENGTH), name="k")
    total = te.compute((ROWS,), lambda i: te.sum(a[i, k], axis=k), name="total")
    out = te.compute((ROWS, LENGTH), lambda i, j: a[i, j] / total[i], name="out")
    s = te.create_schedule(out.op)
    i, j = s[out].op.axis
    block, row = s[out].split(i, factor=2)
    step, lane = s[out].split(j, factor=LANES)
    s[out].reorder(block, row, lane, step)
    y, x = axis("threadIdx.y"), axis("threadIdx.x")
    for loop, to in ((block, axis("blockIdx.x")), (row, y), (lane, x)):
        s[out].bind(loop, to)
    s[total].set_scope("shared")
    s[total].compute_at(s[out], {"block": block, "row": row, "lane": lane, "step": step}[place])
    if bound:
        _, inner = s[total].split(s[total].op.reduce_axis[0], factor=LANES)
        s[total].bind(inner, x)
    if by_rows:
        _, inner = s[total].split(s[total].op.axis[0], factor=2)
        s[total].bind(inner, y)
    return s, [a, out]


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("place", ["block", "row", "lane"])
def test_each_sum_is_made_once_wherever_it_stands(any_device, place, bound, by_rows):
    """Not once for each thread that comes to it: all of them would add to one element."""
    x = np.abs(run_kernels.random(ROWS, LENGTH)) + 1
    function = run_kernels.built(*quotients(place, bound, by_rows), name="quotients")
    found = run_kernels.run(function, any_device, (x,), x.shape)
    np.testing.assert_allclose(found, x / x.sum(1, keepdims=True), rtol=1e-5)


def test_a_sum_made_at_each_step_is_made_once_there(any_device):
    x = np.abs(run_kernels.random(ROWS, LENGTH)) + 1
    function = run_kernels.built(*quotients("step", True), name="quotients")
    found = run_kernels.run(function, any_device, (x,), x.shape)
    np.testing.assert_allclose(found, x / x.sum(1, keepdims=True), rtol=1e-5)
