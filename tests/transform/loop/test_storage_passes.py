"""storage_rewrite, inject_double_buffer, inject_prefetch: less memory, same numbers."""

import numpy as np
import pytest

from slipway import te
from slipway.errors import ScheduleError
from slipway.ir import stmt as S
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.context import PassContext
from slipway.transform.instruments import VerifyEachPass
from slipway.transform.loop.flatten_storage import flatten_storage
from slipway.transform.loop.inject_double_buffer import inject_double_buffer
from slipway.transform.loop.inject_prefetch import inject_prefetch
from slipway.transform.loop.pipeline import run_pipeline
from slipway.transform.loop.storage_rewrite import storage_rewrite


def allocated(func):
    return [n.buffer for n in walk(func.body) if isinstance(n, S.Allocate)]


def chain(length, shape=(64,), dtype="float32", index=lambda i: i):
    a = te.placeholder(shape, dtype, name="A")
    tensors = [a]
    for n in range(length):
        before = tensors[-1]
        tensors.append(te.compute(shape, lambda i, t=before: t(index(i)) + 1, name=f"T{n}"))
    return a, tensors, te.create_schedule(tensors[-1].op)


@pytest.mark.parametrize(("index", "buffers"), [(lambda i: i, 1), (lambda i: 63 - i, 2)])
def test_a_chain_needs_one_buffer_in_place_and_else_two(index, buffers):
    a, tensors, s = chain(6, index=index)
    func = flatten_storage(te.lower(s, [a, tensors[-1]]))
    assert len(allocated(func)) == 5
    shared = verify(storage_rewrite(func), "flat")
    assert len(allocated(shared)) == buffers
    x, y = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    run(shared, x, y)
    np.testing.assert_array_equal(y, x + 6)


def test_a_slot_grows_to_its_largest_user():
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    k = te.reduce_axis((0, 8), "k")
    c = te.compute((1,), lambda _: te.sum(b[k], axis=k), name="C")
    d = te.compute((32,), lambda i: c[0] + i, name="D")
    e = te.compute((32,), lambda i: d[31 - i] * 2.0, name="E")
    s = te.create_schedule(e.op)
    shared = storage_rewrite(flatten_storage(te.lower(s, [a, e])))
    assert sorted(int(b.shape[0]) for b in allocated(shared)) == [1, 32]
    x, y = np.arange(8, dtype="float32"), np.zeros(32, "float32")
    run(shared, x, y)
    np.testing.assert_array_equal(y, (x.sum() + 8 + np.arange(32)[::-1]) * 2)


def test_sharing_can_be_turned_off():
    a, tensors, s = chain(6)
    with PassContext(config={"tir.disable_storage_rewrite": True}):
        func = run_pipeline(te.lower(s, [a, tensors[-1]]))
    assert len(allocated(func)) == 5


def test_double_buffer():
    a = te.placeholder((8, 16), name="A")
    b = te.compute((8, 16), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((8, 16), lambda i, j: b[i, 15 - j] + 1.0, name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].double_buffer()
    func = inject_double_buffer(flatten_storage(te.lower(s, [a, c])))
    verify(func, "flat")
    assert [int(b.shape[0]) for b in allocated(func)] == [32]
    x, y = np.random.default_rng(0).random((8, 16)).astype("float32"), np.zeros((8, 16), "float32")
    for ready in (func, run_pipeline(te.lower(s, [a, c]), instruments=[VerifyEachPass()])):
        y[:] = 0
        run(ready, x, y)
        np.testing.assert_array_equal(y, x[:, ::-1] * 2 + 1)


def test_prefetch():
    a = te.placeholder((8, 16), name="A")
    b = te.compute((8, 16), lambda i, j: a[i, j] * 2.0, name="B")
    s = te.create_schedule(b.op)
    s[b].prefetch(a, b.op.axis[0], 2)
    func = inject_prefetch(flatten_storage(te.lower(s, [a, b])))
    assert "prefetch(address_of(A_1[i * 16 + 32]), 0, 3, 1)" in str(verify(func, "flat"))
    x, y = np.ones((8, 16), "float32"), np.zeros((8, 16), "float32")
    run(run_pipeline(te.lower(s, [a, b])), x, y)
    np.testing.assert_array_equal(y, 2)


def test_prefetch_at_a_place():
    a = te.placeholder((8, 16), name="A")
    b = te.compute((8, 16), lambda i, j: a[i, j] * 2.0, name="B")
    s = te.create_schedule(b.op)
    i, j = s[b].op.axis
    outer, _ = s[b].split(j, factor=4)
    s[b].prefetch_at(a, outer, (i + 1, te.floordiv(j, 2)))
    func = flatten_storage(te.lower(s, [a, b]))
    assert "prefetch(address_of(A_1[i * 16 + j.outer * 2 + 16]), 0, 3, 1)" in str(
        verify(func, "flat")
    )
    s[b].prefetch_at(a, outer, (i + 2, j), level=2)
    assert "+ 32]), 0, 2, 1)" in str(verify(flatten_storage(te.lower(s, [a, b])), "flat"))
    x, y = np.ones((8, 16), "float32"), np.zeros((8, 16), "float32")
    run(run_pipeline(te.lower(s, [a, b])), x, y)
    np.testing.assert_array_equal(y, 2)
    with pytest.raises(ScheduleError, match=r"'A' .* has 2 axes, got 1"):
        s[b].prefetch_at(a, outer, (i,))
    with pytest.raises(ScheduleError, match=r"at variable 'other': .* 'i', 'j'"):
        s[b].prefetch_at(a, outer, (i, te.var("other")))


def test_storage_that_nothing_reads_is_removed():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((4,), lambda i: te.if_then_else(i > 7, b[i], a[i]), name="C")
    s = te.create_schedule(c.op)
    ready = run_pipeline(te.lower(s, [a, c]))
    assert not allocated(ready)
    assert str(ready) == (
        "def main(A: float32[4], C: float32[4]):\n    for i in range(4):\n        C[i] = A[i]"
    )


def test_copies_of_one_allocation_are_judged_apart():
    from slipway.ir import expr as E
    from slipway.ir import ops
    from slipway.ir.buffer import decl_buffer
    from slipway.ir.function import PrimFunc
    from slipway.transform.loop.remove_unused import remove_unused

    a, t = decl_buffer((4,), name="A"), decl_buffer((4,), name="T")
    fill = S.BufferStore(t, a[0], (ops.const(0),))
    use = S.BufferStore(a, t[0], (ops.const(1),))
    body = S.seq([S.Allocate(t, S.seq([fill, use])), S.Allocate(t, fill)])
    handle = E.Var("A", "handle")
    func = remove_unused(PrimFunc((handle,), body, ((handle, a),)))
    assert len(allocated(func)) == 1


def test_storage_read_only_by_removed_storage_goes_too():
    a, tensors, s = chain(3, shape=(1,))
    last = te.compute((1,), lambda i: te.if_then_else(i > 5, tensors[-1][i], 0.0), name="L")
    s = te.create_schedule(last.op)
    assert not allocated(run_pipeline(te.lower(s, [a, last])))
