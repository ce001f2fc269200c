"""The IR builder makes the statements that it reads like."""

import numpy as np
import pytest

import slipway as tvm
from slipway import te, tir
from slipway.errors import ArgumentTypeError, LoweringError
from slipway.ir import builder as ir_builder
from slipway.ir import stmt as S
from slipway.ir.calls import call_extern
from slipway.ir.interpreter.interpret import run
from slipway.ir.verify import verify
from slipway.ir.visit import walk
from slipway.transform.loop.pipeline import run_pipeline


def test_an_extern_written_with_the_builder():
    n = 20

    def body(ins, outs):
        ib = ir_builder.create()
        a, b = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        total = ib.allocate("float32", (1,), name="total", scope="local")
        total[0] = 0.0
        with ib.for_range(0, n, name="i") as i:
            twice = ib.let("twice", a[i] * 2.0)
            with ib.if_scope(i < 10):
                total[0] = total[0] + twice
            with ib.else_scope():
                total[0] = total[0] - twice
            b[i] = total[0]
        return ib.get()

    a = te.placeholder((n,), name="A")
    b = te.extern((n,), [a], body, name="B", dtype="float32")
    s = te.create_schedule(b.op)
    func = te.lower(s, [a, b])
    x = np.arange(n, dtype="float32")
    want = np.cumsum(np.where(np.arange(n) < 10, 2 * x, -2 * x)).astype("float32")
    for step in (lambda f: f, run_pipeline):
        func = verify(step(func))
        y = np.zeros(n, "float32")
        run(func, x, y)
        np.testing.assert_array_equal(y, want)


def test_while_and_attributes():
    ib = ir_builder.create()
    count = ib.allocate("int32", (1,), name="count")
    count[0] = 0
    ib.scope_attr(None, "note", 1)
    with ib.while_loop(count[0] < 5):
        count[0] = count[0] + 1
    assert str(ib.get()).splitlines() == [
        "allocate count: int32[1]",
        "count[0] = 0",
        "attr note(1)",
        "while count[0] < 5:",
        "    count[0] = count[0] + 1",
    ]


def test_misuse():
    ib = ir_builder.create()
    with pytest.raises(LoweringError, match="directly after an if_scope"), ib.else_scope():
        pass
    b = ib.allocate("float32", (2, 2), name="m")
    with pytest.raises(LoweringError, match="'m' has 2 dimensions"):
        b[0, 0, 0]


def test_a_loop_counts_as_far_as_its_bounds():
    ib = ir_builder.create()
    with ib.for_range(0, 1 << 33) as i:
        ib.emit(S.Evaluate(call_extern("int32", "step", i)))
    loop = ib.get()
    assert (loop.loop_var.dtype, loop.extent.value) == ("int64", 1 << 33)
    with (
        pytest.raises(LoweringError, match=r"'j' has a bound of 4294967296.*int32"),
        ib.for_range(0, 1 << 32, name="j", dtype="int32"),
    ):
        pass


def test_pointers_go_into_loads_stores_and_calls():
    """`tir.Load` and `Store` of vectors through what `ib.pointer` gives, as before TVM 0.10."""
    ib = tvm.tir.ir_builder.create()
    a, b = ib.pointer("float32", name="A"), ib.pointer("float32", name="B")
    indices = tvm.tir.Ramp(0, 1, 4)
    ib.emit(tvm.tir.Store(b, tvm.tir.Load("float32x4", a, indices) * 2.0, indices))
    body = ib.get()
    load = next(n for n in walk(body) if isinstance(n, tvm.tir.BufferLoad))
    assert load.buffer_var is a.asobject().data
    assert next(n for n in walk(body) if isinstance(n, tvm.tir.BufferStore)).buffer_var.name == "B"
    func = tvm.tir.PrimFunc([a.asobject(), b.asobject()], body)
    x, y = tvm.nd.array(np.arange(4, dtype="float32")), tvm.nd.array(np.zeros(4, "float32"))
    tvm.build(func, target="llvm")(x, y)
    np.testing.assert_array_equal(y.numpy(), [0, 2, 4, 6])
    call = tvm.tir.call_pure_extern("int32", "f", a)
    assert call.args[1] is a.asobject().data
    with pytest.raises(LoweringError, match="go through a pointer"):
        tvm.tir.Load("float32", tvm.tir.const(1), 0)


def test_small_functions_of_tir_build_what_they_say():
    x, wide = te.var("x"), te.var("wide", "int16x8")
    assert str(tir.ceildiv(x, 4)) == "(x + 3) // 4"
    assert tir.reinterpret("int32", te.var("a", "float32")).dtype == "int32"
    assert [tir.vectorlow("int16x4", wide).indices, tir.vectorhigh("int16x4", wide).indices] == [
        (0, 1, 2, 3), (4, 5, 6, 7)]  # fmt: skip
    assert tir.vectorcombine("int16x16", wide, wide).lanes == 16
    with pytest.raises(ArgumentTypeError, match="half of a vector of int16x8 is not int8x4"):
        tir.vectorlow("int8x4", wide)
    with pytest.raises(ArgumentTypeError, match="an element of a buffer"):
        tir.address_of(x)
    first, second = tir.Evaluate(x), tir.Evaluate(x + 1)
    assert tir.stmt_list(tir.stmt_seq(first, second)) == [first, second]
    assert tir.stmt_list(first) == [first]


@pytest.mark.parametrize(("extent", "launched"), [(0, 1), (1, 1), (5, 5)])
def test_no_threads_by_number_are_one(extent, launched):
    builder = ir_builder.create()
    builder.scope_attr(te.thread_axis("blockIdx.x"), "thread_extent", extent)
    builder.emit(tir.Evaluate(1))
    assert builder.get().value.value == launched
