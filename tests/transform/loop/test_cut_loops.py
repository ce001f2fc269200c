"""Loops with a hint are cut where conditions change, and no number does."""

import numpy as np
import pytest

from slipway import te
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.loop.cut_loops import cut_loops
from slipway.transform.loop.flatten_storage import flatten_storage
from slipway.transform.loop.pipeline import run_pipeline


def window(size, taps, padding, stride=1):
    """Return the schedule of sums over the part of a window that is inside, and its axes."""
    x, w = te.placeholder((size,), name="X"), te.placeholder((taps,), name="W")
    k = te.reduce_axis((0, taps), "k")
    extent = (size + 2 * padding - taps) // stride + 1

    def element(i):
        position = i * stride + k - padding
        return te.sum(x(position) * w(k), axis=k, where=te.all(position >= 0, position < size))

    out = te.compute((extent,), element, name="O")
    schedule = te.create_schedule(out.op)
    return schedule, (x, w, out), out.op.axis[0], k


def check(schedule, tensors, padding, stride=1):
    ready = verify(run_pipeline(te.lower(schedule, list(tensors))), "ready")
    size, taps, extent = (int(t.shape[0]) for t in tensors)
    x, w = np.arange(1, size + 1, dtype="float32"), np.arange(1, taps + 1, dtype="float32")
    got = np.zeros(extent, "float32")
    run(ready, x, w, got)
    full = np.pad(x, padding)
    starts = range(0, extent * stride, stride)
    np.testing.assert_array_equal(got, [full[i : i + taps] @ w for i in starts])
    return str(ready)


def test_both_ends_are_cut_off_and_the_middle_has_no_condition():
    schedule, tensors, i, k = window(32, 3, 1)
    for axis in (i, k):
        schedule[tensors[2]].pragma(axis, "loop_partition_hint", True)
    text = check(schedule, tensors, 1)
    assert text == (
        "def main(X: float32[32], W: float32[3], O: float32[32]):\n"
        "    O[0] = 0f\n"
        "    for k in range(1, extent=2):\n"
        "        O[0] = O[0] + X[k - 1] * W[k]\n"
        "    for i in range(1, extent=30):\n"
        "        O[i] = 0f\n"
        "        for k in range(3):\n"
        "            O[i] = O[i] + X[i + k - 1] * W[k]\n"
        "    O[31] = 0f\n"
        "    for k in range(2):\n"
        "        O[31] = O[31] + X[k + 30] * W[k]"
    )


def test_a_condition_that_an_outer_loop_decides_becomes_the_ends():
    schedule, tensors, _, k = window(32, 3, 1)
    schedule[tensors[2]].pragma(k, "loop_partition_hint", True)
    text = check(schedule, tensors, 1)
    assert " if " not in text
    assert text.count("for k") == 1


@pytest.mark.parametrize("padding", [0, 1, 2, 3, 6])
@pytest.mark.parametrize(("size", "taps"), [(1, 3), (5, 7), (20, 3), (33, 5)])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("factor", [1, 4, 7])
def test_tiles_of_any_border(padding, size, taps, stride, factor):
    if size + 2 * padding < taps:
        return
    schedule, tensors, *_ = window(size, taps, padding, stride)
    out = schedule[tensors[2]]
    sums = schedule.cache_write(tensors[2], "local")
    i = out.op.axis[0]
    outer, _ = out.split(i, factor=min(factor, int(tensors[2].shape[0])), tail="shift")
    stage = schedule[sums]
    stage.compute_at(out, outer)
    (k,), (tile,) = stage.op.reduce_axis, stage.op.axis
    stage.reorder(k, tile)
    stage.unroll(tile)
    out.pragma(outer, "loop_partition_hint", True)
    stage.pragma(k, "loop_partition_hint", True)
    assert " if " not in check(schedule, tensors, padding, stride)


def test_a_long_loop_is_cut_too():
    schedule, tensors, i, k = window(100_000, 3, 1)
    for axis in (i, k):
        schedule[tensors[2]].pragma(axis, "loop_partition_hint", True)
    func = cut_loops(flatten_storage(te.lower(schedule, list(tensors))))
    loops = [n for n in walk(func.body) if isinstance(n, S.For) and n.loop_var.name == "i"]
    assert [n.extent.value for n in loops] == [1, 99_998, 1]


def test_a_parallel_loop_stays_one():
    schedule, tensors, i, _ = window(32, 3, 1)
    schedule[tensors[2]].pragma(i, "loop_partition_hint", True)
    schedule[tensors[2]].parallel(i)
    assert check(schedule, tensors, 1).count("parallel for") == 1


def test_nothing_happens_without_a_hint():
    schedule, tensors, *_ = window(32, 3, 1)
    func = flatten_storage(te.lower(schedule, list(tensors)))
    assert cut_loops(func) is func


def test_values_behind_a_condition_are_decided_too():
    a = te.placeholder((10,), name="A")
    b = te.compute((12,), lambda i: te.if_then_else(te.all(i >= 1, i < 11), a[i - 1], 7.0))
    schedule = te.create_schedule(b.op)
    schedule[b].pragma(b.op.axis[0], "loop_partition_hint", True)
    ready = run_pipeline(te.lower(schedule, [a, b]))
    assert "if" not in str(ready)
    x, y = np.arange(10, dtype="float32"), np.zeros(12, "float32")
    run(ready, x, y)
    np.testing.assert_array_equal(y, np.pad(x, 1, constant_values=7))


def test_a_loop_of_open_ends_asks_once_a_step():
    """A tile in the middle has a body without conditions; the first and the last keep theirs."""
    tiles = E.SizeVar("tiles", "int32", 1, 13)
    n, told = tiles * 8, te.placeholder((tiles,), name="Told")
    x, w = te.placeholder((n,), name="X"), te.placeholder((3,), name="W")
    k = te.reduce_axis((0, 3), "k")
    inside = lambda i: te.all(i + k >= 1, i + k < n + 1)  # noqa: E731
    out = te.compute((n,), lambda i: te.sum(x(i + k - 1) * w(k), axis=k, where=inside(i)), name="O")
    s = te.create_schedule(out.op)
    outer, inner = s[out].split(out.op.axis[0], factor=8)
    s[out].unroll(inner)
    s[out].pragma(outer, "loop_partition_hint", True)
    ready = verify(run_pipeline(te.lower(s, [told, x, w, out])), "ready")
    (choice,) = (
        c for c in walk(ready.body)
        if isinstance(c, S.IfThenElse) and any(
            isinstance(p, E.Call) and p.op == "likely" for p in walk(c.condition)
        )
    )  # fmt: skip
    assert not any(isinstance(c, S.IfThenElse) for c in walk(choice.then_case))
    assert any(isinstance(c, S.IfThenElse) for c in walk(choice.else_case))
    for size in (8, 16, 40, 104):
        given, taps = np.arange(1, size + 1, dtype="float32"), np.float32([1, 2, 3])
        got = np.zeros(size, "float32")
        run(ready, np.zeros(size // 8, "float32"), given, taps, got)
        full = np.pad(given, 1)
        np.testing.assert_array_equal(got, [full[i : i + 3] @ taps for i in range(size)])


def test_a_vectorized_loop_is_cut_where_its_conditions_change():
    """What is between is vectors of their own; one or two steps at an end are unrolled."""
    x = te.placeholder((3, 20), name="X")

    def element(i, j):
        inside = te.all(j >= 1, j < 21)
        return te.if_then_else(inside, x(i, j - 1), 7.0)

    out = te.compute((3, 26), element, name="O")
    schedule = te.create_schedule(out.op)
    schedule[out].vectorize(out.op.axis[1])
    schedule[out].pragma(out.op.axis[1], "loop_partition_hint", True)
    ready = verify(run_pipeline(te.lower(schedule, [x, out])), "ready")
    assert "if_then_else" not in str(ready)
    assert "if " not in str(ready)
    data, got = np.random.default_rng(0).random((3, 20), "float32"), np.zeros((3, 26), "float32")
    run(ready, data, got)
    np.testing.assert_array_equal(got, np.pad(data, ((0, 0), (1, 5)), constant_values=7))
