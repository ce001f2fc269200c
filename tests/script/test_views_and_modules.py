"""Buffers that see another's memory, and modules in the spelling of TVM 0.14."""

import numpy as np
import pytest

import slipway as tvm
from slipway.errors import ModelError
from slipway.ir import stmt as S
from slipway.ir.visit import walk
from slipway.script import ir as I
from slipway.script import tir as T


@I.ir_module
class Flat:
    I.module_attrs({"owner": "test"})

    @T.prim_func
    def main(
        A: T.Buffer((6, 5), "float32"), B: T.Buffer((6, 5), "float32"), C: T.Buffer((5,), "float32")
    ):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        A_flat = T.Buffer([30], data=A.data)
        B_flat = T.buffer_decl([30], "float32", data=B.data)
        C_flat = T.decl_buffer((5, 1), "float32", data=C.data)
        half = T.decl_buffer((5,), "float32")
        for y in T.serial(0, 5):
            half[y] = T.float32(0)
        for x, y in T.grid(6, 5):
            half[y] = half[y] + A_flat[x * 5 + y] * B_flat[x * 5 + y]
        for y in T.serial(0, 5):
            C_flat[y, 0] = half[y]


def test_views_see_the_memory_of_parameters():
    assert dict(Flat.attrs) == {"owner": "test"}
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((6, 5), dtype=np.float32) for _ in range(2))
    out = tvm.nd.array(np.zeros(5, np.float32))
    tvm.build(Flat, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), (a * b).sum(0), rtol=1e-5)
    again = tvm.script.from_source(Flat.script())
    tvm.build(again, target="llvm")(tvm.nd.array(b), tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), (a * b).sum(0), rtol=1e-5)


def test_a_view_needs_memory():
    with pytest.raises(ModelError, match="'A_flat' has no memory: give it that of another buffer"):

        @T.prim_func
        def lost(A: T.Buffer((4,), "float32")):
            A_flat = T.Buffer([4], "float32")
            A_flat[0] = A[0]


def test_options_in_parentheses_are_taken():
    @I.ir_module(check_well_formed=False)
    class Module:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

    assert [name for name, _ in Module.functions] == ["main"]


def test_names_that_have_no_value_yet_are_errors_of_the_script():
    with pytest.raises(ModelError, match="name 'later' is not defined"):

        @T.prim_func
        def func(A: T.Buffer((4,), "float32")):
            A[0] = later

    later = 1.0
    assert later


def test_elements_that_are_vectors_are_stored_whole():
    x, y = tvm.tir.Var("x", "int32"), tvm.tir.Var("y", "int32")
    z = tvm.tir.decl_buffer((3,), "int32x2")
    func = tvm.tir.PrimFunc([x, y, z], z.vstore(1, tvm.tir.Shuffle([x, y], [0, 1])))
    mod = tvm.IRModule.from_expr(func.with_attr("global_symbol", "pair"))
    built = tvm.build(mod, target="llvm")
    out = tvm.nd.empty((3,), "int32x2")
    out.copyfrom(np.zeros((3, 2), np.int32))
    built["pair"](7, 9, out)
    assert out.numpy().reshape(3, 2).tolist() == [[0, 0], [7, 9], [0, 0]]


def test_types_may_speak_of_what_the_body_does_not():
    def scaled(size, dtype):
        @T.prim_func
        def func(A: T.Buffer((size,), dtype), B: T.Buffer((size,), dtype)):
            for i in T.serial(A.shape[0]):
                B[i] = A[i] + A[i]

        return func

    out = tvm.nd.array(np.zeros(3, np.int16))
    tvm.build(scaled(3, "int16"), target="llvm")(tvm.nd.array(np.int16([1, 2, 3])), out)
    assert out.numpy().tolist() == [2, 4, 6]


@pytest.mark.parametrize("name", T._FUNCTIONS)
def test_functions_of_tir_are_those_of_the_language(name):
    assert getattr(T, name).__wrapped__ is getattr(tvm.tir, name)


def test_quotients_rounded_up():
    @T.prim_func
    def func(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            B[i] = T.ceildiv(A[i], 4)

    out = tvm.nd.array(np.zeros(4, np.int32))
    tvm.build(func, target="llvm")(tvm.nd.array(np.int32([0, 4, 5, -3])), out)
    assert out.numpy().tolist() == [0, 1, 2, 0]


@T.prim_func
def in_parts(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    B = T.alloc_buffer((8, 16), "float32")
    for i, j in T.grid(8, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            one = T.match_buffer(B[vi, vj], [], offset_factor=1)
            one[()] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            begin, step = T.var("int32"), T.var("int32")
            row = T.match_buffer(B[vi, vj * 4 : vj * 4 + 4], (4,))
            out = T.match_buffer(
                C[vi : vi + 1, vj * 4 : vj * 4 + 4], (1, 4), strides=[step, 1], elem_offset=begin
            )
            for k in T.serial(0, 4):
                out[0, k] = row[k] + T.cast(begin + step, "float32")


def test_parts_of_buffers_are_read_as_the_buffers():
    sch = tvm.tir.Schedule(in_parts)
    sch.compute_inline(sch.get_block("B"))  # sees that the parts are of one buffer
    a, c = np.random.default_rng(0).random((8, 16), np.float32), tvm.nd.empty((8, 16))
    tvm.build(sch.mod, target="llvm")(tvm.nd.array(a), c)
    begins = 16 * np.arange(8)[:, None] + np.arange(16) // 4 * 4
    np.testing.assert_allclose(c.numpy(), a * 2 + begins + 16, rtol=1e-6)


PARTS_REFUSED = {
    "B[0], (4,)": "has 2 dimensions, but the region says 1",
    "B[0:2, 0:4], (4, 4)": "dimension 0 of 'part' has 4 elements, but the region of 'B' 2",
    "B[0, 0], (1, 1, 1)": "a part of 3 dimensions cannot be one of 'B', which has 2",
    "B[0:2, 0:4], (2, 4)": "is indexed with 1",
}


@pytest.mark.parametrize("region", PARTS_REFUSED)
def test_a_part_that_is_none_is_refused(region):
    lines = ["@T.prim_func", 'def f(B: T.Buffer((8, 8), "float32")):', '    with T.block("b"):',
             f"        part = T.match_buffer({region})", "        part[0] = 1.0"]  # fmt: skip
    with pytest.raises(ModelError, match=PARTS_REFUSED[region]):
        tvm.script.from_source("\n".join(lines))


@T.prim_func
def by_env_threads(
    A: T.Buffer((96,), "float32"), B: T.Buffer((96,), "float32"), C: T.Buffer((3,), "float32")
):
    bx = T.env_thread("blockIdx.x")
    tx = T.env_thread("threadIdx.x")
    T.launch_thread(bx, 3)
    held = T.decl_buffer((32,), "float32", scope="shared")
    T.launch_thread(tx, 32)
    held[31 - tx] = A[bx * 32 + tx]
    T.evaluate(T.tvm_storage_sync("shared", dtype=""))
    B[bx * 32 + tx] = held[tx] * 2.0
    if tx == 0:
        C[bx] = held[31]


@T.prim_func
def by_tags(
    A: T.Buffer((96,), "float32"), B: T.Buffer((96,), "float32"), C: T.Buffer((3,), "float32")
):
    with T.launch_thread("blockIdx.x", 3) as bx:
        held = T.alloc_buffer((32,), "float32", scope="shared")
        tx = T.launch_thread("threadIdx.x", 32)
        held[31 - tx] = A[bx * 32 + tx]
        T.evaluate(T.tvm_storage_sync("shared"))
        B[bx * 32 + tx] = held[tx] * 2.0
        if tx == 0:
            C[bx] = held[31]


@pytest.mark.parametrize("function", [by_env_threads, by_tags], ids=["env_thread", "tag"])
def test_launched_threads_run_what_follows(function):
    """TVM 0.8 to 0.11 write a statement for the rest of the block, later ones ``with``."""
    loops = [n for n in walk(function.body) if isinstance(n, S.For)]
    assert [n.thread.thread_tag for n in loops] == ["blockIdx.x", "threadIdx.x"]
    source = tvm.build(function, target="opencl").imported_modules[0].get_source()
    assert "__local float" in source
    assert source.count("barrier(") == 1
    assert "get_local_id(0)" in source
    assert "get_group_id(0)" in source


def test_a_thread_that_has_no_tag_is_refused():
    lines = ["@T.prim_func", 'def f(B: T.Buffer((8,), "float32")):', '    i = T.var("int32")',
             "    T.launch_thread(i, 8)", "    B[i] = 1.0"]  # fmt: skip
    with pytest.raises(ModelError, match=r"takes what T\.env_thread names, or a tag"):
        tvm.script.from_source("\n".join(lines))


@T.prim_func
def widened(a: T.Buffer((16,), "uint8"), b: T.Buffer((16,), "float32")):
    for i in T.thread_binding(4, thread="threadIdx.x"):
        for j in T.vectorized(4):
            with T.block("block"):
                vi = T.axis.spatial(16, i * 4 + j)
                b[vi] = T.Cast("float32", a[vi])


def test_casts_are_taken_as_tvm_prints_them():
    values = np.arange(16, dtype="uint8") * 15
    found = np.zeros(16, "float32")
    tvm.testing.run_threads(widened, None, [values, found], "metal")
    np.testing.assert_array_equal(found, values.astype("float32"))
