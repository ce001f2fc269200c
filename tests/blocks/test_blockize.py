"""blockize of tir.Schedule: loops and their block as a block of their own."""

import numpy as np
import pytest

from slipway import te, tir
from slipway.errors import ScheduleError
from slipway.ir.interpreter.interpret import run
from slipway.script import from_source
from slipway.script import tir as T

RNG = np.random.default_rng(2)
A_NP, B_NP = (RNG.integers(-4, 5, shape).astype("float32") for shape in ((12, 8), (8, 6)))


def product():
    A, B = te.placeholder((12, 8), name="A"), te.placeholder((8, 6), name="B")
    k = te.reduce_axis((0, 8), "k")
    C = te.compute((12, 6), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((12, 6), lambda i, j: C[i, j] + 1.0, name="D")
    return tir.Schedule(te.create_prim_func([A, B, D]))


def check(s):
    out = np.full((12, 6), 7, "float32")
    run(from_source(s.mod.script())["main"], A_NP, B_NP, out)
    np.testing.assert_array_equal(out, A_NP @ B_NP + 1)


@pytest.mark.parametrize("depth", range(6))
def test_from_any_loop_inwards(depth):
    s = product()
    i, j, k = s.get_loops("C")
    loops = [s.split(loop, [None, 2]) for loop in (i, j, k)]
    s.reorder(*(outer for outer, _ in loops), *(inner for _, inner in loops))
    around = s.get_loops("C")
    made = s.blockize(around[depth])
    assert made.name == "C_o"
    assert [x.var for x in s.get_loops(made)] == [x.var for x in around[:depth]]
    assert [x.var for x in s.get_loops("C")] == [x.var for x in around[depth:]]
    assert [b.name for b in s.get_consumers("C")] == ["D"]
    check(s)


def test_blocks_around_blocks_and_what_moves_later():
    s = product()
    i, j, _ = s.get_loops("C")
    io, ii = s.split(i, [3, 4])
    jo, ji = s.split(j, [3, 2])
    s.reorder(io, jo, ii, ji)
    s.blockize(ii)
    s.blockize(jo)
    s.reverse_compute_at("D", io)
    check(s)
    with pytest.raises(ScheduleError, match="holds the blocks"):
        s.compute_inline("C_o")


def test_what_is_refused():
    s = product()
    i, j, k = s.get_loops("C")
    io, ii = s.split(i, [None, 5])
    s.reorder(io, j, k, ii)
    with pytest.raises(ScheduleError, match="boundary check"):
        s.blockize(ii)

    @T.prim_func
    def shifted(A: T.Buffer((8,), "float32"), B: T.Buffer((9,), "float32")):
        for io, ii in T.grid(2, 4):
            with T.block("B"):
                v = T.axis.spatial(9, io * 4 + ii + 1)
                B[v] = A[v - 1]

    s = tir.Schedule(shifted)
    with pytest.raises(ScheduleError, match="not at a multiple of the 4 steps"):
        s.blockize(s.get_loops("B")[1])
