"""What lanes have in common is computed once, and what a step does is done by each lane."""

import itertools

import numpy as np
import pytest
from vector_loops import OUT, TABLE, A, B, U, V, in_lanes, one_vector, pieces, ran, store

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.visit import walk
from slipway.target import Target


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


def test_a_choice_reads_no_memory_that_another_guards():
    """The table has 400 numbers: it must not be asked for those of u = 2 and 3."""
    zero = ops.const(0.0, "float32")
    for no in (B[V], zero, A[U] + B[V]):
        for asked in (TABLE[U * 200] + V > 3, TABLE[U * 200 + V] > 0, TABLE[U * 200] < V + 3):
            for inner in (choice(asked, A[V], no), choice(asked, no, A[V]) + B[U]):
                made = in_lanes(store(choice(U < 2, inner, zero)), 20, outer=4)
                assert set(ran_values(made)) == {1}
                in_lanes(store(choice(U >= 2, zero, inner)), 20, outer=4)
    # One that no lane changes is asked where it stands, and so is one that nothing guards.
    one = choice(TABLE[U * 200] > 0, A[V], B[V])
    assert set(ran_values(in_lanes(store(choice(U < 2, one, zero)), 16, outer=4))) == {16}
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
        monkeypatch.setattr("slipway.transform.loop.vectorize_loop.MOST_FORMS", most)
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
    nodes, asked = [], []
    for parts in (16, 32):
        body = store(joined((8,) * parts, shape), U * 8 + V)
        made = in_lanes(body, 8, outer=parts)
        nodes.append(sum(1 for _ in walk(made.body)))
        asked.append(asked_on_the_way(made.body))
    assert nodes[1] < (2.5 if shape != "balanced" else 3) * nodes[0]
    assert asked == ([16, 18] if shape == "balanced" else [16, 32])


def test_a_name_of_lanes_inside_of_a_choice_stays_one_of_each_step():
    name = E.Var("name")
    for place in (TABLE[V] + 20, TABLE[U] + V + 20):
        value = choice(V < 9, A[name], ops.const(7.0, "float32"))
        made = in_lanes(S.LetStmt(name, place, store(value)), 20, outer=2)
        assert 1 in ran(made)


def test_statements_one_after_the_other():
    first, second = store(A[V], V), S.BufferStore(OUT, B[V] + 1.0, (V + 100,))
    made = in_lanes(S.SeqStmt((first, S.NOP, second)), 16)
    assert ran(made) == [16, 16]
    assert ran(in_lanes(S.SeqStmt((first, S.BufferStore(OUT, A[V], (U + 300,)))), 16)) == [1] * 32
