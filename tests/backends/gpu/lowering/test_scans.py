"""Recurrences in threads, memory of a warp, and barriers that a script writes."""

import numpy as np
from run_kernels import axis, built, random, run

import slipway as tvm
from slipway import te


def recurrence(steps, width, stages):
    """Return a schedule of running sums, halved where there are two stages in a step."""
    x = te.placeholder((steps, width), name="X")
    state = te.placeholder((steps, width), name="state")
    first = te.compute((1, width), lambda _, i: x[0, i], name="first")
    added = te.compute((steps, width), lambda t, i: state[t - 1, i] + x[t, i], name="added")
    update = added
    if stages == 2:
        update = te.compute((steps, width), lambda t, i: added[t, i] * 0.5, name="halved")
    result = te.scan(first, update, state, inputs=[x], name="result")
    schedule = te.create_schedule(result.op)
    for tensor in (first, update):
        block, thread = schedule[tensor].split(tensor.op.axis[1], factor=8)
        schedule[tensor].bind(block, axis("blockIdx.x"))
        schedule[tensor].bind(thread, axis("threadIdx.x"))
    if stages == 2:
        schedule[added].compute_at(schedule[update], thread)
    return schedule, [x, result]


def test_scans_in_threads(any_device):
    x = random(5, 19)
    sums = run(built(*recurrence(5, 19, 1), name="sums"), any_device, [x], (5, 19))
    np.testing.assert_allclose(sums, np.cumsum(x, 0), rtol=1e-5, atol=1e-5)
    halved = run(built(*recurrence(5, 19, 2), name="halved"), any_device, [x], (5, 19))
    expected = [x[0]]
    for row in x[1:]:
        expected.append((expected[-1] + row) / 2)
    np.testing.assert_allclose(halved, expected, rtol=1e-5, atol=1e-5)


def test_the_first_rows_of_a_scan_need_no_copy(device):
    schedule, args = recurrence(5, 19, 1)
    assert "allocate" not in str(tvm.lower(schedule, args, simple_mode=True))
    later = te.compute((5, 19), lambda t, i: args[1][t, i] * 2, name="later")  # no argument
    s = te.create_schedule(later.op)
    names = {stage.op.name: stage.op for stage in s.stages}
    for name in ("first", "added", "later"):
        block, thread = s[names[name]].split(names[name].axis[1], factor=8)
        s[names[name]].bind(block, axis("blockIdx.x"))
        s[names[name]].bind(thread, axis("threadIdx.x"))
    x = random(5, 19)
    found = run(built(s, [args[0], later], name="doubled"), device, [x], (5, 19))
    np.testing.assert_allclose(found, np.cumsum(x, 0) * 2, rtol=1e-5, atol=1e-5)


def test_a_warp_shares_memory(any_device):
    n = 96
    a = te.placeholder((4, n), name="A")
    rotated = te.compute((4, n), lambda y, i: a[y, i // 32 * 32 + (i + 1) % 32], name="rotated")
    s = te.create_schedule(rotated.op)
    held = s.cache_read(a, "warp", [rotated])
    rows, columns = s[rotated].op.axis
    block, lane = s[rotated].split(columns, factor=32)
    s[rotated].reorder(block, rows, lane)
    s[rotated].bind(block, axis("blockIdx.x"))
    s[rotated].bind(rows, axis("threadIdx.y"))
    s[rotated].bind(lane, axis("threadIdx.x"))
    s[held].compute_at(s[rotated], rows)
    _, lane = s[held].split(s[held].op.axis[1], factor=32)
    s[held].bind(lane, axis("threadIdx.x"))
    x, at = random(4, n), np.arange(n)
    found = run(built(s, [a, rotated], name="rotated"), any_device, [x], (4, n))
    np.testing.assert_array_equal(found, x[:, at // 32 * 32 + (at + 1) % 32])


def test_a_barrier_of_a_script(device):
    n = 64
    a = te.placeholder((n,), name="A")

    def body(ins, outs):
        ib = tvm.tir.ir_builder.create()
        thread = axis("threadIdx.x")
        ib.scope_attr(thread, "thread_extent", n)
        shared = ib.allocate("float32", n, name="shared", scope="shared")
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        shared[thread] = source[thread]
        words = tvm.runtime.convert(["shared"])
        ib.emit(tvm.tir.Call(None, "tir.tvm_storage_sync", words))
        target[thread] = shared[n - 1 - thread] + shared[thread]
        return ib.get()

    b = te.extern((n,), [a], body, name="B", dtype="float32")
    x = random(n)
    found = run(built(te.create_schedule(b.op), [a, b], name="mirrored"), device, [x], (n,))
    np.testing.assert_array_equal(found, x[::-1] + x)
