"""Programs whose threads are launched as classic TVMScript prints them."""

import numpy as np
import pytest

import slipway as tvm
from slipway.errors import ModelError
from slipway.ir import stmt as S
from slipway.ir.visit import walk
from slipway.script import tir as T


@T.prim_func
def with_env_threads(a: T.Buffer((64,), "float32"), c: T.Buffer((64,), "float32")):
    tx = T.env_thread("threadIdx.x")
    bx = T.env_thread("blockIdx.x")
    T.launch_thread(bx, 2)
    tile_1 = T.allocate([32], "float32", "shared")
    tile = T.buffer_decl([32], "float32", data=tile_1, scope="shared")
    T.launch_thread(tx, 32)
    tile[tx] = a[bx * 32 + tx]
    T.evaluate(T.tvm_storage_sync("shared", dtype=""))
    c[bx * 32 + tx] = tile[31 - tx]


@T.prim_func
def in_with_statements(a: T.Buffer((64,), "float32"), c: T.Buffer((64,), "float32")):
    with T.launch_thread("blockIdx.x", 2) as bx:
        tx = T.launch_thread("threadIdx.x", 32)
        with T.allocate([32], "float32", "shared") as tile:
            tile[tx] = a[bx * 32 + tx]
            T.tvm_storage_sync("shared")
            c[bx * 32 + tx] = tile[31 - tx]


@T.prim_func
def two_kernels(a: T.Buffer((64,), "float32"), c: T.Buffer((64,), "float32")):
    tx = T.env_thread("threadIdx.x")
    middle = T.allocate([64], "float32", "global")
    with T.launch_thread(tx, 64):
        middle[tx] = a[tx]
    with T.launch_thread(tx, 64), T.attr(0, "a_note", 1):
        c[tx] = middle[(tx & 32) + 31 - tx % 32]


@pytest.mark.parametrize("function", [with_env_threads, in_with_statements, two_kernels])
@pytest.mark.parametrize("target", ["cuda", "opencl", "vulkan"])
def test_every_form_is_read(function, target):
    given = np.random.default_rng(0).standard_normal(64).astype("float32")
    out = np.zeros(64, "float32")
    tvm.testing.run_threads(function, None, [given, out], target)
    np.testing.assert_array_equal(out, given.reshape(2, 32)[:, ::-1].ravel())


@pytest.mark.parametrize("function", [with_env_threads, in_with_statements])
def test_a_barrier_that_is_there_is_no_second_time(function):
    source = tvm.build(function, target="opencl").imported_modules[0].get_source()
    assert source.count("barrier(") == 1


def test_notes_are_kept():
    notes = [n.key for n in walk(two_kernels.body) if isinstance(n, S.AttrStmt)]
    assert notes == ["a_note"]


def test_what_is_no_axis_is_told():
    with pytest.raises(ModelError, match=r"takes what T\.env_thread names, or a tag"):

        @T.prim_func
        def wrong(c: T.Buffer((4,), "float32")):
            T.launch_thread(3, 4)
            c[0] = 1.0


def test_numbers_stand_on_the_left_of_shifts_too():
    @T.prim_func
    def powers(c: T.Buffer((8,), "int32")):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            c[i] = (1 << i) + (256 >> i) + (5 ^ i)

    out = np.zeros(8, "int32")
    tvm.testing.run_threads(powers, None, [out], "cuda")
    i = np.arange(8)
    np.testing.assert_array_equal(out, (1 << i) + (256 >> i) + (5 ^ i))


def test_vectors_are_stored_at_ranges():
    @T.prim_func
    def filled(c: T.Buffer((4, 8), "int32")):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            for j in range(2):
                c[i, j * 4 : j * 4 + 4] = T.broadcast(i * 10 + j, 4)

    out = np.zeros((4, 8), "int32")
    tvm.testing.run_threads(filled, None, [out], "cuda")
    np.testing.assert_array_equal(out, np.arange(4)[:, None] * 10 + np.arange(8) // 4)


@pytest.mark.parametrize(("index", "words"), [(":4", "begin : end"), ("0:n", "no known number")])
def test_a_range_whose_length_is_not_known_is_told(index, words):
    text = f"""
@T.prim_func
def wrong(c: T.Buffer((8,), "int32"), n: T.int32):
    c[{index}] = T.broadcast(1, 4)
"""
    with pytest.raises(ModelError, match=words):
        tvm.script.from_source(text)
