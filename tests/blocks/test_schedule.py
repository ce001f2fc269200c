"""tir.Schedule: what it computes after every step, and what it refuses."""

import random

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import ScheduleError
from slipway.ir.interpreter.interpret import run
from slipway.ir.visit import walk
from slipway.script import from_source

M, N, K = 20, 24, 16
RNG = np.random.default_rng(0)
A_NP, B_NP = RNG.normal(size=(M, K)).astype("float32"), RNG.normal(size=(K, N)).astype("float32")
WANTED = np.maximum((A_NP * 2) @ B_NP, 0) + 1


def function():
    A, B = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B")
    k = te.reduce_axis((0, K), "k")
    A2 = te.compute((M, K), lambda i, j: A[i, j] * 2.0, name="A2")
    C = te.compute((M, N), lambda i, j: te.sum(A2[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((M, N), lambda i, j: tir.Max(C[i, j], 0.0), name="D")
    E = te.compute((M, N), lambda i, j: D[i, j] + 1.0, name="E")
    return te.create_prim_func([A, B, E])


def check(sch, built=False):
    """Compare with NumPy, run from the text that the schedule prints."""
    out = np.full((M, N), 7, "float32")
    again = from_source(sch.mod.script())
    run(again["main"], A_NP, B_NP, out)
    np.testing.assert_allclose(out, WANTED, rtol=1e-4, atol=1e-4)
    if built:
        result = tvm.nd.empty((M, N))
        tvm.build(sch.mod, target="llvm")(tvm.nd.array(A_NP), tvm.nd.array(B_NP), result)
        np.testing.assert_allclose(result.numpy(), WANTED, rtol=1e-4, atol=1e-4)


def test_a_tiled_product():
    s = tir.Schedule(function())
    c = s.get_block("C")
    i, j, k = s.get_loops(c)
    io, ii = s.split(i, [None, 8])
    jo, ji = s.split(j, [None, 8])
    ko, ki = s.split(k, [4, None])
    s.reorder(io, jo, ko, ii, ki, ji)
    s.compute_inline("A2")
    s.compute_inline("D")
    s.reverse_compute_at("E", jo)
    init = s.decompose_reduction(c, ko)
    assert (init.name, c.name) == ("C_init", "C_update")
    s.vectorize(ji)
    s.vectorize(s.get_loops(init)[-1])
    s.parallel(io)
    s.unroll(ki)
    check(s, built=True)


def test_caches_inside_loops():
    s = tir.Schedule(function())
    c = s.get_block("C")
    out = s.cache_write(c, 0, "local")
    io, ii = s.split(s.get_loops(c)[0], [None, 6])
    s.reverse_compute_at(out, ii)
    b = s.cache_read(c, 1, "global")
    assert (out.name, b.name) == ("C_local", "B_global")
    s.compute_at("A2", io)
    s.parallel(io)
    s.set_scope("A2", 0, "local")
    check(s, built=True)


def test_elementwise_blocks_go_into_each_other():
    s = tir.Schedule(function())
    s.reverse_compute_inline("E")
    assert [b.name for b in s.get_consumers("C")] == ["D"]
    assert [b.name for b in s.get_producers("C")] == ["A2"]
    fused = s.fuse(*s.get_loops("D"))
    s.bind(s.split(fused, [None, 32])[0], "blockIdx.x")
    check(s, built=True)


def test_a_reduction_computed_again_in_each_step_of_a_parallel_loop():
    """Neighbours overlap: were the sums in one place, threads would add into each other's."""
    A = te.placeholder((34, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((34,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((32,), lambda i: B[i] + B[i + 1] + B[i + 2], name="C")
    s = tir.Schedule(te.create_prim_func([A, C]))
    outer, _ = s.split(s.get_loops("C")[0], [None, 4])
    s.compute_at("B", outer)
    s.parallel(outer)
    a = RNG.integers(-9, 9, (34, 8)).astype("float32")
    b = a.sum(1)
    c = tvm.nd.empty((32,))
    f = tvm.build(s.mod, target="llvm")
    for _ in range(5):
        f(tvm.nd.array(a), c)
        np.testing.assert_array_equal(c.numpy(), b[:-2] + b[1:-1] + b[2:])
    assert "i_0 * 4 + ax0" in s.mod.script()


@pytest.mark.parametrize("seed", range(8))
def test_random_steps_compute_the_same(seed):
    """Each step either happens, and changes no number, or is refused, and changes nothing."""
    draw = random.Random(seed)
    s = tir.Schedule(function(), seed=seed)
    done = 0
    for _ in range(14):
        block = draw.choice(
            [b for b in ("A2", "C", "D", "E", "C_update", "C_init", "C_local") if _has(s, b)]
        )
        loops = s.get_loops(block)
        before = s.mod
        try:
            match draw.randrange(14):
                case 0:
                    s.split(draw.choice(loops), [None, draw.choice([1, 2, 3, 5, 8, 40])])
                case 1:
                    s.fuse(*loops[draw.randrange(len(loops) or 1) :][:2])
                case 2:
                    s.reorder(*draw.sample(loops, min(len(loops), 3)))
                case 3:
                    s.compute_inline(block)
                case 4:
                    s.reverse_compute_inline(block)
                case 5:
                    s.compute_at(block, draw.choice(s.get_loops(s.get_consumers(block)[0])))
                case 6:
                    s.reverse_compute_at(block, draw.choice(s.get_loops(s.get_producers(block)[0])))
                case 7:
                    s.decompose_reduction(block, draw.choice(loops))
                case 8:
                    s.cache_write(block, 0, "local")
                case 9:
                    s.rfactor(draw.choice(loops), draw.randrange(-1, 3))
                case 10:
                    s.blockize(draw.choice(loops))
                case 11:
                    s.reindex(block, (draw.choice(["read", "write"]), draw.randrange(2)))
                case 12:
                    made = s.copy()
                    made.transform_layout(block, ("write", 0), lambda i, j: (j // 8, i, j % 8))
                    if made.func.buffer_map[-1][1].ndim == 2:  # the arguments are as they were
                        s = made
                case 13:
                    s.storage_align(block, 0, draw.randrange(2), 8, draw.randrange(3))
            done += 1
        except (ScheduleError, IndexError):
            assert s.mod is before
    check(s)
    assert done


def _has(s, name):
    try:
        return bool(s.get_block(name))
    except ScheduleError:
        return False


def test_what_cannot_be_is_refused_with_its_reason():
    s = tir.Schedule(function())
    i, _, k = s.get_loops("C")
    for step, words in (
        (lambda: s.get_block("B"), r"no block 'B'.*The blocks are: A2, C, D, E"),
        (lambda: s.parallel(k), "axis 'v_k' of block 'C', which depends on it, is a reduction"),
        (lambda: s.split(i, [2, 2]), "it has 20 steps, and these make 4"),
        (lambda: s.split(i, [None, None]), "at most one of them None"),
        (lambda: s.split(i, [0, None]), "the factor 0 must be at least 1"),
        (lambda: s.fuse(i, k), "must be all that is inside the first"),
        (lambda: s.reorder(i, *s.get_loops("D")), "not of one nest"),
        (lambda: s.reorder(i, i), "twice"),
        (lambda: s.compute_inline("C"), "one store without a reduction"),
        (lambda: s.compute_inline("E"), "'E' is an argument of the function"),
        (lambda: s.compute_at("A2", s.get_loops("D")[0]), "outside of that loop"),
        (lambda: s.reverse_compute_at("D", k), "not done reducing"),
        (lambda: s.decompose_reduction("D", s.get_loops("D")[0]), "reduces nothing"),
        (lambda: s.cache_read("C", 5, "local"), r"reads 2 buffers \(A2, B\)"),
        (lambda: s.set_scope("E", 0, "local"), "memory is the caller's"),
        (lambda: s.unannotate(i, "x"), "no annotation 'x'"),
        (lambda: s.parallel("i"), "no loop"),
    ):
        before = s.mod
        with pytest.raises(ScheduleError, match=words):
            step()
        assert s.mod is before
    s.split(i, [4, 5])
    with pytest.raises(ScheduleError, match="the loop 'i' is gone"):
        s.parallel(i)


def test_sampled_tiles_divide():
    s = tir.Schedule(function(), seed=3)
    loop = s.get_loops("C")[1]
    for _ in range(20):
        factors = s.sample_perfect_tile(loop, 3, 8)
        assert np.prod(factors) == N
        assert factors[-1] <= 8
    assert s.sample_perfect_tile(loop, 2, decision=[6, 4]) == [6, 4]
    assert s.sample_categorical([1, 2, 3], [0, 1, 0]) == 2


def test_a_copy_goes_its_own_way():
    s = tir.Schedule(function())
    other = s.copy()
    other.vectorize(other.get_loops("E")[1])
    assert "vectorized" in other.mod.script()
    assert "vectorized" not in s.mod.script()


def chained(write, value):
    """Steps over i and j, whose block writes B at `write`."""
    return from_source(f"""
from slipway.script import tir as T
@T.prim_func
def main(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (9, 16))
    B = T.match_buffer(b, (9, 17))
    for i, j in T.grid(9, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[{write}] = {value}
""")


@pytest.mark.parametrize(
    ("write", "value", "parallel", "lanes"),
    [
        ("vi, vj + 1", "B[vi, vj] + A[vi, vj]", "steps wait for others", "steps wait for others"),
        ("vi, 0", "B[vi, 0] + A[vi, vj]", "one place for all steps", ""),
        ("vi, vj", "B[vi, vj] + A[vi, vj]", "", ""),
        ("vi, vj", "A[vi, 15 - vj]", "", ""),
    ],
)
def test_steps_that_depend_on_each_other(write, value, parallel, lanes):
    for name, error in (("parallel", parallel), ("vectorize", lanes)):
        s = tir.Schedule(chained(write, value))
        s.parallel(s.get_loops("B")[0])  # rows are apart in each of them
        j = s.get_loops("B")[1]
        if error:
            with pytest.raises(ScheduleError, match=error):
                getattr(s, name)(j)
            continue
        getattr(s, name)(j)
        given = np.random.default_rng(0).normal(size=(9, 16)).astype("float32")
        wanted, out = np.zeros((9, 17), "float32"), tvm.nd.array(np.zeros((9, 17), "float32"))
        run(chained(write, value), given, wanted)
        tvm.build(s.mod, target="llvm")(tvm.nd.array(given), out)
        np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5)


def test_a_step_may_read_what_it_has_made_itself():
    s = tir.Schedule(chained("vi, vj + 1", "B[vi, vj] + A[vi, vj]"))
    i, j = s.get_loops("B")
    s.split(j, [1, 16])
    s.parallel(i)
    s.parallel(s.get_loops("B")[1])  # of one step


def test_the_root_and_where_blocks_stand():
    sch = tir.Schedule(function())
    root = sch.get_block("root")
    assert [b.name for b in sch.get_child_blocks(root)] == ["A2", "C", "D", "E"]
    assert [b.name for b in sch.get_output_blocks(root)] == ["E"]
    assert [b.name for b in sch.get_child_blocks(sch.get_loops("C")[0])] == ["C"]
    assert sch.get(sch.get_block("C")).name_hint == "C"
    block = sch.get_sref(sch.get_block("C"))
    around = [block]
    while around[-1].parent is not None:
        around.append(around[-1].parent)
    loops = [sch.get_sref(loop) for loop in reversed(sch.get_loops("C"))]
    assert all(a.same_as(b) for a, b in zip(around[1:-1], loops, strict=True))
    assert around[-1].stmt.name_hint == "root"
    assert sch.state.mod["main"] is sch.mod["main"] is sch.func


def test_buffers_go_by_number_name_or_themselves():
    for which in (0, "A2", "C.A2"):
        s = tir.Schedule(function())
        s.cache_read("C", which, "local")
        s.cache_write("C", "C", "local")
        check(s)
        names = [n.buffer.name for n in walk(s.mod["main"].body) if isinstance(n, tir.Allocate)]
        assert names == ["A2", "C", "D", "A2_local", "C_local"]  # the new ones after the others
    s.set_scope("A2_local", "A2_local", "shared")
    assert 'scope="shared"' in s.mod.script()
    with pytest.raises(ScheduleError, match="block 'E' reads no buffer 'B': it reads D"):
        s.cache_read("E", "B", "global")
    for step in (lambda: s.cache_read("E", 0, "far"), lambda: s.set_scope("D", 0, "far")):
        with pytest.raises(ScheduleError, match="no memory of scope 'far'; the scopes are global"):
            step()


def test_of_several_functions_one_is_worked_on():
    mod = tvm.IRModule({"first": function(), "second": function()})
    s = tir.Schedule(mod)
    with pytest.raises(ScheduleError, match=r"which function steps are for.*first, second"):
        s.get_block("C")
    with pytest.raises(ScheduleError, match="no function 'third'; it has first, second"):
        s.work_on("third")
    s.remove_rv(s.get_block("C", func_name="second"))
    assert s.func_working_on == "second"
