"""Vectors of loops whose extent is open: their number, their tails, and padding at both ends."""

import numpy as np
import pytest

from slipway import te
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.loop.pipeline import run_pipeline


def vectorized(body, more=0, low=1, high=100):
    """Lower ``B[i] = body(A, i, n)`` for n of `low` to `high`, B of n + `more` elements."""
    n = E.SizeVar("n", "int32", low, high)
    a = te.placeholder((n,), "float32", name="A")
    b = te.compute((n + more,), lambda i: body(a, i, n), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    return verify(run_pipeline(te.lower(s, [a, b])), "ready")


def stores(func):
    """Return the lanes of each store, in order."""
    return [n.value.lanes for n in walk(func.body) if isinstance(n, S.BufferStore)]


def padded(left):
    def body(a, i, n):
        inside = te.all(i >= left, i < n + left)
        return te.if_then_else(inside, a[i - left], te.const(0.5, "float32"))

    return body


@pytest.mark.parametrize("size", [1, 15, 16, 17, 64, 99, 100])
def test_a_loop_of_open_extent_is_vectors_and_a_tail(size):
    func = vectorized(lambda a, i, n: a[i] * 2.0)
    assert stores(func) == [16, 1]
    x, y = np.arange(size, dtype="float32"), np.zeros(size, "float32")
    run(func, x, y)
    np.testing.assert_array_equal(y, x * 2)


@pytest.mark.parametrize(("high", "lanes"), [(8, 8), (9, 8), (3, 2)])
def test_vectors_are_no_longer_than_the_loop_may_be(high, lanes):
    func = vectorized(lambda a, i, n: a[i] + 1.0, high=high)
    assert stores(func) == [lanes, 1]
    for size in range(1, high + 1):
        x, y = np.arange(size, dtype="float32"), np.zeros(size, "float32")
        run(func, x, y)
        np.testing.assert_array_equal(y, x + 1)


@pytest.mark.parametrize(("left", "right"), [(1, 1), (0, 3), (20, 0), (3, 17), (2, -5)])
def test_padding_is_cut_off_and_what_is_copied_has_no_guard(left, right):
    low = max(1, -right - left + 1)
    func = vectorized(padded(left), left + right, low)
    (wide,) = (n for n in walk(func.body) if isinstance(n, S.BufferStore) and n.value.lanes > 1)
    assert isinstance(wide.value, E.BufferLoad)
    assert not any(isinstance(n, S.IfThenElse) for n in walk(func.body))
    for size in (low, low + 1, 14, 15, 16, 17, 18, 33, 100):
        x = np.random.default_rng(size).standard_normal(size, np.float32)
        y = np.zeros(size + left + right, "float32")
        run(func, x, y)
        wanted = np.pad(x, (left, max(0, right)), constant_values=0.5)[: len(y)]
        np.testing.assert_array_equal(y, wanted)


def test_a_guard_that_never_holds_leaves_no_vector_that_runs():
    func = vectorized(
        lambda a, i, n: te.if_then_else(te.all(i >= 40, i < n), a[i], te.const(1.0, "float32")),
        high=60,
    )
    for size in (1, 39, 40, 41, 60):
        x, y = np.arange(size, dtype="float32"), np.zeros(size, "float32")
        run(func, x, y)
        np.testing.assert_array_equal(y, np.where(np.arange(size) >= 40, x, 1))


def test_what_has_no_vector_form_stays_a_loop():
    func = vectorized(lambda a, i, n: te.if_then_else(i % 3 > 0, a[n - 1 - i], a[i // 2]))
    assert stores(func) == [1]
    x, y = np.arange(31, dtype="float32"), np.zeros(31, "float32")
    run(func, x, y)
    i = np.arange(31)
    np.testing.assert_array_equal(y, np.where(i % 3 > 0, x[30 - i], x[i // 2]))
