"""tir.Schedule.cache_index: formulas of axes computed before the block that uses them."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import ScheduleError
from slipway.ir.interpreter.interpret import run
from slipway.script import from_source
from slipway.script import tir as T
from slipway.testing import assert_allclose
from slipway.tir.schedule.testing import verify_trace_roundtrip

RNG = np.random.default_rng(3)


@T.prim_func
def gathered(A: T.Buffer((3, 20, 20), "float32"), B: T.Buffer((3, 24, 30), "float32")):
    for i, j, k in T.grid(3, 24, 30):
        with T.block("B"):
            c, y, x = T.axis.remap("SSS", [i, j, k])
            B[c, y, x] = A[c, y // 4 + x // 4, x // 2] + A[c, y // 4 + x // 4, y % 20]


def of_gathered(a):
    y, x = np.mgrid[:24, :30]
    return a[:, y // 4 + x // 4, x // 2] + a[:, y // 4 + x // 4, y % 20]


def same(sch, func, a, wanted, target="llvm"):
    verify_trace_roundtrip(sch, func)
    out = np.zeros(wanted.shape, "float32")
    run(from_source(sch.mod.script())["main"], a, out)
    assert_allclose(out, wanted, rtol=1e-6)
    made = tvm.nd.empty(wanted.shape)
    tvm.build(sch.mod, target=target)(tvm.nd.array(a), made)
    assert_allclose(made.numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_indices_are_computed_before(target):
    sch = tir.Schedule(gathered)
    i, j, k = sch.get_loops("B")
    sch.split(k, [None, 5])
    made = sch.cache_index(sch.get_block("B"), "global")
    assert [b.name for b in made] == ["index_0", "index_1", "index_2"]
    text = sch.mod.script()
    assert "+ A[c, index_var_0[y, x], index_var_2[y]]" in text
    sch.reorder(j, i)
    sch.vectorize(sch.get_loops(made[1])[0])
    a = RNG.standard_normal((3, 20, 20)).astype("float32")
    same(sch, gathered, a, of_gathered(a), target)


@T.prim_func
def weighted(A: T.Buffer((40,), "float32"), B: T.Buffer((77,), "float32")):
    for i in range(77):
        with T.block("B"):
            v = T.axis.spatial(77, i)
            B[v] = A[
                T.min(T.cast(T.floor(T.cast(v, "float32") * T.float32(0.5)), "int32"), 38)
            ] * (
                T.float32(1)
                - (T.cast(v, "float32") * T.float32(0.5)
                   - T.floor(T.cast(v, "float32") * T.float32(0.5)))
            ) + A[
                T.min(T.cast(T.floor(T.cast(v, "float32") * T.float32(0.5)), "int32"), 38) + 1
            ] * (T.cast(v, "float32") * T.float32(0.5)
                 - T.floor(T.cast(v, "float32") * T.float32(0.5)))  # fmt: skip


@pytest.mark.parametrize(("threshold", "count"), [(0, 2), (1, 4), (2, 2), (3, 1), (7, 0)])
def test_formulas_that_stand_as_often(threshold, count):
    sch = tir.Schedule(weighted)
    assert len(sch.cache_index("B", "global", threshold)) == count
    at = np.arange(77) * np.float32(0.5)
    low = np.minimum(np.floor(at).astype(int), 38)
    a = RNG.standard_normal(40).astype("float32")
    wanted = a[low] * (1 - (at - np.floor(at))) + a[low + 1] * (at - np.floor(at))
    same(sch, weighted, a, wanted.astype("float32"))


def test_axes_that_are_reduced_over_and_do_not_begin_at_zero():
    A = te.placeholder((40, 40), name="A")
    k = te.reduce_axis((2, 5), "k")
    B = te.compute((12, 12), lambda i, j: te.sum(A[i * 2 + k, j * 3 // 2 + k], axis=k), name="B")
    func = te.create_prim_func([A, B])
    sch = tir.Schedule(func)
    assert len(sch.cache_index("B", "global")) == 2
    a = RNG.standard_normal((40, 40)).astype("float32")
    i, j = np.mgrid[:12, :12]
    same(sch, func, a, sum(a[i * 2 + n, j * 3 // 2 + n] for n in (2, 3, 4)))


@T.prim_func
def kept(A: T.Buffer((40,), "int32"), n: T.int32, B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[A[v] + 1] + A[v + n] + A[8 // (v + 1)] + A[v]


def test_what_may_not_be_computed_elsewhere_stays():
    sch = tir.Schedule(kept)
    assert sch.cache_index("B", "global") == []
    assert sch.mod["main"].body is tir.Schedule(kept).mod["main"].body


@pytest.mark.parametrize(
    ("scope", "threshold", "cause"), [("heap", 0, "no memory of scope"), ("global", -1, "from 0")]
)
def test_what_is_asked_wrong(scope, threshold, cause):
    with pytest.raises(ScheduleError, match=cause):
        tir.Schedule(gathered).cache_index("B", scope, threshold)
