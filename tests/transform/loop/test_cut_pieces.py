"""Where loops with a hint are cut: the pieces that come out, and the ends that guards become."""

import numpy as np
import pytest

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.loop.cut_loops import HINT, cut_loops

A, OUT = decl_buffer((900,), name="A"), decl_buffer((900,), name="Out")
STATE = decl_buffer((4,), "int32", name="State")
Y, X, R = (E.Var(n) for n in "yxr")


def loop(var, extent, body, hint=False, first=0):
    notes = ((HINT, True),) if hint else ()
    return S.For(var, ops.const(first), ops.const(extent), S.ForKind.SERIAL, body, None, notes)


def store(value=None, at=0):
    return S.BufferStore(OUT, (A[X] if value is None else value) + 1.0, ((Y * 8 + X) * 4 + R + at,))


def nest(body, x=8, y=6, r=1):
    """Return a function with `body` in a loop over R, in a hinted one over X, in one over Y."""
    handles = tuple(E.Var(b.name, "handle") for b in (A, OUT, STATE))
    inner = body if r == 0 else loop(R, r, body)
    full = loop(Y, y, loop(X, x, inner, True))
    return PrimFunc(handles, full, tuple(zip(handles, (A, OUT, STATE), strict=True)))


def numbers(func):
    calls = []
    out, state = np.full(900, -7, "float32"), np.arange(4, dtype="int32")
    packed = {"called": lambda *a: calls.append(a) or 0}
    run(func, np.arange(900, dtype="float32"), out, state, packed=packed)
    return np.concatenate([out, state, [len(calls)]])


def cut(func):
    made = verify(cut_loops(func), "flat")
    np.testing.assert_array_equal(numbers(made), numbers(func))
    return made


def pieces(made):
    """Return (first step, steps) of the loops over X."""
    loops = [n for n in walk(made.body) if isinstance(n, S.For) and n.loop_var.name == "x"]
    return [(ops.as_int(n.min), ops.as_int(n.extent)) for n in loops]


def asked(made):
    return [n for n in walk(made.body) if isinstance(n, (E.LT, E.LE, E.GT, E.GE))]


def choice(condition):
    return store(E.Call("float32", "if_then_else", (condition, A[X], ops.const(5.0, "float32"))))


def guarded(condition, body):
    return S.IfThenElse(condition, body, None)


# -- pieces ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", range(-1, 10))
def test_a_choice_of_the_loop_alone_is_made_in_every_piece(end):
    for condition, first in (
        (E.LT(X, ops.const(end)), end), (E.GE(X, ops.const(end)), end),
        (E.GT(X, ops.const(end)), end + 1), (E.LE(X * 2, ops.const(2 * end)), end + 1),
    ):  # fmt: skip
        made = cut(nest(choice(condition)))
        assert not asked(made)
        inside = min(max(first, 0), 8)
        assert pieces(made) == [p for p in ((0, inside), (inside, 8 - inside)) if p[1]]


def test_a_step_that_the_loop_inside_decides_stands_alone():
    made = cut(nest(choice(E.LT(E.FloorDiv(X + R, ops.const(2)), ops.const(2))), x=6, r=4))
    assert pieces(made) == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 2)]


def test_steps_that_an_outer_loop_has_a_say_in_stay_together():
    made = cut(nest(choice(E.LT(Y + X + R, ops.const(9))), r=3))
    assert pieces(made) == [(0, 2), (2, 6)]


def test_more_single_steps_than_are_worth_copies_stay_together():
    few, many = (pieces(cut(nest(choice(E.LT(X + R, ops.const(12))), x=16, r=r))) for r in (6, 13))
    assert (7, 1) in few
    assert len(few) == 7
    assert many == [(0, 12), (12, 4)] or len(many) < 4


def test_a_condition_that_nothing_decides_leaves_the_loop_as_it_is():
    func = nest(choice(E.LT(X * Y, ops.const(9))), x=3)
    made = cut(func)
    assert pieces(made) in ([(0, 3)], [(0, 2), (2, 1)])
    made = cut(nest(choice(E.LT(A[X], ops.const(3.0, "float32")))))
    assert pieces(made) == [(0, 8)]


def test_a_program_without_hints_is_the_same_object():
    body = S.seq([loop(X, 3, store(A[X] * 0.0, 0)), S.BufferStore(OUT, A[0], (ops.const(0),))])
    handles = tuple(E.Var(b.name, "handle") for b in (A, OUT))
    func = PrimFunc(handles, body, tuple(zip(handles, (A, OUT), strict=True)))
    assert cut_loops(func) is func
    first = S.seq([S.BufferStore(OUT, A[0], (ops.const(0),)), loop(X, 3, store(A[X] * 0.0, 0))])
    func = PrimFunc(handles, first, func.buffer_map)
    assert cut_loops(func) is func


# -- guards that become ends -----------------------------------------------------------------------

OUTER = E.LT(Y + X, ops.const(9))
OTHER = E.GE(X + Y, ops.const(3))


def test_a_guard_inside_of_a_further_loop_becomes_the_ends():
    made = cut(nest(guarded(OUTER, store()), r=3))
    assert not asked(made)


def test_ends_are_never_below_the_beginning():
    made = cut(nest(guarded(E.LT(Y * 3 + X, ops.const(7)), store())))
    assert not asked(made)
    (only,) = (n for n in walk(made.body) if isinstance(n, S.For) and n.loop_var.name == "x")
    for y in range(6):
        steps = eval(str(only.extent), {"y": y, "max": max, "min": min})
        assert steps == max(0, min(8, 7 - y * 3))


def test_what_all_parts_of_a_sequence_ask_for_becomes_the_ends():
    made = cut(nest(S.seq([guarded(OUTER, store()), guarded(OUTER, store(A[X + 1], 300))])))
    assert not asked(made)
    both = guarded(E.And(OUTER, OTHER), store(A[X + 1], 300))
    for parts in ([guarded(OUTER, store()), both], [both, guarded(OUTER, store())]):
        assert len(asked(cut(nest(S.seq(parts))))) == 1
    third = guarded(OUTER, store(A[X + 2], 600))
    assert len(asked(cut(nest(S.seq([both, guarded(OUTER, store()), third]))))) == 1


def test_what_only_some_parts_ask_for_stays():
    for parts in (
        [guarded(OUTER, store()), store(A[X + 1], 300)],
        [store(), guarded(OUTER, store(A[X + 1], 300))],
        [guarded(OUTER, store()), guarded(OTHER, store(A[X + 1], 300))],
        [guarded(OUTER, store()), guarded(OUTER, store(A[X + 1], 300)), store(A[X + 2], 600)],
        [guarded(OUTER, store()), store(A[X + 1], 300), guarded(OUTER, store(A[X + 2], 600))],
    ):
        assert asked(cut(nest(S.seq(parts))))
    other_case = S.IfThenElse(OUTER, store(), store(A[X + 1], 300))
    assert asked(cut(nest(other_case)))


def test_a_prefetch_beside_may_run_less_often_but_a_call_may_not():
    address = E.Call("handle", "address_of", (A[X],))
    prefetch = S.Evaluate(E.Call("int32", "prefetch", (address, *map(ops.const, (0, 3, 1)))))
    for parts in ([guarded(OUTER, store()), prefetch], [prefetch, guarded(OUTER, store())]):
        assert not asked(cut(nest(S.seq(parts))))
    call = S.Evaluate(E.Call("int32", "call_extern", (E.StringImm("called"), X)))
    for parts in ([guarded(OUTER, store()), call], [call, guarded(OUTER, store())]):
        made = cut(nest(S.seq(parts)))
        assert asked(made)
        assert numbers(made)[-1] == 48
    assert not asked(cut(nest(S.SeqStmt((guarded(OUTER, store()), S.NOP)))))


def test_a_guard_that_the_loop_changes_or_that_asks_twice_stays_a_guard():
    """On memory that a step writes; on the loop's variable also inside of a quotient."""
    step = S.BufferStore(STATE, STATE[0] + 1, (ops.const(0),))
    cut(nest(guarded(E.LT(STATE[0] + X, ops.const(9)), S.seq([store(), step]))))
    twice = E.LT(X + E.FloorDiv(X, ops.const(2)) + Y, ops.const(6))
    cut(nest(guarded(twice, store())))
    deeper = E.LT(X + R + Y, ops.const(6))
    cut(nest(guarded(deeper, store()), r=3))
