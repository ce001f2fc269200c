"""Vectors of loops whose extent is open: their number, their tails, and padding at both ends."""

import numpy as np
import pytest

from slipway import te
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.loop import vectorize_loop
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
    assert stores(func) == [16, 8, 4, 2, 1]
    x, y = np.arange(size, dtype="float32"), np.zeros(size, "float32")
    run(func, x, y)
    np.testing.assert_array_equal(y, x * 2)


@pytest.mark.parametrize(("high", "lanes"), [(8, [8, 4, 2, 1]), (9, [8, 4, 2, 1]), (3, [2, 1])])
def test_vectors_are_no_longer_than_the_loop_may_be(high, lanes):
    func = vectorized(lambda a, i, n: a[i] + 1.0, high=high)
    assert stores(func) == lanes
    for size in range(1, high + 1):
        x, y = np.arange(size, dtype="float32"), np.zeros(size, "float32")
        run(func, x, y)
        np.testing.assert_array_equal(y, x + 1)


@pytest.mark.parametrize(("left", "right"), [(1, 1), (0, 3), (20, 0), (3, 17), (2, -5)])
def test_padding_is_cut_off_and_what_is_copied_has_no_guard(left, right):
    low = max(1, -right - left + 1)
    func = vectorized(padded(left), left + right, low)
    wide = [n for n in walk(func.body) if isinstance(n, S.BufferStore) and n.value.lanes > 1]
    assert [n.value.lanes for n in wide] == [16, 8, 4, 2]
    assert all(isinstance(n.value, E.BufferLoad) for n in wide)
    conditions = [n.condition for n in walk(func.body) if isinstance(n, S.IfThenElse)]
    assert all(isinstance(c, E.EQ) for c in conditions)  # what is left has so many elements
    for size in (low, low + 1, 14, 15, 16, 17, 18, 33, 100):
        x = np.random.default_rng(size).standard_normal(size, np.float32)
        y = np.zeros(size + left + right, "float32")
        run(func, x, y)
        wanted = np.pad(x, (left, max(0, right)), constant_values=0.5)[: len(y)]
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize(("left", "right"), [(1, 1), (2, 0), (3, 7)])
def test_what_is_computed_of_a_padding_is_cut_like_it(left, right):
    """Reflections, too: where the guard fails another element of the tensor stands."""

    def body(a, i, n):
        at = te.max(i - left, left - i)
        at = te.min(at, 2 * (n - 1) - at)
        inside = te.all(i >= left, i < n + left)
        return te.if_then_else(inside, a[i - left], a[at]) * 2.0 + 1.0

    func = vectorized(body, left + right, max(left, right) + 1)
    wide = [n for n in walk(func.body) if isinstance(n, S.BufferStore) and n.value.lanes > 1]
    assert [n.value.lanes for n in wide] == [16, 8, 4, 2]
    loads = [part for n in wide for part in walk(n.value) if isinstance(part, E.BufferLoad)]
    assert all(isinstance(load.indices[0], E.Ramp) for load in loads)
    for size in (8, 9, 15, 16, 31, 47, 100):
        x = np.random.default_rng(size).standard_normal(size, np.float32)
        y = np.zeros(size + left + right, "float32")
        run(func, x, y)
        np.testing.assert_array_equal(y, np.pad(x, (left, right), "reflect") * 2 + 1)


def test_tensors_joined_are_not_cut_like_a_padding():
    """Both are long: what follows the first would be a serial loop."""
    n = E.SizeVar("n", "int32", 1, 100)
    a, b = (te.placeholder((n,), "float32", name=name) for name in "AB")
    c = te.compute((2 * n,), lambda i: te.if_then_else(i < n, a[i], b[i - n]), name="C")
    s = te.create_schedule(c.op)
    s[c].vectorize(c.op.axis[0])
    func = verify(run_pipeline(te.lower(s, [a, b, c])), "ready")
    wide = [m for m in walk(func.body) if isinstance(m, S.BufferStore) and m.value.lanes == 16]
    assert len(wide) == 2
    for size in (1, 15, 16, 40, 100):
        x, y = np.arange(size, dtype="float32"), -np.arange(size, dtype="float32")
        z = np.zeros(2 * size, "float32")
        run(func, x, y, z)
        np.testing.assert_array_equal(z, np.concatenate([x, y]))


def long_body(a, i, n):
    value = a[i]
    for number in range(20):
        value = value * a[i] + float(number)
    return value


@pytest.mark.parametrize(
    ("high", "lanes"), [(100, [16, 1]), (9, [8, 1]), (8, [8, 1]), (3, [2, 1]), (1, [1])]
)
def test_long_bodies_have_a_serial_tail(high, lanes):
    """And one vector length that is no longer than the loop may be."""
    assert stores(vectorized(long_body, high=high)) == lanes


def test_bodies_are_long_by_the_number_of_their_nodes(monkeypatch):
    def found(most):
        monkeypatch.setattr(vectorize_loop, "_MOST_OF_A_TAIL", most)
        return stores(vectorized(lambda a, i, n: a[i] * 2.0))

    nodes = 10  # B[i] = A[i] * 2: the statement, two buffers, their size, a product, i, a number
    assert found(nodes) == [16, 8, 4, 2, 1]
    assert found(nodes - 1) == [16, 1]


def test_a_tail_of_one_element_is_a_loop_of_its_own():
    func = vectorized(lambda a, i, n: a[i] * 2.0)
    assert sum(isinstance(n, S.IfThenElse) for n in walk(func.body)) == 3  # of 8, of 4, of 2
    assert sum(isinstance(n, S.For) for n in walk(func.body)) == 2  # of 16, of 1


@pytest.mark.parametrize(
    ("low", "high", "lanes"),
    [(3, 5, []), (3, 100, [1]), (4, 100, [1]), (5, 100, [16, 8, 4, 2, 1])],
)
def test_extents_that_may_be_negative_stay_serial(low, high, lanes):
    """Halves of a negative number of steps would be taken for elements."""
    assert stores(vectorized(lambda a, i, n: a[i] + 1.0, -5, low, high)) == lanes


@pytest.mark.parametrize("size", [1, 20, 29, 30, 31, 46, 47, 100])
def test_a_guard_that_ends_before_the_loop_begins(size):
    func = vectorized(lambda a, i, n: te.if_then_else(i < n - 30, a[i], te.const(1.0, "float32")))
    x, y = np.arange(size, dtype="float32"), np.zeros(size + 1, "float32")
    run(func, x, y[1:])
    inside = np.arange(size) < size - 30
    np.testing.assert_array_equal(y, [0, *np.where(inside, x, 1)])


def test_one_name_for_two_values_in_one_body():
    """What was computed of the first is not taken for the second, though it is the same node."""
    n, name = E.SizeVar("n", "int32", 1, 100), E.Var("held", "float32")
    a, b, c = (decl_buffer((n,), "float32", x) for x in "abc")
    i = E.Var("i", "int32")
    same = ops.add(name, ops.const(1.0, "float32"))
    body = S.seq(
        S.LetStmt(name, value, S.BufferStore(out, same, (i,)))
        for value, out in ((a[i], b), (ops.mul(a[i], a[i]), c))
    )
    loop = S.For(i, ops.const(0, "int32"), n, S.ForKind.VECTORIZED, body)
    func = verify(vectorize_loop.vectorize_loop(PrimFunc((a, b, c), loop)), "loops")
    assert 16 in stores(func)
    for size in (1, 17, 40):
        x, y, z = np.arange(size, dtype="float32"), *np.zeros((2, size), "float32")
        run(func, x, y, z)
        np.testing.assert_array_equal(y, x + 1)
        np.testing.assert_array_equal(z, x * x + 1)


def test_conditions_on_the_rows_are_asked_before_the_vectors():
    n, m = (E.SizeVar(name, "int32", 1, 50) for name in "nm")
    a = te.placeholder((n, m), "float32", name="A")
    inside = lambda i: te.all(i >= 1, i < n + 1)  # noqa: E731
    b = te.compute(
        (n + 2, m), lambda i, j: te.if_then_else(inside(i), a[i - 1, j], te.const(0.0, "float32")),
        name="B",
    )  # fmt: skip
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[1])
    func = verify(run_pipeline(te.lower(s, [a, b])), "ready")
    assert not any(isinstance(x, E.Call) and x.op == "if_then_else" for x in walk(func.body))
    for rows, columns in ((1, 1), (3, 17), (50, 50)):
        x = np.random.default_rng(rows).standard_normal((rows, columns)).astype("float32")
        y = np.zeros((rows + 2, columns), "float32")
        run(func, x, y)
        np.testing.assert_array_equal(y, np.pad(x, ((1, 1), (0, 0))))


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


@pytest.mark.parametrize("bound", [15, 16, 47, 48])
@pytest.mark.parametrize("upper", [False, True])
def test_bounds_of_the_vectors_are_those_of_the_loop(bound, upper):
    """What is known of a loop's steps decides indices: the first and the last vector count."""

    def body(a, i, n):
        at = te.min(i, bound) if upper else te.max(te.min(i, n - 1), te.min(bound, n - 1))
        return a[at] * 2.0

    func = vectorized(body, low=49, high=64)
    for size in (49, 63, 64):
        x, y = np.arange(size, dtype="float32"), np.zeros(size, "float32")
        run(func, x, y)
        at = np.arange(size)
        at = np.minimum(at, bound) if upper else np.maximum(at, bound)
        np.testing.assert_array_equal(y, 2 * x[at])
