"""Each loop pass, alone and after the others, keeps the numbers of random programs."""

import numpy as np
import pytest
from random_programs import Program

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.context import PassContext
from slipway.transform.loop.cut_loops import cut_loops
from slipway.transform.loop.hoist_choice import hoist_choice
from slipway.transform.loop.loop_partition import loop_partition
from slipway.transform.loop.simplify import simplify
from slipway.transform.loop.unroll_loop import unroll_loop
from slipway.transform.loop.vectorize_loop import vectorize_loop

PARTS = range(8)


def seeds(part):
    """Return the seeds of a part: a test of many small programs would be mostly pytest."""
    return range(40 * part, 40 * (part + 1))


@pytest.mark.parametrize("part", PARTS)
def test_cut_loops(part):
    for seed in seeds(part):
        program = Program(seed, hints=True)
        made = cut_loops(program.func)
        program.check(made)
        assert not any(isinstance(n, S.For) and n.annotations for n in walk(made.body))


@pytest.mark.parametrize("part", PARTS)
def test_loop_partition(part):
    for seed in seeds(part):
        program = Program(seed, likely=True, parallel=True)
        with PassContext(config={"tir.LoopPartition": {"partition_const_loop": seed % 2 == 0}}):
            program.check(loop_partition(program.func))


@pytest.mark.parametrize("part", PARTS)
def test_vectorize_loop(part):
    for seed in seeds(part):
        program = Program(seed, vectors=True)
        made = vectorize_loop(program.func)
        program.check(made)
        assert not any(
            isinstance(n, S.For) and n.kind == S.ForKind.VECTORIZED for n in walk(made.body)
        )


@pytest.mark.parametrize("part", PARTS)
def test_hoist_choice(part):
    for seed in seeds(part):
        program = Program(seed, vectors=True)
        program.check(hoist_choice(program.func))


@pytest.mark.parametrize("part", PARTS)
def test_simplify_and_unroll(part):
    for seed in seeds(part):
        program = Program(seed)
        program.check(simplify(unroll_loop(program.func)))


@pytest.mark.parametrize("part", PARTS)
def test_one_after_the_other(part):
    for seed in seeds(part):
        program = Program(seed, hints=True, vectors=seed % 2 == 0, likely=True)
        func = cut_loops(program.func)
        with PassContext(config={"tir.LoopPartition": {"partition_const_loop": seed % 3 == 0}}):
            func = loop_partition(func)
        for after in (hoist_choice, vectorize_loop, unroll_loop, simplify):
            func = after(func)
        program.check(func, "ready")


# -- what random programs found, each once by itself -----------------------------------------------

A, OUT = decl_buffer((200,), name="A"), decl_buffer((200,), name="Out")


def function(body):
    handles = E.Var("A", "handle"), E.Var("Out", "handle")
    return PrimFunc(handles, body, ((handles[0], A), (handles[1], OUT)))


def numbers(func):
    out = np.full(200, -7, "float32")
    run(func, np.arange(200, dtype="float32"), out)
    return out


def loop(var, first, extent, body, kind=S.ForKind.SERIAL):
    return S.For(var, ops.const(first), ops.const(extent), kind, body)


def test_a_check_holds_in_each_piece_of_a_loop_that_was_cut():
    """The pieces have one variable; the check of the last piece was once taken for that of all."""
    y, x = E.Var("y"), E.Var("x")
    check = E.Call("bool", "likely", (E.LT(y * 8 + 7 - x, ops.const(98)),))
    pieces = [
        loop(x, first, 2, S.IfThenElse(check, S.BufferStore(OUT, A[y * 8 + x], (y * 8 + x,)), None))
        for first in (0, 6)
    ]
    func = function(loop(y, 0, 14, S.seq(pieces)))
    made = loop_partition(func)
    assert made is not func
    np.testing.assert_array_equal(numbers(made), numbers(func))


def test_a_check_does_not_leave_the_name_it_asks_for():
    y, x, name = E.Var("y"), E.Var("x"), E.Var("name")
    check = E.Call("bool", "likely", (E.LT(name + y + x, ops.const(12)),))
    guarded = S.IfThenElse(check, S.BufferStore(OUT, A[y], (y * 8 + x,)), None)
    func = function(loop(y, 0, 9, S.LetStmt(name, y % 3, loop(x, 0, 8, guarded))))
    made = verify(loop_partition(func), "flat")
    np.testing.assert_array_equal(numbers(made), numbers(func))


@pytest.mark.parametrize("use", ["condition", "index", "guard"])
def test_names_of_values_that_differ_between_lanes(use):
    v, name = E.Var("v"), E.Var("name")
    body = S.BufferStore(OUT, A[name + 1] if use == "index" else A[v], (v,))
    if use == "condition":
        value = E.Call("float32", "if_then_else", (name < 9, A[name], ops.const(0.0, "float32")))
        body = S.BufferStore(OUT, E.Let(name, v * 2, value), (v,))
    else:
        if use == "guard":
            body = S.IfThenElse(E.GE(name, ops.const(5)), body, None)
        body = S.LetStmt(name, v * 2, body)
    func = function(loop(v, 0, 21, body, S.ForKind.VECTORIZED))
    made = verify(vectorize_loop(func), "flat")
    np.testing.assert_array_equal(numbers(made), numbers(func))


def test_a_choice_does_not_leave_the_name_it_asks_for():
    i, v, name = E.Var("i"), E.Var("v"), E.Var("name")
    value = E.Call("float32", "if_then_else", (name < 3, A[v], ops.const(0.0, "float32")))
    store = S.BufferStore(OUT, E.Let(name, i % 5, value), (i * 8 + v,))
    func = function(loop(i, 0, 9, loop(v, 0, 8, store, S.ForKind.VECTORIZED)))
    made = verify(hoist_choice(func), "flat")
    np.testing.assert_array_equal(numbers(made), numbers(func))


def test_loops_of_one_variable_in_a_vector():
    """What an index is in the first of them it is not in the second."""
    v, k = E.Var("v"), E.Var("k")
    index = v * 8 + k
    store = S.BufferStore(OUT, A[index] + 1.0, (index,))
    both = S.seq([loop(k, 0, 1, store), loop(k, 1, 5, store)])
    func = function(loop(v, 0, 16, both, S.ForKind.VECTORIZED))
    made = vectorize_loop(func)
    np.testing.assert_array_equal(numbers(made), numbers(func))
    assert {n.value.lanes for n in walk(made.body) if isinstance(n, S.BufferStore)} == {16}


def test_an_unrolled_loop_whose_end_the_loop_around_it_decides():
    i, j = E.Var("i"), E.Var("j")
    inner = S.For(j, ops.const(0), ops.minimum(i, ops.const(7)), S.ForKind.UNROLLED,
                  S.BufferStore(OUT, A[j], (i * 8 + j,)))  # fmt: skip
    func = function(loop(i, 3, 1, inner))
    made = verify(simplify(unroll_loop(func)), "ready")
    np.testing.assert_array_equal(numbers(made), numbers(func))
