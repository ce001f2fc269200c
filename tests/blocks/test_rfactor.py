"""rfactor of tir.Schedule: a reduction in two steps, of which the first runs in parallel."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import ScheduleError
from slipway.ir.interpreter.interpret import run
from slipway.script import from_source
from slipway.script import tir as T

A_NP = np.random.default_rng(1).integers(-9, 9, (6, 20)).astype("float32")


def rows(combine=te.sum):
    A = te.placeholder((6, 20), name="A")
    k = te.reduce_axis((0, 20), "k")
    B = te.compute((6,), lambda i: combine(A[i, k], axis=k), name="B")
    return tir.Schedule(te.create_prim_func([A, B]))


def result(s, built=False):
    out = np.full(6, 7, "float32")
    run(from_source(s.mod.script())["main"], A_NP, out)
    if built:
        made = tvm.nd.empty((6,))
        tvm.build(s.mod, target="llvm")(tvm.nd.array(A_NP), made)
        np.testing.assert_array_equal(made.numpy(), out)
    return out


# The last but one: the steps of some parts all lie behind the end, so their sums are zero.
@pytest.mark.parametrize(
    ("factors", "which"),
    [
        ([None, 4], 0),
        ([None, 4], 1),
        ([None, 3], 0),
        ([None, 3], 1),
        ([1, 5, 8], 1),
        ([1, 5, 8], 2),
    ],
)
def test_the_parts_of_a_split_loop(factors, which):
    for axis in (0, 1, -1):
        s = rows()
        loops = s.split(s.get_loops("B")[1], factors)
        part = s.rfactor(loops[which], axis)
        assert part.name == "B_rf"
        np.testing.assert_array_equal(result(s), A_NP.sum(1))
    s.parallel(s.get_loops(part)[0])
    np.testing.assert_array_equal(result(s, built=which == 1), A_NP.sum(1))


def test_parts_run_in_parallel_and_as_lanes():
    s = rows(te.max)
    i, k = s.get_loops("B")
    ko, ki = s.split(k, [None, 4])
    part = s.rfactor(ki, 0)
    i, ko, ki = s.get_loops(part)
    s.reorder(i, ko, ki)
    s.vectorize(ki)
    s.reverse_compute_at("B", i)
    s.parallel(i)
    np.testing.assert_array_equal(result(s, built=True), A_NP.max(1))


def test_what_is_refused():
    s = rows()
    i, k = s.get_loops("B")
    with pytest.raises(ScheduleError, match="does not reduce along it"):
        s.rfactor(i, 0)
    with pytest.raises(ScheduleError, match="factor_axis=3"):
        s.rfactor(k, 3)
    s.decompose_reduction("B", i)
    with pytest.raises(ScheduleError, match="no init"):
        s.rfactor(k, 0)
    fused = rows()
    with pytest.raises(ScheduleError, match="along reduced and other axes"):
        fused.rfactor(fused.fuse(*fused.get_loops("B")), 0)
    A = te.placeholder((6, 20), name="A")
    k = te.reduce_axis((0, 20), "k")
    mean = te.comm_reducer(lambda x, y: x * 0.5 + y * 0.5, lambda t: tir.const(0, t), name="mean")
    B = te.compute((6,), lambda i: mean(A[i, k], axis=k), name="B")
    s = tir.Schedule(te.create_prim_func([A, B]))
    with pytest.raises(ScheduleError, match="is no sum, product"):
        s.rfactor(s.get_loops("B")[1], 0)


def started(combine, start):
    """A reduction whose start is no neutral element of what it does."""
    text = f"""
from slipway.script import tir as T
@T.prim_func
def main(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (6, 20))
    B = T.match_buffer(b, (6,))
    for i, k in T.grid(6, 20):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = {start}
            B[vi] = {combine}
"""
    return tir.Schedule(from_source(text))


@pytest.mark.parametrize(
    ("combine", "start", "wanted"),
    [
        ("B[vi] + A[vi, vk]", "T.float32(3)", lambda a: 3 + a.sum(1)),
        ("A[vi, vk] + B[vi]", "T.cast(vi, 'float32')", lambda a: np.arange(6) + a.sum(1)),
        ("B[vi] * A[vi, vk]", "T.float32(2)", lambda a: 2 * a.prod(1)),
        ("T.max(B[vi], A[vi, vk])", "T.float32(5)", lambda a: np.maximum(a.max(1), 5)),
        ("T.min(B[vi], A[vi, vk])", "T.float32(-5)", lambda a: np.minimum(a.min(1), -5)),
    ],
)
def test_the_start_counts_once(combine, start, wanted):
    given = np.where(A_NP % 3 == 0, 1.0, np.sign(A_NP)).astype("float32")
    for factors in ([None, 4], [None, 3]):
        s = started(combine, start)
        _, inner = s.split(s.get_loops("B")[1], factors)
        s.rfactor(inner, 0)
        made = tvm.nd.empty((6,))
        tvm.build(s.mod, target="llvm")(tvm.nd.array(given), made)
        np.testing.assert_allclose(made.numpy(), wanted(given), rtol=1e-6)


def test_what_writes_elsewhere_than_it_starts_is_refused():
    with pytest.raises(ScheduleError, match=r"its init writes B\[vi\], its body B\[5 - vi\]"):
        s = started("B[5 - vi] + A[vi, vk]", "0.0")
        s.mod = from_source(s.mod.script().replace("B[vi] = B[5 - vi]", "B[5 - vi] = B[5 - vi]"))
        s.rfactor(s.get_loops("B")[1], 0)
    s = started("B[vi] + A[vi, vk]", "0.0")
    s.mod = from_source(s.mod.script().replace("B[vi] =", "B[vk] =").replace("= B[vi]", "= B[vk]"))
    with pytest.raises(ScheduleError, match="is of a reduced axis"):
        s.rfactor(s.get_loops("B")[1], 0)


def test_a_reduction_over_threads_of_no_known_kind_is_refused():
    @T.prim_func
    def last(a: T.Buffer((4, 8), "float32"), d: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 8):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    d[vi] = T.float32(0)
                d[vi] = d[vi] * T.float32(0.5) - a[vi, vk]

    s = tir.Schedule(last)
    with pytest.raises(ScheduleError, match=r"reduce over threads of threadIdx\.x in block 'C'"):
        s.bind(s.get_loops("C")[1], "threadIdx.x")
    with pytest.raises(ScheduleError, match="cannot run loop 'k' thread"):
        s.bind(s.get_loops("C")[1], "blockIdx.x")


def test_a_loop_of_one_step_is_all_of_a_reduction():
    s = rows()
    s.split(s.get_loops("B")[1], [None, 1])
    s.rfactor(s.get_loops("B")[-1], 0)
    np.testing.assert_array_equal(result(s), A_NP.sum(1))

    @T.prim_func
    def fused(a: T.Buffer((6, 20), "float32"), b: T.Buffer((6,), "float32")):
        for i, k, _one in T.grid(6, 20, 1):  # no axis speaks of the last loop
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    b[vi] = T.float32(0)
                b[vi] = b[vi] + a[vi, vk]

    s = tir.Schedule(fused)
    s.rfactor(s.get_loops("B")[-1], 0)
    np.testing.assert_array_equal(result(s), A_NP.sum(1))
