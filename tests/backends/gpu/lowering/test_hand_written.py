"""Kernels written by hand: memory of a block that threads read at another index than they wrote."""

import numpy as np
import pytest
import run_kernels

import slipway as tvm
from slipway import te
from slipway.script import tir as T
from slipway.target import Target


@T.prim_func
def reversed_rows(a: T.Buffer((64,), "float32"), c: T.Buffer((64,), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        tile = T.alloc_buffer((32,), "float32", scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            tile[t] = a[b * 32 + t]
            c[b * 32 + t] = tile[31 - t]


@T.prim_func
def summed(a: T.Buffer((64,), "float32"), c: T.Buffer((64,), "float32")):
    """Sums of the elements up to each of a block's: in a loop of conditions, between two rows."""
    for b in T.thread_binding(2, thread="blockIdx.x"):
        tile = T.alloc_buffer((2, 32), "float32", scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            tile[0, t] = a[b * 32 + t]
            for k in range(5):
                if t >= (1 << k):
                    tile[(k + 1) % 2, t] = tile[k % 2, t] + tile[k % 2, t - (1 << k)]
                else:
                    tile[(k + 1) % 2, t] = tile[k % 2, t]
            c[b * 32 + t] = tile[1, t]


def _wanted(function, given):
    rows = given.reshape(2, 32)
    return (rows[:, ::-1] if function is reversed_rows else np.cumsum(rows, axis=1)).ravel()


@pytest.mark.parametrize("function", [reversed_rows, summed])
@pytest.mark.parametrize("kind", ["cuda", "opencl", "vulkan", "metal", "rocm", "webgpu"])
def test_what_another_thread_wrote_comes_behind_a_barrier(function, kind):
    given, out = run_kernels.random(64), np.zeros(64, "float32")
    tvm.testing.run_threads(function, None, [given, out], Target(kind, host="llvm"))
    np.testing.assert_allclose(out, _wanted(function, given), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", [reversed_rows, summed])
def test_on_devices(function, any_device):
    built = tvm.build(function, target=run_kernels.current[0])
    if run_kernels.current[1] is not None:
        run_kernels.current[1].learn(built.imported_modules[0])
    given = run_kernels.random(64)
    found = run_kernels.run(built, any_device, (given,), (64,))
    np.testing.assert_allclose(found, _wanted(function, given), rtol=1e-5, atol=1e-5)


def test_a_thread_that_reads_what_it_wrote_waits_for_nobody():
    @T.prim_func
    def own(a: T.Buffer((8, 4), "float32"), c: T.Buffer((8, 4), "float32")):
        tile = T.alloc_buffer((8, 4), "float32", scope="shared")
        for t in T.thread_binding(8, thread="threadIdx.x"):
            for i in range(4):
                tile[t, i] = a[t, i]
            for i in range(4):
                c[t, i] = tile[t, 3 - i]

    source = tvm.build(own, target="opencl").imported_modules[0].get_source()
    assert "barrier(" not in source


def test_a_predicate_that_asks_for_a_thread_of_an_axis_beside_it(any_device):
    """A classic idiom: only the first of the threads that share a sum stores what follows it."""
    a = te.placeholder((5, 37), name="a")
    k = te.reduce_axis((0, 37), "k")
    total = te.compute((5,), lambda i: te.sum(a[i, k], axis=k), name="total")
    out = te.compute((5,), lambda i: total[i] + 2.0, name="out")
    s = te.create_schedule(out.op)
    block, row = s[out].split(out.op.axis[0], factor=4)
    _, inner = s[total].split(k, factor=16)
    parts = s.rfactor(total, inner)
    s[total].compute_at(s[out], row)
    s[out].bind(block, te.thread_axis("blockIdx.x"))
    s[out].bind(row, te.thread_axis("threadIdx.y"))
    lane, lanes = s[total].op.reduce_axis[0], te.thread_axis("threadIdx.x")
    s[total].bind(lane, lanes)
    s[parts].compute_at(s[total], lane)
    for stage in (total, out):
        s[stage].set_store_predicate(lanes.var.equal(0))
    function = run_kernels.built(s, [a, out], name="predicate")
    given = run_kernels.random(5, 37)
    found = run_kernels.run(function, any_device, (given,), (5,))
    np.testing.assert_allclose(found, given.sum(1) + 2, rtol=1e-4)
