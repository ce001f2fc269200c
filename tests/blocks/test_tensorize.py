"""tensorize of tir.Schedule: what an intrinsic declares is found in loops, and done by it."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import ScheduleError
from slipway.ir.interpreter.interpret import run
from slipway.script import from_source
from slipway.script import tir as T

RNG = np.random.default_rng(3)
A_NP, B_NP = (RNG.integers(-4, 5, shape).astype("float32") for shape in ((8, 8), (8, 24)))
WANTED = (A_NP * 2) @ B_NP + 1


@T.prim_func
def tile_desc(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4), align=64, offset_factor=1)
    B = T.match_buffer(b, (4, 8), align=64, offset_factor=1)
    C = T.match_buffer(c, (4, 8), align=64, offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:8], A[0:4, 0:4], B[0:4, 0:8])
        T.writes(C[0:4, 0:8])
        for i, j, k in T.grid(4, 8, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def tile_rows(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4), align=64, offset_factor=1)
    B = T.match_buffer(b, (4, 8), align=64, offset_factor=1)
    C = T.match_buffer(c, (4, 8), align=64, offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:8], A[0:4, 0:4], B[0:4, 0:8])
        T.writes(C[0:4, 0:8])
        for i, k in T.grid(4, 4):
            C[i, T.ramp(0, 1, 8)] += T.broadcast(A[i, k], 8) * B[k, T.ramp(0, 1, 8)]


@T.prim_func
def tile_call(a: T.handle, b: T.handle, c: T.handle) -> None:
    sa, sb, sc = T.var("int32"), T.var("int32"), T.var("int32")
    A = T.match_buffer(a, (4, 4), strides=[sa, 1], offset_factor=1)
    B = T.match_buffer(b, (4, 8), strides=[sb, 1], offset_factor=1)
    C = T.match_buffer(c, (4, 8), strides=[sc, 1], offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:8], A[0:4, 0:4], B[0:4, 0:8])
        T.writes(C[0:4, 0:8])
        T.evaluate(T.call_extern("tile", C.access_ptr("rw"), A.data, A.elem_offset,
                                 B.access_ptr("r"), sa, sb, sc, dtype="int32"))  # fmt: skip


TILE_C = """
int tile(float *c, const float *a, int ao, const float *b, int sa, int sb, int sc) {
  for (int i = 0; i < 4; ++i) for (int j = 0; j < 8; ++j) for (int k = 0; k < 4; ++k)
    c[i * sc + j] += a[ao + i * sa + k] * b[k * sb + j];
  return 0;
}
"""
tir.TensorIntrin.register("test.tile_rows", tile_desc, tile_rows)
tir.TensorIntrin.register("test.tile_call", tile_desc, tile_call)


def tiled():
    A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 24), name="B")
    k = te.reduce_axis((0, 8), "k")
    A2 = te.compute((8, 8), lambda i, j: A[i, j] * 2.0, name="A2")
    C = te.compute((8, 24), lambda i, j: te.sum(A2[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((8, 24), lambda i, j: C[i, j] + 1.0, name="D")
    s = tir.Schedule(te.create_prim_func([A, B, D]))
    i, j, k = s.get_loops("C")
    io, ii = s.split(i, [None, 4])
    jo, ji = s.split(j, [None, 8])
    ko, ki = s.split(k, [None, 4])
    s.reorder(io, jo, ko, ii, ji, ki)
    return s, (io, jo, ko, ii)


def check(func):
    out = tvm.nd.empty((8, 24))
    tvm.build(func, target="llvm")(tvm.nd.array(A_NP), tvm.nd.array(B_NP), out)
    np.testing.assert_array_equal(out.numpy(), WANTED)


def test_an_intrinsic_of_vectors():
    s, (io, jo, ko, ii) = tiled()
    s.decompose_reduction("C", ko)
    s.tensorize(ii, "test.tile_rows")
    assert "T.ramp(" in s.mod.script()
    with pytest.raises(ScheduleError, match="as vectors"):
        s.compute_inline("A2") if False else s.transform_layout("C_update_o", ("write", 0),
                                                                lambda i, j: (j, i))  # fmt: skip
    s.compute_at("A2", io)
    s.reverse_compute_at("D", jo)
    out = np.full((8, 24), 7, "float32")
    run(from_source(s.mod.script())["main"], A_NP, B_NP, out)
    np.testing.assert_array_equal(out, WANTED)
    check(s.mod)


def test_an_intrinsic_that_calls_c():
    """What a call uses is not seen in its loads: such a buffer stays where it is."""
    s, (io, _, ko, ii) = tiled()
    s.decompose_reduction("C", ko)
    block = s.blockize(ii)
    s.tensorize(block, "test.tile_call")
    s.annotate(block, "pragma_import_c", TILE_C)
    assert [b.name for b in s.get_producers(block)] == ["A2"]
    for step in (lambda: s.compute_inline("A2"), lambda: s.compute_at("A2", io),
                 lambda: s.reverse_compute_at("D", io)):  # fmt: skip
        with pytest.raises(ScheduleError, match="uses the memory of"):
            step()
    check(from_source(s.mod.script()))


def test_one_element_of_many():
    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,))
        C = T.match_buffer(c, ())
        with T.block("root"):
            T.reads(C[()], A[0:4])
            T.writes(C[()])
            for i in range(0, 4):
                with T.block("update"):
                    vi = T.axis.remap("R", [i])
                    C[()] = C[()] + A[vi]

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (4,))
        C = T.match_buffer(c, ())
        with T.block("root"):
            T.reads(C[()], A[0:4])
            T.writes(C[()])
            C[()] = C[()] + ((A[0] + A[1]) + (A[2] + A[3]))

    tir.TensorIntrin.register("test.sum4", desc, impl, override=True)
    A = te.placeholder((3, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = tir.Schedule(te.create_prim_func([A, B]))
    i, k = s.get_loops("B")
    with pytest.raises(ScheduleError, match="decompose_reduction"):
        s.tensorize(s.blockize(i), "test.sum4")
    s = tir.Schedule(te.create_prim_func([A, B]))
    i, k = s.get_loops("B")
    ko, ki = s.split(k, [None, 4])
    s.decompose_reduction("B", ko)
    s.tensorize(ki, "test.sum4")
    a, out = RNG.integers(-4, 5, (3, 8)).astype("float32"), np.zeros(3, "float32")
    run(from_source(s.mod.script())["main"], a, out)
    np.testing.assert_array_equal(out, a.sum(1))


def test_what_is_refused():
    s, (_, _, ko, ii) = tiled()
    before = s.mod
    with pytest.raises(ScheduleError, match="Did you mean 'test\\.tile_call'"):
        s.tensorize(ii, "test.tile_cal")
    s.decompose_reduction("C", ko)
    before = s.mod
    with pytest.raises(ScheduleError, match="has 8 steps"):
        s.tensorize(s.get_loops("D")[0], "test.tile_rows")
    assert s.mod is before
    with pytest.raises(ScheduleError, match="already"):
        tir.TensorIntrin.register("test.tile_rows", tile_desc, tile_rows)
    with pytest.raises(ScheduleError, match="same shapes"):
        tir.TensorIntrin.register("test.other", tile_desc, s.mod["main"])
    A, B = te.placeholder((4, 4), name="A"), te.placeholder((4, 8), name="B")
    k = te.reduce_axis((0, 4), "k")
    C = te.compute((4, 8), lambda i, j: te.sum(A[i, k] + B[k, j], axis=k), name="C")
    s = tir.Schedule(te.create_prim_func([A, B, C]))
    s.decompose_reduction("C", s.get_loops("C")[2])
    with pytest.raises(ScheduleError, match="what is inside must be"):
        s.tensorize(s.get_loops("C_update")[0], "test.tile_rows")
    s = tir.Schedule(te.create_prim_func([A, B, C]))
    s.decompose_reduction("C", s.get_loops("C")[0])
    with pytest.raises(ScheduleError, match="formulas differ"):
        s.tensorize(s.get_loops("C_update")[0], "test.tile_rows")
