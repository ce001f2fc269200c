"""What lanes have in common is computed once, and what a step does is done by each lane."""

import itertools

import numpy as np
import pytest
from vector_loops import OUT, TABLE, A, B, U, V, in_lanes, one_vector, pieces, ran, store

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.visit import walk
from slipway.target import Target
from slipway.transform.loop.vectorize_loop import vectorize_loop


@pytest.mark.parametrize(("bits", "held"), [(8, 0), (64, 2), (1024, 32)])
def test_pieces_of_registers_that_are_narrow_or_wider_than_a_piece(bits, held):
    target = Target(f"llvm -mtriple=x86_64-linux-gnu -vector-width={bits}")
    for extent in range(1, 40):
        made = in_lanes(store(A[V] * 2.0, V), extent, target=target)
        assert ran(made) == pieces(extent, 16, held)


@pytest.mark.parametrize("extent", [2, 8, 16])
def test_what_all_lanes_have_in_common_is_no_vector(extent):
    """(16 * u + v) // 16 is u as long as v stays below 16, and is not for one step more."""
    for shift in range(2):
        index = (U * extent + V + shift) // extent
        value = one_vector(E.Cast("float32", index), extent).value
        assert isinstance(value, E.Broadcast) == (shift == 0)


def test_the_steps_of_a_loop_around_that_has_no_lanes_are_known():
    k = E.Var("k")
    guard = S.IfThenElse(V * 8 + k < 160, store(A[k], V * 8 + k), None)
    inner = S.For(k, ops.const(0), ops.const(8), S.ForKind.VECTORIZED, guard)
    made = in_lanes(inner, 20)
    assert ran(made) == [8] * 20
    chosen = [n for n in walk(made.body) if isinstance(n, S.IfThenElse)]
    conditions = [n.condition for n in chosen if n.else_case is not None]
    assert conditions
    assert all(isinstance(c, E.IntImm) and c.value for c in conditions)


def choice(condition, yes, no):
    return E.Call("float32", "if_then_else", (condition, yes, no))


@pytest.mark.parametrize("extent", [2, 20])
def test_a_choice_reads_no_memory_that_another_guards(extent):
    """The table has 400 numbers: it must not be asked for those of u = 2 and 3."""
    zero = ops.const(0.0, "float32")
    for no in (B[V], zero, A[U] + B[V]):
        for condition in (TABLE[U * 200] + V > 3, TABLE[U * 200 + V] > 0, TABLE[U * 200] < V + 3):
            for inner in (choice(condition, A[V], no), choice(condition, no, A[V]) + B[U]):
                made = in_lanes(store(choice(U < 2, inner, zero)), extent, outer=4)
                assert set(ran_values(made)) == {1}
                in_lanes(store(choice(U >= 2, zero, inner)), extent, outer=4)
    # One that no lane changes is asked where it stands, and so is one that nothing guards.
    one = choice(TABLE[U * 200] > 0, A[V], B[V])
    assert set(ran_values(in_lanes(store(choice(U < 2, one, zero)), 16, outer=4))) == {16}
    two = ops.const(2.0, "float32")
    plain = choice(U < 2, choice(TABLE[U * 200] + V > 3, two, zero), two)
    assert set(ran_values(in_lanes(store(plain), 16, outer=4))) == {16}
    count = E.Call("int32", "if_then_else", (TABLE[V] > 0, TABLE[U], ops.const(2)))
    assert set(ran_values(in_lanes(store(choice(count > 1, two, zero)), 16))) == {1}
    count = E.Call("int32", "if_then_else", (TABLE[U] + V > 3, TABLE[V], ops.const(2)))
    assert set(ran_values(in_lanes(store(choice(count > 1, two, zero)), 16))) == {16, 1}
    count = E.Call("int32", "if_then_else", (TABLE[V] > 0, ops.const(1), ops.const(2)))
    one_vector(choice(count + U > 1, two, zero) + A[V])
    free = choice(TABLE[U] + V > 3, A[V], zero)
    assert set(ran_values(in_lanes(store(free + A[V]), 16, outer=4))) == {16, 1}


def ran_values(made):
    """The lanes of each store that is written: which of them run, memory decides."""
    return [n.value.lanes for n in walk(made.body) if isinstance(n, S.BufferStore)]


def test_lanes_that_choose_by_both_ends_between_two_loads():
    """A condition on both ends of a stretch: in vectors where all of them are inside of it."""
    inside = E.And(U * 8 + V >= 8, U * 8 + V < 24)
    made = in_lanes(store(choice(inside, A[V], B[V])), 8, outer=4)
    assert ran(made) == [1] * 8 + [8, 8] + [1] * 8


def joined(widths, shape):
    """An expression in v: the elements of as many parts, each read from a place of its own."""
    ends = np.cumsum(widths).tolist()

    def part(n):
        return (A if n % 2 else B)[U * 8 + V + 2 * n]

    def tree(first, last):
        if last - first == 1:
            return part(first)
        middle = {"left": last - 1, "right": first + 1, "balanced": (first + last) // 2}[shape]
        return choice(ends[middle - 1] > U * 8 + V, tree(first, middle), tree(middle, last))

    return tree(0, len(widths))


@pytest.mark.parametrize("shape", ["left", "right", "balanced"])
def test_parts_narrower_than_the_lanes_have_no_form(shape):
    for widths in ((3, 2, 1, 5, 4, 6, 3), (3, 8, 7, 9, 6), (24, 1, 24), (8, 8), (7, 9, 8)):
        outer = sum(widths) // 8
        made = in_lanes(store(joined(widths, shape), U * 8 + V), 8, outer=outer)
        forms = [lanes for lanes in ran_values(made) if lanes > 1]
        assert len(forms) == sum(width >= 8 for width in widths), (widths, made)
        ends = [0, *np.cumsum(widths)]
        expected = []
        for first in range(0, 8 * outer, 8):
            alike = any(a <= first and first + 8 <= b for a, b in itertools.pairwise(ends))
            expected += [8] if alike else [1] * 8
        assert ran(made) == expected


@pytest.mark.parametrize("shape", ["left", "right", "balanced"])
def test_no_more_forms_than_there_may_be(shape, monkeypatch):
    for most in (1, 2, 3, 5):
        monkeypatch.setattr("slipway.transform.loop.lanes.MOST_FORMS", most)
        made = in_lanes(store(joined((8,) * 5, shape), U * 8 + V), 8, outer=5)
        assert sum(lanes > 1 for lanes in ran_values(made)) == most


def asked_on_the_way(stmt):
    """How many conditions at most are asked before a store."""
    match stmt:
        case S.For():
            return asked_on_the_way(stmt.body)
        case S.IfThenElse():
            return 1 + max(asked_on_the_way(stmt.then_case), asked_on_the_way(stmt.else_case))
    return 0


@pytest.mark.parametrize("shape", ["left", "right", "balanced"])
def test_long_joins_grow_with_their_parts_and_balanced_ones_are_halved(shape):
    nodes, conditions = [], []
    for parts in (16, 32):
        body = store(joined((8,) * parts, shape), U * 8 + V)
        made = in_lanes(body, 8, outer=parts)
        nodes.append(sum(1 for _ in walk(made.body)))
        conditions.append(asked_on_the_way(made.body))
    assert nodes[1] < (2.5 if shape != "balanced" else 3) * nodes[0]
    assert conditions == ([16, 18] if shape == "balanced" else [16, 32])


def test_a_name_of_lanes_inside_of_a_choice_stays_one_of_each_step():
    name = E.Var("name")
    for index in (TABLE[V] + 20, TABLE[U] + V + 20):
        value = choice(U * 16 + V < 20, A[name], ops.const(7.0, "float32"))
        made = in_lanes(S.LetStmt(name, index, store(value)), 20, outer=3)
        assert set(ran_values(made)) == {1}


def test_statements_one_after_the_other():
    first, second = store(A[V], V), S.BufferStore(OUT, B[V] + 1.0, (V + 100,))
    assert ran(in_lanes(S.NOP, 16)) == []
    made = in_lanes(S.SeqStmt((first, S.NOP, second)), 16)
    assert ran(made) == [16, 16]
    assert ran(in_lanes(S.SeqStmt((first, S.BufferStore(OUT, A[V], (U + 300,)))), 16)) == [1] * 32


# -- names, calls and loops inside -----------------------------------------------------------------


@pytest.mark.parametrize("mentions", ["the name", "the name and a lane", "the name twice"])
def test_a_choice_of_loads_by_a_name_of_its_own_runs_step_by_step(mentions):
    """What it depends on has no meaning in front of the store."""
    name = E.Var("name")
    condition = {
        "the name": name >= 0, "the name and a lane": name + V >= 5,
        "the name twice": E.And(name >= 0, name < 30),
    }[mentions]  # fmt: skip
    for index in (V * 3 - 9, U + V):
        inner = choice(condition, A[ops.maximum(V, 3)], ops.const(0.0, "float32"))
        made = in_lanes(store(E.Let(name, index, inner)), 20, outer=2)
        assert set(ran_values(made)) == {1}


def test_a_name_in_what_is_chosen_is_one_of_all_lanes():
    zero = ops.const(0.0, "float32")
    below = U * 16 + V < 20
    name, whole = E.Var("name", "float32"), E.Var("whole")
    for value in (
        E.Let(name, A[V] * 2.0, choice(below, B[V] + name, zero)),
        E.Let(whole, TABLE[V] + 20, choice(below, B[whole], zero)),
        E.Let(name, A[V] * 2.0, choice(below, B[V], A[V]) + name),
    ):
        assert set(ran_values(in_lanes(store(value), 20, outer=3))) == {16, 4, 1}


def test_a_place_by_a_float_with_a_name_is_gathered():
    name = E.Var("name", "float32")
    for more in (V // 2, V, ops.maximum(V, 3)):
        index = more + 20 + E.Cast("int32", name)
        one_vector(E.Let(name, A[V] + 1.0, B[index]))


def test_lanes_at_one_place_that_no_sum_shows_are_one_load():
    """v * v + v is even."""
    only = one_vector(A[(V * V + V) % 2 + 7])
    assert isinstance(only.value, E.Broadcast)
    assert only.value.value.lanes == 1


@pytest.mark.parametrize("extent", [2, 16])
def test_a_value_that_is_read_ahead_of_the_store_is_guarded_too(extent):
    """Unguarded, the loads of a choice would reach past the end."""
    name, zero = E.Var("name", "float32"), ops.const(0.0, "float32")
    half = extent // 2
    below, above, past = E.LT(V, ops.const(half)), E.GE(V, ops.const(half)), V + (400 - half)
    for chosen in (
        choice(below, A[past], zero), choice(above, zero, A[past]),
        choice(below, A[past], B[V]), choice(above, A[V], B[past]),
    ):  # fmt: skip
        made = in_lanes(S.LetStmt(name, chosen, store(name)), extent)
        assert ran(made) == [1] * extent


def test_parts_that_no_lane_changes_are_the_same_for_all():
    plain = U + V - V  # a sum of v that v is not in
    two = ops.const(2.0, "float32")
    for part in (A[plain] * 2.0, two * A[plain], A[plain] - B[plain]):
        one_vector(part + A[V])
    for args in ((A[plain] * 0.0 + 2.0, two), (two, A[plain])):
        one_vector(E.Call("float32", "pow", args) + A[V])
    one_vector(E.Select(A[plain] > 0.0, two, B[plain]) + A[V])


def vector_of(value):
    """The value of the store that a loop of 16 lanes becomes; it is not run."""
    loop = S.For(V, ops.const(0), ops.const(16), S.ForKind.VECTORIZED, store(value, V))
    made = vectorize_loop(PrimFunc((), loop, ())).body
    (found,) = (n.value for n in walk(made) if isinstance(n, S.BufferStore))
    return found


def test_calls_without_arguments_are_the_same_for_all_lanes():
    call = E.Call("float32", "random_number", ())
    assert vector_of(A[V] + call).b.value is call
    text = E.Call("float32", "call_pure_extern", (E.StringImm("zero"),))
    assert vector_of(A[V] + text).b.value is text


def test_vectors_inside_of_a_step_stay_vectors_of_the_step():
    wide = E.Var("wide", "float32x2")
    assert vector_of(A[V] + E.Call("float32", "exp", (wide + wide,))).lanes == 1


def test_values_that_are_read_twice_are_made_once():
    """Thirty times the square of the one before: expanded, that would be 2 ** 30 products."""
    value = A[V]
    for _ in range(30):
        value = value * value
    found = vector_of(value)
    assert sum(isinstance(n, E.Mul) for n in walk(found)) == 30


def test_conditions_that_are_no_sums_are_asked_beside_those_that_are():
    for extra in (A[U] > 0.0, E.EQ(TABLE[U], ops.const(3)), E.Not(A[U] > 0.0)):
        for guard in (E.And(V < 18, extra), E.And(extra, V < 18)):
            made = in_lanes(S.IfThenElse(guard, store(A[V]), None), 32, outer=4)
            assert set(ran_values(made)) == {16, 1}
    for extent in (2, 16):
        guard = E.And(E.LT(V, ops.const(extent)), A[V] > 0.0)
        made = in_lanes(S.IfThenElse(guard, store(B[V]), None), extent, outer=4)
        assert set(ran_values(made)) == {1}


def test_the_steps_of_a_loop_inside_are_known():
    k = E.Var("k")
    guarded = S.IfThenElse(V + k < 19, S.BufferStore(OUT, OUT[V] + A[V + k], (V,)), None)
    made = in_lanes(S.For(k, ops.const(0), ops.const(4), S.ForKind.SERIAL, guarded), 16)
    assert ran(made) == [16] * 4
    (known,) = (n.condition for n in walk(made.body)
                if isinstance(n, S.IfThenElse) and n.else_case is not None)  # fmt: skip
    assert isinstance(known, E.IntImm)
    start = S.For(k, V + 0, ops.const(4), S.ForKind.SERIAL, S.BufferStore(OUT, A[k], (V,)))
    assert set(ran(in_lanes(start, 2))) == {1}


def test_loops_inside_of_one_variable_have_their_own_ranges():
    """A step reads B[v] in the first loop and B[v + 1] in the second, by the same expression."""
    k = E.Var("k")
    add = S.BufferStore(OUT, OUT[V] + B[V + k // 4], (V,))
    for spans in (((0, 4), (4, 4)), ((4, 4), (0, 4)), ((0, 4), (0, 8))):
        loops = [
            S.For(k, ops.const(first), ops.const(extent), S.ForKind.SERIAL, add)
            for first, extent in spans
        ]
        assert set(ran(in_lanes(S.SeqStmt(tuple(loops)), 16))) == {16}


def test_loads_that_only_seem_to_differ_run_in_a_loop():
    """v // 64 is 0 in all of its 64 steps."""
    made = in_lanes(store(A[(U * 64 + V) // 64] + A[V], V), 64)
    assert any(isinstance(n, S.For) and n.loop_var is not U for n in walk(made.body))
