"""What lanes have in common is computed once, and what a step does is done by each lane."""

import pytest
from vector_loops import OUT, A, B, U, V, in_lanes, one_vector, pieces, ran, store

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


def test_statements_one_after_the_other():
    first, second = store(A[V], V), S.BufferStore(OUT, B[V] + 1.0, (V + 100,))
    made = in_lanes(S.SeqStmt((first, S.NOP, second)), 16)
    assert ran(made) == [16, 16]
    assert ran(in_lanes(S.SeqStmt((first, S.BufferStore(OUT, A[V], (U + 300,)))), 16)) == [1] * 32
