"""tir.Schedule: buffers laid out anew, padded, copied in a block's order."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import ScheduleError, SlipwayError
from slipway.ir.interpreter.interpret import run
from slipway.script import from_source
from slipway.script import tir as T
from slipway.tir.schedule.testing import verify_trace_roundtrip

A_NP = np.arange(24 * 16, dtype="float32").reshape(24, 16)


def schedule():
    A = te.placeholder((24, 16), name="A")
    B = te.compute((24, 16), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((24, 16), lambda i, j: B[i, j] + 1.0, name="C")
    return tir.Schedule(te.create_prim_func([A, C]))


def check(s, a=A_NP, wanted=A_NP * 2 + 1, built=False):
    out = np.full(wanted.shape, 7, "float32")
    run(from_source(s.mod.script())["main"], a, out)
    np.testing.assert_array_equal(out, wanted)
    if built:
        made = tvm.nd.empty(wanted.shape)
        tvm.build(s.mod, target="llvm")(tvm.nd.array(a), made)
        np.testing.assert_array_equal(made.numpy(), wanted)


def test_tiles_of_a_buffer_between_blocks():
    s = schedule()
    s.transform_layout("B", ("write", 0), lambda i, j: [i // 8, j // 4, i % 8, j % 4])
    assert "T.alloc_buffer((3, 4, 8, 4)" in s.mod.script()
    s.transform_block_layout("B", lambda i, j: (i // 8, j, i % 8))
    assert [str(x) for x in s.get_loops("B")] == ["LoopRV(ax0)", "LoopRV(ax1)", "LoopRV(ax2)"]
    check(s, built=True)


def test_an_argument_has_the_new_shape():
    s = schedule()
    s.transform_layout("B", ("read", 0), lambda *i: (i[1], i[0]))
    check(s, np.ascontiguousarray(A_NP.T), A_NP * 2 + 1)
    s.transform_layout("C", "C", lambda i, j: i * 16 + j)
    check(s, np.ascontiguousarray(A_NP.T), (A_NP * 2 + 1).ravel())


def test_padded_rows():
    s = schedule()
    s.storage_align("B", 0, axis=-2, factor=32, offset=16)
    s.storage_align("B", 0, axis=0, factor=32, offset=5)
    assert "strides=[37, 1]" in s.mod.script()
    check(s, built=True)


def test_copies_in_the_order_of_a_block():
    A, B = te.placeholder((8, 6), name="A"), te.placeholder((6, 4), name="B")
    k = te.reduce_axis((0, 6), "k")
    C = te.compute((4, 8), lambda i, j: te.sum(A[j, k] * B[k, i], axis=k), name="C")
    s = tir.Schedule(te.create_prim_func([A, B, C]))
    names = [s.reindex("C", ("read", 0)).name, s.reindex("C", ("read", 1)).name,
             s.reindex("C", ("write", 0)).name]  # fmt: skip
    assert names == ["A_reindex", "B_reindex", "C_reindex"]
    a, b = A_NP[:8, :6].copy(), A_NP[:6, :4].copy()
    out = np.zeros((4, 8), "float32")
    run(from_source(s.mod.script())["main"], a, b, out)
    np.testing.assert_array_equal(out, (a @ b).T)
    assert "B_reindex = T.alloc_buffer((4, 6)" in s.mod.script()


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            lambda s: s.transform_layout("B", ("write", 1), lambda i, j: (i, j)),
            "no buffer of block",
        ),
        (lambda s: s.transform_layout("B", "Z", lambda i, j: (i, j)), "uses no buffer 'Z'"),
        (lambda s: s.transform_layout("B", "A", lambda i: i), "takes 1, but buffer 'A' has 2"),
        (lambda s: s.transform_layout("B", "A", lambda i, j: (i - 3, j)), "must begin at 0"),
        (lambda s: s.transform_block_layout("B", lambda i, j: (i // 2, j)), "cannot be told"),
        (lambda s: s.storage_align("C", 0, 0, 8, 1), "is an argument"),
        (lambda s: s.storage_align("B", 0, 5, 8, 1), "no dimension 5"),
        (lambda s: s.storage_align("B", 2, 0, 8, 1), "writes 1 buffers"),
    ],
)
def test_what_is_refused(step, message):
    s = schedule()
    before = s.mod
    with pytest.raises(ScheduleError, match=message):
        step(s)
    assert s.mod is before


def test_a_map_of_indices_is_an_object():
    made = tir.IndexMap.from_func(lambda i, j: [i // 4, j, i % 4])
    assert [int(i) for i in made.map_indices([9, 5])] == [2, 5, 1]
    assert made.map_shape([16, 3]) == [4, 3, 4]
    back = made.inverse([16, 3])
    for i in range(16):
        for j in range(3):
            assert [int(x) for x in back(*made(i, j))] == [i, j]
    rest = tir.IndexMap.from_func(lambda i, *rest: (*rest, i), ndim=3)
    assert [int(i) for i in rest(1, 2, 3)] == [2, 3, 1]
    with pytest.raises(ScheduleError, match="the map takes 2 indices, got 1"):
        made(1)
    with pytest.raises(ScheduleError, match="takes 1 indices or more, and ndim=None"):
        tir.IndexMap.from_func(lambda i, *rest: rest)
    with pytest.raises(ScheduleError, match="has 3 dimensions"):
        made.map_shape([1, 2, 3])


def test_a_map_is_taken_as_a_function_is():
    s = schedule()
    tiles = tir.IndexMap.from_func(lambda i, j: [i // 8, j // 4, i % 8, j % 4])
    s.transform_layout("B", ("write", 0), tiles)
    s.transform_block_layout("B", tir.IndexMap.from_func(lambda i, j: (i // 8, j, i % 8)))
    assert "T.alloc_buffer((3, 4, 8, 4)" in s.mod.script()
    assert "lambda i0, i1: (i0 // 8, i1 // 4, i0 % 8, i1 % 4,)" in str(s.trace)
    check(s)


@pytest.mark.parametrize(("dtype", "rounded"), [("float16", "float16"), ("int32", "int32")])
def test_another_dtype_between_blocks(dtype, rounded):
    s = schedule()
    s.vectorize(s.split(s.get_loops("B")[1], [None, 8])[1])
    s.unsafe_set_dtype("B", 0, dtype)
    a = (A_NP / 7).astype("float32")
    check(s, a, (a * 2).astype(rounded).astype("float32") + 1, built=True)
    again = tir.Schedule(schedule().mod)
    s.trace.apply_to_schedule(again)
    assert f'"{dtype}"' in again.mod.script()


@pytest.mark.parametrize(
    ("block", "number", "dtype", "cause"),
    [
        ("C", 0, "float16", "it is an argument"), ("B", 1, "float16", "no number 1"),
        ("B", -1, "float16", "no number -1"), ("B", 0, "float17", "float17"),
        ("B", 0, "float32x4", "are numbers"), ("B", 0, "handle", "are numbers"),
    ],
)  # fmt: skip
def test_dtypes_that_cannot_be(block, number, dtype, cause):
    with pytest.raises(SlipwayError, match=cause):
        schedule().unsafe_set_dtype(block, number, dtype)


def test_separators_of_axes_stay_with_a_buffer():
    s = schedule()
    s.set_axis_separator(s.get_block("B"), ("write", 0), [1])
    s.transform_layout("B", ("read", 0), lambda i, j: [i, tir.IndexMap.AXIS_SEPARATOR, j])
    text = s.mod.script()
    assert text.count("axis_separators=[1]") == 2
    assert from_source(text)["main"].buffer_map[0][1].axis_separators == (1,)
    check(s, built=True)
    held = tir.IndexMap.from_func(lambda i, j: [j, tir.IndexMap.AXIS_SEPARATOR, i])
    s.transform_layout("B", s.get(s.get_block("C")).body.buffer and "B", held)
    assert "(16, 24)" in s.mod.script()
    check(s, built=True)


@pytest.mark.parametrize(
    ("buffer", "separators", "cause"),
    [
        (("write", 1), [1], "is no buffer"), (("read", -1), [1], "is no buffer"),
        ("B", [3], "positions from 0 to 2"), ("B", [2, 1], "that rise"), ("B", ["a"], "positions"),
        (tir.decl_buffer((4,), name="Z"), [1], "uses no buffer 'Z'"),
    ],
)  # fmt: skip
def test_separators_that_cannot_be(buffer, separators, cause):
    with pytest.raises(SlipwayError, match=cause):
        schedule().set_axis_separator("B", buffer, separators)


@T.prim_func
def doubled(A: T.Buffer((24, 16), "float32")):
    for i, j in T.grid(24, 16):
        with T.block("A"):
            x, y = T.axis.remap("SS", [i, j])
            T.where(i % 3 == 1)
            A[x, y] = A[x, y] * T.float32(2)


@T.prim_func
def called(A: T.Buffer((64,), "int32")):
    for _ in T.serial(1):
        with T.block("A"):
            T.reads(A[:64])
            T.writes(A[:64])
            T.evaluate(T.call_extern("called", A.data, dtype=""))


def test_a_buffer_that_is_changed_in_place():
    s = tir.Schedule(doubled)
    into, back = s.cache_inplace("A", 0, "local")
    assert (into.name, back.name) == ("A_local", "A_local_1")
    s.parallel(s.get_loops("A")[0])
    made = tvm.nd.array(A_NP)
    tvm.build(s.mod, target="llvm")(made)
    wanted = np.where((np.arange(24) % 3 == 1)[:, None], A_NP * 2, A_NP)
    np.testing.assert_array_equal(made.numpy(), wanted)
    s = tir.Schedule(called)
    s.cache_inplace("A", "A", "global")
    text = tvm.build(s.mod, target="c").get_source()
    assert "call void @called(ptr" in tvm.build(s.mod, target="llvm").get_source()
    assert "void called(" in text
    verify_trace_roundtrip(s, called)
    with pytest.raises(ScheduleError, match="use cache_read"):
        schedule().cache_inplace("B", 0, "local")
    with pytest.raises(ScheduleError, match="no number 1"):
        tir.Schedule(doubled).cache_inplace("A", 1, "local")
