"""UnifyThreadBinding and InjectVirtualThread under their classic path, and what they make, run."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te
from slipway.errors import ArgumentValueError, LoweringError
from slipway.ir import stmt as S
from slipway.ir.visit import walk
from slipway.script import tir as T


@T.prim_func
def reverse(p: T.handle, q: T.handle, r: T.handle):
    a = T.match_buffer(p, (6, 32), "float32")
    b = T.match_buffer(q, (6, 32), "float32")
    c = T.match_buffer(r, (6, 32), "float32")
    for i in T.thread_binding(6, "blockIdx.x"):
        for j in T.thread_binding(32, "threadIdx.x"):
            b[i, j] = a[i, j] * T.float32(2)
        for k in T.thread_binding(T.int64(32), "threadIdx.x"):
            c[i, k] = b[i, T.int64(31) - k] + T.float32(1)


@T.prim_func
def rows(p: T.handle, q: T.handle, r: T.handle):
    a = T.match_buffer(p, (6, 32), "float32")
    b = T.match_buffer(q, (6, 32), "float32")
    c = T.match_buffer(r, (6, 32), "float32")
    for i in T.thread_binding(6, "blockIdx.x"):
        for j in T.thread_binding(4, "threadIdx.x"):
            for s in T.serial(8):
                b[i, j * 8 + s] = a[i, j * 8 + s] * T.float32(2)
        for k in T.thread_binding(4, "threadIdx.x"):
            for t in T.serial(8):
                c[i, k * 8 + t] = b[i, k * 8 + t] + T.float32(1)


def parts_of(module):
    """Return the tags of a module's thread loops, the outer ones first, and its barriers."""
    body = module["main"].body if "main" in module.functions else module.items()[0][1].body
    nodes = list(walk(body))
    loops = [n for n in nodes if isinstance(n, S.For) and n.kind == S.ForKind.THREAD]
    barriers = [n for n in nodes if getattr(n, "op", "") == "storage_sync"]
    return [n.thread.thread_tag for n in loops], len(barriers)


@pytest.mark.parametrize(("function", "barriers"), [(reverse, 1), (rows, 0)])
def test_loops_over_an_axis_become_one(function, barriers):
    """Without a barrier only where each thread reads what it has written itself."""
    module = tvm.tir.transform.UnifyThreadBinding()(tvm.IRModule.from_expr(function))
    assert parts_of(module) == (["blockIdx.x", "threadIdx.x"], barriers)
    a = np.random.default_rng(0).standard_normal((6, 32)).astype("float32")
    for target in ("cuda -arch=sm_80", "opencl", "vulkan"):
        b, c = np.zeros_like(a), np.zeros_like(a)
        tvm.testing.run_threads(module, None, [a, b, c], target)
        np.testing.assert_array_equal(b, a * 2)
        wanted = b[:, ::-1] if function is reverse else b
        np.testing.assert_array_equal(c, wanted + np.float32(1))


def test_kernels_beside_each_other_stay_kernels():
    @T.prim_func
    def two(a: T.Buffer((8,), "float32"), b: T.Buffer((16,), "float32")):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            a[i] = T.float32(1)
        for j in T.thread_binding(16, thread="threadIdx.x"):
            b[j] = T.float32(2)

    module = tvm.tir.transform.UnifyThreadBinding()(tvm.IRModule.from_expr(two))
    assert parts_of(module)[0] == ["threadIdx.x", "threadIdx.x"]


def test_loops_of_several_sizes_are_refused():
    @T.prim_func
    def uneven(a: T.Buffer((4, 32), "float32"), b: T.Buffer((4, 16), "float32")):
        for i in T.thread_binding(4, thread="blockIdx.x"):
            for j in T.thread_binding(32, thread="threadIdx.x"):
                a[i, j] = T.float32(1)
            for k in T.thread_binding(16, thread="threadIdx.x"):
                b[i, k] = T.float32(2)

    with pytest.raises(LoweringError, match=r"threadIdx\.x has 32 steps in loop j and 16 in"):
        tvm.tir.transform.UnifyThreadBinding()(tvm.IRModule.from_expr(uneven))


def test_a_loop_of_threads_needs_an_axis():
    with pytest.raises(ArgumentValueError, match=r'thread="threadIdx\.x"'):
        T.thread_binding(64)


@pytest.mark.parametrize("virtual", ["vthread", "cthread"])
def test_virtual_threads_are_steps_of_a_thread(virtual):
    a = te.placeholder((64,), name="a")
    doubled = te.compute((64,), lambda i: a[i] * 2.0, name="doubled")
    out = te.compute((64,), lambda i: doubled[i] + 1.0, name="out")
    s = te.create_schedule(out.op)
    step, thread = s[out].split(out.op.axis[0], factor=16)
    s[out].bind(step, te.thread_axis(virtual))
    s[out].bind(thread, te.thread_axis("threadIdx.x"))
    s[doubled].compute_at(s[out], thread)
    module = tvm.lower(s, [a, out], simple_mode=True)
    assert virtual in parts_of(module)[0]
    made = tvm.tir.transform.InjectVirtualThread()(module)
    assert parts_of(made)[0] == ["threadIdx.x"]
    x, y = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    tvm.testing.run_threads(made, None, [x, y], "opencl")
    np.testing.assert_array_equal(y, x * 2 + 1)


def test_what_classic_scripts_note_of_virtual_threads():
    ib = tvm.tir.ir_builder.create()
    x = te.thread_axis("vthread")
    a = ib.pointer("float32", name="a")
    with ib.for_range(0, 8) as i:
        ib.scope_attr(x, "virtual_thread", 2)
        b = ib.allocate("float32", 4, name="b", scope="shared")
        b[i % 4] = a[i * 2 + x] + 1.0
    function = tvm.tir.PrimFunc([], ib.get())
    made = tvm.tir.transform.InjectVirtualThread()(tvm.IRModule.from_expr(function))["main"]
    assert not any(isinstance(n, S.AttrStmt) for n in walk(made.body))
    (memory,) = (n.buffer for n in walk(made.body) if isinstance(n, S.Allocate))
    assert np.prod([int(n) for n in memory.shape]) == 8
