"""Vectorize: which loops become vectors, which stay serial, and that the numbers stay."""

import numpy as np
import pytest

from slipway import te
from slipway.ir import builder as ir_builder
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.target import Target
from slipway.transform.context import PassContext
from slipway.transform.loop.pipeline import run_pipeline
from slipway.transform.loop.vectorize_loop import vectorize_loop


def vectorized(body, n=64, dtype="float32", inputs=1, target=None):
    """Lower ``B[i] = body(A, i)`` with i vectorised; return the function."""
    sources = [te.placeholder((n,), dtype, name=f"A{k}") for k in range(inputs)]
    b = te.compute((n,), lambda i: body(*sources, i), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    return verify(run_pipeline(te.lower(s, [*sources, b]), target), "ready")


def lanes_stored(func):
    return {n.value.lanes for n in walk(func.body) if isinstance(n, S.BufferStore)}


def numbers(func, n=64, dtype="float32"):
    x = np.random.default_rng(0).integers(1, 9, n).astype(dtype)
    y = np.zeros(n, func.buffer_map[-1][1].dtype)
    run(func, x, y)
    return x, y


@pytest.mark.parametrize(
    ("dtype", "lanes"), [("float32", 16), ("float64", 8), ("int8", 64), ("float16", 32)]
)
def test_vectors_have_at_most_64_bytes(dtype, lanes):
    func = vectorized(lambda a, i: a[i] + a[i], n=128, dtype=dtype)
    assert lanes_stored(func) == {lanes}


def test_the_widest_type_of_the_body_counts():
    func = vectorized(lambda a, i: te.cast(a[i], "int32") * 3, n=64, dtype="int8")
    assert lanes_stored(func) == {16}
    x, y = numbers(func, dtype="int8")
    np.testing.assert_array_equal(y, x * 3)


@pytest.mark.parametrize(
    ("extent", "lanes"),
    [(24, {16, 8}), (17, {16, 1}), (7, {7}), (30, {16, 14}), (1024, {16})],
)
def test_extents_that_16_does_not_divide(extent, lanes):
    func = vectorized(lambda a, i: a[i] * 2.0, n=extent)
    assert lanes_stored(func) == lanes
    x, y = numbers(func, extent)
    np.testing.assert_array_equal(y, x * 2)


@pytest.mark.parametrize(
    ("extent", "cpu", "lanes"),
    [
        (30, "x86-64-v4", {16, 14}), (30, "x86-64-v3", {16, 8, 6}), (14, "x86-64-v3", {8, 6}),
        (7, "x86-64-v2", {4, 3}), (3, "x86-64-v2", {3}),
    ],
)  # fmt: skip
def test_a_rest_is_one_vector_where_a_register_holds_it(extent, cpu, lanes):
    target = Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
    func = vectorized(lambda a, i: a[i] * 2.0, n=extent, target=target)
    assert lanes_stored(func) == lanes


def test_a_load_with_a_stride_is_a_vector_with_a_stride():
    func = vectorized(lambda a, i: a[63 - i], n=64)
    ramps = [n for n in walk(func.body) if isinstance(n, E.Ramp)]
    assert {int(r.stride) for r in ramps} == {1, -1}
    x, y = numbers(func)
    np.testing.assert_array_equal(y, x[::-1])


def test_padding_is_vectorised_where_all_lanes_are_inside():
    func = vectorized(lambda a, i: te.if_then_else(te.all(i >= 1, i < 63), a[i - 1] + a[i], 0.0))
    assert lanes_stored(func) == {16, 1}
    x, y = numbers(func)
    want = np.zeros_like(x)
    want[1:63] = x[:62] + x[1:63]
    np.testing.assert_array_equal(y, want)


def test_a_condition_without_loads_becomes_a_select():
    func = vectorized(lambda a, i: te.if_then_else(i % 2 == 0, 1.0, 2.0) + a[i])
    assert lanes_stored(func) == {16}
    assert any(isinstance(n, E.Select) for n in walk(func.body))
    x, y = numbers(func)
    np.testing.assert_array_equal(y, x + np.where(np.arange(64) % 2 == 0, 1, 2))


def test_a_reduction_over_the_vector_axis_elsewhere_stays_serial():
    a = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    s[b].reorder(k, b.op.axis[0])
    func = verify(run_pipeline(te.lower(s, [a, b])), "ready")
    x, y = np.arange(64, dtype="float32").reshape(8, 8), np.zeros(8, "float32")
    run(func, x, y)
    np.testing.assert_array_equal(y, x.sum(1))


def test_vectorisation_can_be_turned_off():
    with PassContext(config={"tir.disable_vectorize": True}):
        func = vectorized(lambda a, i: a[i] * 2.0)
    assert lanes_stored(func) == {1}


@pytest.mark.parametrize(
    ("index", "picks"),
    [
        (lambda i: i // 2, (0, 0, 1, 1, 2, 2, 3, 3)),
        (lambda i: i // 4 * 4 + 3 - i % 4, (3, 2, 1, 0, 7, 6, 5, 4)),
    ],
)
def test_lanes_that_lie_near_each_other_are_loaded_at_once(index, picks):
    ib = ir_builder.create()
    a, b = decl_buffer((64,), "float32", name="A"), decl_buffer((64,), "float32", name="B")
    with (
        ib.for_range(0, 8, "o") as o,
        ib.for_range(0, 8, "v", kind="vectorized") as v,
    ):
        ib.buffer_ptr(b)[o * 8 + v] = ib.buffer_ptr(a)[index(o * 8 + v)]
    handles = E.Var("A", "handle"), E.Var("B", "handle")
    func = PrimFunc(handles, ib.get(), ((handles[0], a), (handles[1], b)))
    (shuffle,) = (n for n in walk(vectorize_loop(func).body) if isinstance(n, E.Shuffle))
    assert shuffle.indices == picks


def test_a_choice_between_two_loads_has_a_vector_form_for_each():
    a, b = (te.placeholder((n,), name=name) for n, name in ((40, "A"), (9, "B")))
    joined = te.compute(
        (49,), lambda i: te.if_then_else(i < 40, a[te.min(i, 39)], b[te.max(i - 40, 0)]), name="C"
    )
    s = te.create_schedule(joined.op)
    _, inner = s[joined].split(joined.op.axis[0], factor=8, tail="shift")
    s[joined].vectorize(inner)
    func = verify(run_pipeline(te.lower(s, [a, b, joined])), "ready")
    assert lanes_stored(func) == {8, 1}
    x, y, z = np.arange(40, dtype="float32"), np.arange(50, 59, dtype="float32"), np.zeros(49, "f4")
    run(func, x, y, z)
    np.testing.assert_array_equal(z, np.concatenate([x, y]))


def joined(widths, body, right=True, lanes=8):
    """Lower ``C[i] = body(parts of `widths` joined, i)``; return it, its inputs and their row."""
    parts = [te.placeholder((n,), name=f"P{k}") for k, n in enumerate(widths)]
    starts = np.cumsum([0, *widths])

    def pick(i):
        loads = [
            p[te.min(te.max(i - int(s), 0), p.shape[0] - 1)]
            for p, s in zip(parts, starts, strict=False)
        ]
        if right:  # the first part is asked for first
            value = loads[-1]
            for load, end in list(zip(loads, starts[1:], strict=True))[-2::-1]:
                value = te.if_then_else(i < int(end), load, value)
        else:
            value = loads[0]
            for load, start in list(zip(loads, starts, strict=False))[1:]:
                value = te.if_then_else(i >= int(start), load, value)
        return value

    whole = te.compute((int(starts[-1]),), lambda i: body(pick, i), name="C")
    s = te.create_schedule(whole.op)
    _, inner = s[whole].split(whole.op.axis[0], factor=lanes, tail="shift")
    s[whole].vectorize(inner)
    func = verify(run_pipeline(te.lower(s, [*parts, whole])), "ready")
    rows = [np.arange(n, dtype="float32") + 10 * k for k, n in enumerate(widths)]
    return func, rows, np.concatenate(rows)


READERS = (
    lambda pick, i: pick(i),
    lambda pick, i: pick(i) * pick(i) + pick(i),
    lambda pick, i: pick(i) + te.if_then_else(i < 33, pick(i), 2 * pick(i)),
)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("body", READERS)
@pytest.mark.parametrize(
    "widths", [(20, 9), (17, 3, 30), (3, 2, 1, 5, 4, 6), (40, 1, 24, 8, 16), (8, 16, 24)]
)
def test_lanes_of_joined_parts_have_the_numbers_of_the_row(widths, body, right):
    func, rows, row = joined(widths, body, right)
    z = np.zeros(len(row), "float32")
    run(func, *rows, z)
    np.testing.assert_array_equal(
        z,
        [row, row * row + row, row + np.where(np.arange(len(row)) < 33, row, 2 * row)][
            READERS.index(body)
        ],
    )


@pytest.mark.parametrize("right", [True, False])
def test_forms_of_joined_parts_are_as_many_as_parts_for_any_number_of_readers(right):
    """Not one for each part and reader, and nothing of what is left inside of each of them."""

    def nodes(parts, readers):
        def body(pick, i):
            value = pick(i)
            for _ in range(readers - 1):
                value = value * pick(i)
            return value

        func, _, _ = joined((24,) * parts, body, right)
        stores = [n.value.lanes for n in walk(func.body) if isinstance(n, S.BufferStore)]
        assert sorted(stores) == [1] + [8] * parts
        return sum(1 for _ in walk(func.body))

    assert nodes(32, 1) < 2.5 * nodes(16, 1)
    assert nodes(16, 4) < 4.5 * nodes(16, 1)
    assert nodes(32, 4) < 2.5 * nodes(16, 4)


def test_mirrored_lanes_are_one_load_and_a_shuffle():
    func = vectorized(lambda a, i: a[te.max(i - 3, 3 - i)], n=64)
    assert lanes_stored(func) == {16}
    assert not any(
        isinstance(n, E.BufferLoad) and not isinstance(n.indices[0], E.Ramp)
        for n in walk(func.body)
    )
    x, y = numbers(func)
    np.testing.assert_array_equal(y, x[np.abs(np.arange(64) - 3)])


def test_what_a_let_binds_in_each_lane_is_no_constant_of_the_loop():
    def body(a, i):
        index, other = E.Var("index", "int32"), E.Var("other", "int32")
        inner = E.Let(other, te.max(index - 3, 0), a[other] + a[te.min(other + i // 2, 63)])
        return E.Let(index, te.cast(a[i], "int32") * 5, inner)

    func = vectorized(body)
    assert max(lanes_stored(func)) == 16
    x, y = numbers(func)
    index = np.maximum(x.astype(int) * 5 - 3, 0)
    np.testing.assert_array_equal(y, x[index] + x[np.minimum(index + np.arange(64) // 2, 63)])
