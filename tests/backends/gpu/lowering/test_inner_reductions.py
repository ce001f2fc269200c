"""Reductions into shared memory that stand inside loops over threads."""

import numpy as np
import pytest
import run_kernels
from run_kernels import axis

import slipway as tvm
from slipway import te, tir
from slipway.script import tir as T

ROWS, LENGTH, LANES = 7, 45, 16


def quotients(level, bound, by_rows=False):
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
    s[total].compute_at(s[out], {"block": block, "row": row, "lane": lane, "step": step}[level])
    if bound:
        _, inner = s[total].split(s[total].op.reduce_axis[0], factor=LANES)
        s[total].bind(inner, x)
    if by_rows:
        _, inner = s[total].split(s[total].op.axis[0], factor=2)
        s[total].bind(inner, y)
    return s, [a, out]


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("level", ["block", "row", "lane"])
def test_each_sum_is_made_once_wherever_it_stands(any_device, level, bound, by_rows):
    """Not once for each thread that comes to it: all of them would add to one element."""
    x = np.abs(run_kernels.random(ROWS, LENGTH)) + 1
    function = run_kernels.built(*quotients(level, bound, by_rows), name="quotients")
    found = run_kernels.run(function, any_device, (x,), x.shape)
    np.testing.assert_allclose(found, x / x.sum(1, keepdims=True), rtol=1e-5)


def test_a_sum_made_at_each_step_is_made_once_there(any_device):
    x = np.abs(run_kernels.random(ROWS, LENGTH)) + 1
    function = run_kernels.built(*quotients("step", True), name="quotients")
    found = run_kernels.run(function, any_device, (x,), x.shape)
    np.testing.assert_allclose(found, x / x.sum(1, keepdims=True), rtol=1e-5)


def reduced_by_lanes(func, device):
    """Return what a function of a block C computes, reduced over threads, and its data."""
    s = tir.Schedule(func)
    b, i, j = s.get_loops("C")
    _, lane = s.split(s.fuse(i, j), [None, 16])
    s.bind(lane, "threadIdx.x")
    s.bind(b, "blockIdx.x")
    target, simulator = run_kernels.current
    made = tvm.build(s.mod, target=target)
    if simulator is not None:
        simulator.learn(made.imported_modules[0])
    x = run_kernels.random(6, 10, 7)
    return run_kernels.run(made, device, (x,), (6,)), x


def test_a_block_adds_up_over_threads(any_device):
    @T.prim_func
    def squares(a: T.Buffer((6, 10, 7), "float32"), d: T.Buffer((6,), "float32")):
        for b, i, j in T.grid(6, 10, 7):
            with T.block("C"):
                vb, vi, vj = T.axis.remap("SRR", [b, i, j])
                with T.init():
                    d[vb] = T.float32(3)
                d[vb] = d[vb] + a[vb, vi, vj] * a[vb, vi, vj]

    found, x = reduced_by_lanes(squares, any_device)
    np.testing.assert_allclose(found, (x * x).sum((1, 2)) + 3, rtol=1e-5)


def test_a_block_finds_the_largest_over_threads(device):
    @T.prim_func
    def peaks(a: T.Buffer((6, 10, 7), "float32"), d: T.Buffer((6,), "float32")):
        for b, i, j in T.grid(6, 10, 7):
            with T.block("C"):
                vb, vi, vj = T.axis.remap("SRR", [b, i, j])
                with T.init():
                    d[vb] = T.float32(-1)
                d[vb] = T.max(d[vb], a[vb, vi, vj])

    found, x = reduced_by_lanes(peaks, device)
    np.testing.assert_array_equal(found, x.max((1, 2)))
