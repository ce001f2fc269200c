"""tir.Schedule: buffers laid out anew, padded, copied in a block's order."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import ScheduleError
from slipway.ir.interpreter.interpret import run
from slipway.script import from_source

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
