"""Unroll: every copy has its own variables, and the numbers stay."""

import numpy as np

from slipway.ir import builder as ir_builder
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.function import PrimFunc
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.loop.unroll_loop import unroll_loop

A, B = decl_buffer((16,), "int32", name="A"), decl_buffer((16,), "int32", name="B")


def function(write):
    ib = ir_builder.create()
    write(ib, ib.buffer_ptr(A), ib.buffer_ptr(B))
    handles = (E.Var("A", "handle"), E.Var("B", "handle"))
    return PrimFunc(handles, ib.get(), ((handles[0], A), (handles[1], B)))


def unrolled_numbers(func):
    after = verify(unroll_loop(func), "ready")
    data = np.arange(16, dtype="int32")[::-1].copy()
    results = []
    for f in (func, after):
        out = np.zeros(16, "int32")
        run(f, data, out)
        results.append(out)
    np.testing.assert_array_equal(*results)
    return after


def test_copies_have_constant_indices():
    def write(ib, a, b):
        with ib.for_range(0, 4, "i", kind="unrolled") as i:
            b[i * 2] = a[i * 2 + 1]

    after = unrolled_numbers(function(write))
    assert "B[6] = A[7]" in str(after)
    assert not any(isinstance(n, S.For) for n in walk(after.body))


def test_let_variables_are_renamed_in_every_copy():
    def write(ib, a, b):
        with ib.for_range(0, 4, "i", kind="unrolled") as i:
            at = ib.let("at", a[i])
            b[at] = i
            b[at // 2] = at + 1

    after = unrolled_numbers(function(write))
    names = [n.var for n in walk(after.body) if isinstance(n, S.LetStmt)]
    assert len(set(names)) == 4


def test_inner_loops_are_renamed_in_every_copy():
    def write(ib, a, b):
        with (
            ib.for_range(0, 2, "i", kind="unrolled") as i,
            ib.for_range(0, 8, "j") as j,
        ):
            b[i * 8 + j] = a[i * 8 + j] + i

    after = unrolled_numbers(function(write))
    loops = [n.loop_var for n in walk(after.body) if isinstance(n, S.For)]
    assert len(set(loops)) == 2


def test_a_loop_over_an_unrolled_range_with_a_begin():
    def write(ib, a, b):
        with (
            ib.for_range(0, 3, "i", kind="unrolled") as i,
            ib.for_range(i, i + 2, "j", kind="unrolled") as j,
        ):
            b[j] = a[j] + i

    assert "B[3] = A[3] + 2" in str(unrolled_numbers(function(write)))


def test_nests_that_come_to_too_many_copies_stay_loops_outside():
    def write(ib, a, b):
        with (
            ib.for_range(0, 80, "i", kind="unrolled") as i,
            ib.for_range(0, 60, "j", kind="unrolled") as j,
        ):
            b[(i * j) % 16] = a[(i + j) % 16]

    after = unrolled_numbers(function(write))
    assert [n.extent for n in walk(after.body) if isinstance(n, S.For)] == [80]
    assert sum(isinstance(n, S.BufferStore) for n in walk(after.body)) == 60
