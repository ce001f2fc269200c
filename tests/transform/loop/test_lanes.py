"""How many lanes run at once, in each step of the loops around: no fewer than could, no more.

What is written for a step is walked through with the values of the loop variables, and its stores
are counted by their lanes.
"""

import itertools
import random

import pytest
from vector_loops import (
    KINDS,
    LANES,
    OUT,
    TABLE,
    A,
    B,
    U,
    V,
    in_lanes,
    one_vector,
    pieces,
    ran,
    scalar,
    split,
    store,
    stores,
)

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.visit import walk
from slipway.target import Target
from slipway.transform.loop.vectorize_loop import vectorize_loop

# -- pieces ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("extent", [*range(1, 40), 63, 64, 255, 256, 257, 272, 273, 288, 300])
def test_pieces_without_a_target(extent):
    made = in_lanes(store(A[V] * 2.0, V), extent)
    assert ran(made) == pieces(extent)
    kinds = {n.kind for n in walk(made.body) if isinstance(n, S.For) and n.loop_var is not U}
    if extent > LANES:  # as many as 16 are unrolled
        assert kinds == {S.ForKind.UNROLLED if extent // LANES <= 16 else S.ForKind.SERIAL}
    else:
        assert not kinds


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_pieces_that_registers_of_the_target_hold(cpu):
    target = Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
    held = {"x86-64-v2": 4, "x86-64-v3": 8, "x86-64-v4": 16}[cpu]
    for extent in range(1, 40):
        made = in_lanes(store(A[V] * 2.0, V), extent, target=target)
        assert ran(made) == pieces(extent, LANES, held)


@pytest.mark.parametrize(
    ("loads", "stored", "lanes"),
    [("float64", "float32", 8), ("float32", "float64", 8), ("int8", "int8", 64),
     ("int8", "int64", 8), ("uint8", "int16", 32), ("int64", "int32", 8)],
)  # fmt: skip
def test_the_widest_type_of_loads_and_stores_counts(loads, stored, lanes):
    source, result = decl_buffer((200,), loads, name="S"), decl_buffer((200,), stored, name="R")
    body = S.BufferStore(result, E.Cast(stored, source[V]), (V,))
    made = in_lanes(body, 130, buffers=(source, result))
    assert ran(made) == pieces(130, lanes, lanes)


def test_a_cast_on_the_way_counts_too():
    half = decl_buffer((200,), "int8", name="S"), decl_buffer((200,), "int8", name="R")
    wide = E.Cast("int8", E.Cast("int32", half[0][V]) * 3)
    made = in_lanes(S.BufferStore(half[1], wide, (V,)), 130, buffers=half)
    assert ran(made) == pieces(130)
    index = E.Cast("int8", half[0][E.Cast("int32", E.Cast("int64", V))])
    made = in_lanes(S.BufferStore(half[1], index, (V,)), 130, buffers=half)
    assert ran(made)[0] == 16  # an index of 64 bits makes no lane wider: the cast to 32 does


# -- guards and choices ----------------------------------------------------------------------------

ROWS = [(f, g, c) for f in (0, 1, -1, 2) for g in (0, 1, -7) for c in (-33, -16, -3, 0, 5)]


def asked(kind, row):
    f, g, c = row
    return kind(V * f + U * g + c, ops.const(0))


def holds(kind, row, o, v):
    f, g, c = row
    return KINDS[kind](v * f + o * g + c, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("likely", [False, True])
def test_a_guarded_store_runs_in_lanes_where_all_of_them_are_inside(kind, likely):
    for n, row in enumerate(ROWS):
        extent, first = (5, 16, 17, 33, 2)[n % 5], (0, 3)[n % 2]
        condition = asked(kind, row)
        if likely:
            condition = E.Call("bool", "likely", (condition,))
        made = in_lanes(S.IfThenElse(condition, store(A[V]), None), extent, first, outer=4)
        expected = []
        for o in range(4):
            for part in split(range(first, first + extent)):
                inside = [holds(kind, row, o, v) for v in part]
                expected += [len(part)] if all(inside) else [1] * sum(inside)
        assert ran(made) == expected, row


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["padding", "mirrored", "two loads", "both conditions"])
def test_a_choice_runs_in_lanes_where_all_of_them_choose_alike(kind, form):
    for n, row in enumerate(ROWS):
        extent, first = (5, 16, 17, 33, 2)[n % 5], (0, 3)[n % 2]
        condition, also = asked(kind, row), (1, 0, -2)
        if form == "both conditions":
            condition = E.And(condition, asked(E.GE, also))
        other = B[V + 1] if form == "two loads" else ops.const(7.0, "float32")
        sides = (other, A[V]) if form == "mirrored" else (A[V], other)
        value = E.Call("float32", "if_then_else", (condition, *sides))
        made = in_lanes(store(value), extent, first, outer=4)
        expected = []
        for o in range(4):
            for part in split(range(first, first + extent)):
                yes = [
                    holds(kind, row, o, v) and (form[0] != "b" or holds(E.GE, also, o, v))
                    for v in part
                ]
                alike = all(yes) or (form in ("mirrored", "two loads") and not any(yes))
                expected.append([len(part)] if alike or len(part) == 1 else [1] * len(part))
        got = ran(made)
        if (
            row[0] == 0 and form != "both conditions"
        ):  # no lane decides: nothing is asked lane by lane
            expected = [[len(part)] for _ in range(4) for part in split(range(extent))]
        elif all(len(e) > 1 for e in expected if e != [1]):
            # Lanes are never all inside: the pieces may stay loops of steps.
            assert len(got) == sum(map(len, expected))
            continue
        assert got == list(itertools.chain(*expected)), (row, made)


@pytest.mark.parametrize("extent", [2, 5, 16, 17, 20, 40, 64, 272, 290])
def test_a_guard_that_holds_in_every_step_is_not_asked(extent):
    """The loops around have their ranges, and so have the pieces of this one."""
    for condition in (
        E.LT(V, ops.const(extent)),
        E.GE(V, ops.const(0)),
        E.LT(U * extent + V, ops.const(4 * extent)),
        E.GE(U + V, ops.const(0)),
    ):
        made = in_lanes(S.IfThenElse(condition, store(A[V], V), None), extent, outer=4)
        guards = [n for n in walk(made.body) if isinstance(n, S.IfThenElse)]
        conditions = [n.condition for n in guards if next(stores(n.then_case, {})) > 1]
        assert all(isinstance(c, E.IntImm) and c.value for c in conditions), condition
        assert ran(made) == 4 * pieces(extent)


def test_conditions_that_no_sum_decides():
    """On memory, or on remainders: equal in all lanes they are asked once, otherwise per lane."""
    one = TABLE[U] > 0
    made = in_lanes(S.IfThenElse(one, store(A[V]), store(B[V])), 20, outer=4)
    assert {n.value.lanes for n in walk(made.body) if isinstance(n, S.BufferStore)} == {16, 4}
    for per_lane in (TABLE[V] > 0, E.EQ(V, ops.const(3)), E.LT(V % 3, ops.const(1))):
        made = in_lanes(S.IfThenElse(per_lane, store(A[V]), None), 20, outer=4)
        assert {n.value.lanes for n in walk(made.body) if isinstance(n, S.BufferStore)} == {1}
        made = in_lanes(S.IfThenElse(E.LT(V, ops.const(9)), store(A[V]), store(B[V])), 20)
        assert {n.value.lanes for n in walk(made.body) if isinstance(n, S.BufferStore)} == {1}
        value = E.Call("float32", "if_then_else", (per_lane, A[V], ops.const(7.0, "float32")))
        made = in_lanes(store(value), 20)
        assert {n.value.lanes for n in walk(made.body) if isinstance(n, S.BufferStore)} == {1}


def test_a_condition_with_both_kinds_of_parts():
    """What no lane decides is asked as it is, beside the worst lane of what lanes decide."""
    both = E.And(E.LT(V, ops.const(18)), E.GT(TABLE[U], ops.const(0)))
    made = in_lanes(S.IfThenElse(both, store(A[V]), None), 32, outer=4)
    assert {n.value.lanes for n in walk(made.body) if isinstance(n, S.BufferStore)} == {16, 1}
    load = E.GT(TABLE[U] + V, ops.const(3))
    made = in_lanes(S.IfThenElse(load, store(A[V]), None), 32, outer=4)
    assert {n.value.lanes for n in walk(made.body) if isinstance(n, S.BufferStore)} == {16, 1}


# -- expressions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        A[V] + A[U],
        A[U] * 2.0,
        E.Cast("float32", V),
        E.Cast("float32", TABLE[V] + 1),
        E.Cast("float32", V * U + 3),
        E.Select(E.LT(V, ops.const(5)), A[V], B[U]),
        E.Select(E.Not(E.EQ(V % 2, ops.const(0))), A[V], B[V]),
        E.Select(TABLE[U] > 0, A[V], B[U]),
        E.Select(TABLE[V] > 0, A[U], B[U]),
        E.Select(TABLE[U] > 0, A[U], B[V]),
        E.Call("float32", "if_then_else", (TABLE[U] > 0, A[V], B[U])),
        E.Call("float32", "if_then_else", (TABLE[U] > 0, A[U], B[V])),
        E.Call("float32", "if_then_else", (V < 5, E.Cast("float32", V), E.Cast("float32", U))),
        E.Call("float32", "exp", (A[V],)),
        E.Call("float32", "sqrt", (A[U] * 0.0,)) + A[V],
        E.Call("float32", "pow", (A[V] * 0.0 + 2.0, A[U])),
        E.Let(E.Var("t", "float32"), A[V], A[V] + 1.0),
        ops.maximum(A[V], A[U]),
        A[V * 3],
        A[39 - V],
        A[TABLE[V] + 20],
        B[U],
    ],
    ids=str,
)
def test_what_has_a_vector_form(value):
    one_vector(value)


def test_what_has_none_runs_lane_by_lane():
    for value in (
        E.Call("float32", "call_pure_extern", (E.StringImm("sinf"), A[V])),
        E.Call("float32", "if_then_else", (TABLE[V] > 0, A[V], B[V])),
        E.Call("float32", "if_then_else", (TABLE[V] > 0, ops.const(0.0, "float32"), B[V])),
    ):
        loop = S.For(V, ops.const(0), ops.const(16), S.ForKind.VECTORIZED, store(value, V))
        func = PrimFunc((), loop, ())
        lanes = [n.value.lanes for n in walk(vectorize_loop(func).body)
                 if isinstance(n, S.BufferStore)]  # fmt: skip
        assert set(lanes) == {1}, value
    made = in_lanes(store(A[V], ops.const(3)), 16)  # all into one element, in turn
    assert ran(made) == [1] * 16
    wide = E.Var("wide", "float32x16")
    assert wide.lanes == 16


def test_a_call_that_no_lane_changes_stays_the_same_object():
    call = E.Call("float32", "exp", (E.Var("z", "float32"),))
    loop = S.For(V, ops.const(0), ops.const(16), S.ForKind.VECTORIZED, store(A[V] + call, V))
    (value,) = (n.value for n in walk(vectorize_loop(PrimFunc((), loop, ())).body)
                if isinstance(n, S.BufferStore))  # fmt: skip
    assert value.b.value is call


@pytest.mark.parametrize("lanes", [2, 5, 8, 16])
def test_lanes_that_lie_close_are_one_load(lanes):
    rng = random.Random(lanes)
    for _ in range(40):
        k, c, d, shift = rng.choice([1, 2, 3]), rng.randint(1, 5), rng.randint(1, 5), 40
        index = rng.choice([
            V * k // c + shift, V % d + shift, V // c * k - V % d + shift,
            ops.maximum(V * k, c * d) - V, ops.minimum(V, c) * k + V // d,
        ])  # fmt: skip
        offsets = [scalar(index, {V: v}) for v in range(lanes)]
        span = max(offsets) - min(offsets) + 1
        only = one_vector(A[index], lanes)
        loads = [n for n in walk(only.value) if isinstance(n, E.BufferLoad)]
        assert len(loads) == 1
        (load,) = loads
        steps = {b - a for a, b in itertools.pairwise(offsets)}
        if len(steps) == 1 and steps != {0} and isinstance(load.indices[0], E.Ramp):
            continue  # a sum, found to be one
        if span == 1:
            assert load.lanes == 1
        elif span <= 2 * lanes:
            assert load.lanes == span, (index, offsets)
        else:
            assert load.lanes == lanes


# -- loops and names inside ------------------------------------------------------------------------


def test_a_loop_inside_keeps_its_lanes_unless_they_decide_how_long_it_runs():
    k = E.Var("k")

    def inner(first, extent, kind=S.ForKind.SERIAL):
        add = S.BufferStore(OUT, OUT[V] + A[V + k], (V,))
        return in_lanes(S.For(k, first, extent, kind, add), 16, outer=3)

    c = ops.const
    for ends in ((c(0), c(4)), (U + 0, c(4)), (c(1), U + 1)):
        assert set(ran(inner(*ends))) == {16}
        assert set(ran(inner(*ends, S.ForKind.UNROLLED))) == {16}
    for ends in ((V + 0, c(4)), (c(0), V % 4), (V + 0, V % 4)):
        assert set(ran(inner(*ends))) == {1}
    assert set(ran(inner(c(0), c(4), S.ForKind.PARALLEL))) == {1}
    short = in_lanes(S.For(k, c(0), V % 2, S.ForKind.SERIAL, store(A[V])), 2)
    assert set(ran(short)) == {1}


def test_a_vector_loop_inside_of_one_is_the_one_that_has_lanes():
    k = E.Var("k")
    inner = S.For(k, ops.const(0), ops.const(8), S.ForKind.VECTORIZED, store(A[k], V * 8 + k))
    assert ran(in_lanes(inner, 20)) == [8] * 20


def test_statements_that_lanes_share():
    name = E.Var("name")
    for value, lanes in ((U + 1, {16}), (V + 1, {16}), (TABLE[U], {16}), (TABLE[V], {16})):
        body = S.LetStmt(name, value, store(A[V] + E.Cast("float32", name)))
        assert set(ran(in_lanes(body, 16, outer=2))) == lanes
    noted = S.AttrStmt("note", V, ops.const(1), store(A[V]))
    loop = S.For(V, ops.const(0), ops.const(16), S.ForKind.VECTORIZED, noted)
    made = vectorize_loop(PrimFunc((), loop, ())).body
    assert isinstance(made, S.AttrStmt)
    assert made.body.value.lanes == 16
    nothing = S.For(V, ops.const(0), ops.const(16), S.ForKind.VECTORIZED,
                    S.AttrStmt("note", V, ops.const(1), S.NOP))  # fmt: skip
    made = vectorize_loop(PrimFunc((), nothing, ())).body
    assert S.is_nop(made.body)


def test_loads_at_places_that_differ_are_unrolled():
    """x[v // 3]: each piece has its own shuffle, and a loop over them would have none."""
    made = in_lanes(store(A[V // 3], V), 64)
    assert not any(isinstance(n, S.For) and n.loop_var is not U for n in walk(made.body))
    assert sum(isinstance(n, E.BufferLoad) and n.lanes > 1 for n in walk(made.body)) == 4
    made = in_lanes(store(A[V // 3] + A[V], V), 16 * 16)
    assert not any(isinstance(n, S.For) and n.loop_var is not U for n in walk(made.body))
    made = in_lanes(store(A[V], V), 64)
    assert any(isinstance(n, S.For) and n.loop_var is not U for n in walk(made.body))
    made = in_lanes(store(A[V // 3], V), 16 * 17)
    assert any(isinstance(n, S.For) and n.loop_var is not U for n in walk(made.body))
