"""Schedules for a GPU run on a CPU: blocks in parallel, threads in turn, barriers refused."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.target import Target
from slipway.transform.loop.pipeline import run_pipeline


def mirrored_blocks(n=256, width=64):
    """Each block fills shared memory with all its threads, and reads what others wrote."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((n,), lambda i: b[i // width * width + (width - 1 - i % width)] * 2.0, name="C")
    s = te.create_schedule(c.op)
    block, thread = s[c].split(c.op.axis[0], width)
    threads = te.thread_axis((0, width), "threadIdx.x")
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(thread, threads)
    s[b].compute_at(s[c], block)
    s[b].set_scope("shared")
    s[b].bind(b.op.axis[0], threads)
    return s, [a, c]


def tiled_product(n=32):
    """The matrix product of classic GPU tutorials: shared tiles, registers, virtual threads."""
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    shared = [s.cache_read(x, "shared", [c]) for x in (a, b)]
    local = [s.cache_read(x, "local", [c]) for x in shared]
    sums = s.cache_write(c, "local")
    ty, tx = (te.thread_axis((0, 4), f"threadIdx.{x}") for x in "yx")
    loops = []
    for axis, name, thread in zip(c.op.axis, "yx", (ty, tx), strict=True):
        outer, inner = s[c].split(axis, 16)
        virtual, inner = s[c].split(inner, nparts=2)
        mine, inner = s[c].split(inner, nparts=4)
        s[c].bind(outer, te.thread_axis(f"blockIdx.{name}"))
        s[c].bind(virtual, te.thread_axis((0, 2), "vthread", name=f"v{name}"))
        s[c].bind(mine, thread)
        loops.append((outer, virtual, mine, inner))
    s[c].reorder(*(pair[d] for d in range(4) for pair in loops))
    s[sums].compute_at(s[c], loops[1][2])
    ko, ki = s[sums].split(k, 8)
    s[sums].reorder(ko, ki, *sums.op.axis)
    for x, y in zip(shared, local, strict=True):
        s[x].compute_at(s[sums], ko)
        s[y].compute_at(s[sums], ki)
        parts = [s[x].split(axis, nparts=4) for axis in s[x].op.axis]
        s[x].reorder(parts[0][0], parts[1][0], parts[0][1], parts[1][1])
        s[x].bind(parts[0][0], ty)
        s[x].bind(parts[1][0], tx)
    return s, [a, b, c]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_threads_share_memory(target):
    s, args = mirrored_blocks()
    x = np.arange(256, dtype="float32")
    got = tvm.nd.array(np.zeros(256, "float32"))
    tvm.build(s, args, target)(tvm.nd.array(x), got)
    np.testing.assert_array_equal(got.numpy(), 2 * (x.reshape(-1, 64)[:, ::-1].reshape(-1) + 1))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_tiled_matrix_product(target):
    s, args = tiled_product()
    rng = np.random.default_rng(0)
    a, b = rng.random((32, 32), "float32"), rng.random((32, 32), "float32")
    got = tvm.nd.array(np.zeros((32, 32), "float32"))
    tvm.build(s, args, target)(tvm.nd.array(a), tvm.nd.array(b), got)
    np.testing.assert_allclose(got.numpy(), a @ b, rtol=1e-5)


def test_blocks_run_in_parallel():
    s, args = mirrored_blocks()
    text = str(run_pipeline(te.lower(s, args), Target("llvm")))
    assert text.count("parallel for") == 1
    assert "threadIdx.x for" not in text
    assert "threadIdx.x for" in str(
        run_pipeline(te.lower(s, args))
    )  # kept where there is no target


def test_a_barrier_between_threads_is_refused():
    a = tvm.tir.decl_buffer((64,), "float32", "A")
    handle, i = E.Var("A", "handle"), E.Var("i")
    axis = te.thread_axis((0, 64), "threadIdx.x")
    barrier = S.Evaluate(ops.call_intrin("int32", "storage_sync", "shared"))
    body = S.seq((S.BufferStore(a, ops.const(1.0), (i,)), barrier))
    loop = S.For(i, ops.const(0), ops.const(64), S.ForKind.THREAD, body, axis)
    func = PrimFunc((handle,), loop, ((handle, a),), (("global_symbol", "main"),))
    with pytest.raises(LoweringError, match=r"a barrier stands inside the loop i, .*threadIdx\.x"):
        run_pipeline(func, Target("llvm"))
