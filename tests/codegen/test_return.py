"""Functions of loops that return a number or fail: anywhere, with every temporary given back."""

import ctypes

import numpy as np
import pytest

import slipway as tvm
from slipway import tir
from slipway.errors import CodegenError
from slipway.ir.interpreter.interpret import run
from slipway.script import from_source
from slipway.script import tir as T


@T.prim_func
def first_above(A: T.Buffer((100,), "float32"), x: T.float32) -> T.int32:
    for i in range(100):
        if A[i] > x:
            return i
    return -1


@T.prim_func
def from_temporaries(A: T.Buffer((100000,), "float64"), x: T.float64):
    B = T.alloc_buffer((100000,), "float64")
    C = T.alloc_buffer((100000,), "float64")
    for i in range(100000):
        B[i] = A[i] * 2.0
    for i in range(100000):
        C[i] = B[i] * 2.0
    if C[5] > x:
        T.evaluate(T.ret(B[77]))
    T.evaluate(T.ret(C[99999]))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_value_is_returned_from_loops(target):
    a = np.linspace(0, 1, 100, dtype="float32")
    made = tvm.build(first_above, target=target)
    for x in (0.25, 0.9, 2.0):
        wanted = int(np.argmax(a > x)) if (a > x).any() else -1
        assert made(tvm.nd.array(a), x) == wanted == run(first_above, a, x)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_temporaries_are_given_back_before(target):
    a = np.linspace(1, 2, 100000)
    made = tvm.build(from_temporaries, target=target)
    for x, wanted in ((0.0, a[77] * 2), (100.0, a[-1] * 4)):
        assert made(tvm.nd.array(a), x) == wanted
    if target == "c":
        text = made.get_source()
        early = text[: text.index("return 0;", text.index("slw_returned->"))]
        names = [line.split("(")[1].split(",")[0] for line in early.splitlines()
                 if "  __slipway_workspace_free(" in line]  # fmt: skip
        assert names == ["B", "C", "B"]  # the first where there is no memory for C


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    ("dtype", "given", "wanted"),
    [
        ("float32", (1.5, 2.0), 3.5),
        ("float16", (1.5, 2.0), 3.5),
        ("int64", (2**40, 3), 2**40 + 3),
        ("int8", (100, -3), 97),
        ("uint8", (200, 3), 203),
    ],
)
def test_numbers_of_any_dtype(target, dtype, given, wanted):
    a, b = tir.Var("a", dtype), tir.Var("b", dtype)
    func = tir.PrimFunc([a, b], tir.Evaluate(tir.ret(a + b)))
    found = tvm.build(func, target=target)(*given)
    assert found == wanted
    assert isinstance(found, type(wanted))


def test_conditions_and_nothing():
    a, b = tir.Var("a", "int32"), tir.Var("b", "int32")
    for target in ("llvm", "c"):
        greater = tvm.build(tir.PrimFunc([a, b], tir.Evaluate(tir.ret(a > b))), target=target)
        assert (greater(3, 2), greater(2, 3)) == (True, False)
        at_times = tir.IfThenElse(a > b, tir.Evaluate(tir.ret(a)), None)
        made = tvm.build(tir.PrimFunc([a, b], at_times), target=target)
        assert (made(3, 2), made(2, 3)) == (3, None)


def test_the_text_of_a_function_that_returns_is_read_back():
    text = tvm.IRModule({"main": first_above}).script()
    assert "T.ret(i)" in text
    a = np.linspace(0, 1, 100, dtype="float32")
    assert run(from_source(text)["main"], a, 0.5) == 50


@T.prim_func
def from_a_task(A: T.Buffer((100,), "float32")):
    for i in T.parallel(100):
        if A[i] > T.float32(3):
            T.evaluate(T.ret(i))


@T.prim_func
def from_a_thread(A: T.Buffer((100,), "float32")):
    for i in T.thread_binding(100, thread="threadIdx.x"):
        if A[i] > T.float32(3):
            T.evaluate(T.ret(i))


@pytest.mark.parametrize(
    ("func", "target"), [(from_a_task, "llvm"), (from_a_task, "c"), (from_a_thread, "opencl")]
)
def test_where_no_value_can_be_returned(func, target):
    with pytest.raises(CodegenError, match=r"ret"):
        tvm.build(func, target=target)


def test_a_vector_is_no_value():
    func = tir.PrimFunc([], tir.Evaluate(tir.ret(tir.Broadcast(tir.const(1.0, "float32"), 4))))
    with pytest.raises(CodegenError, match="returns one number"):
        tvm.build(func, target="llvm")


@T.prim_func
def asserts(n: T.int32):
    B = T.alloc_buffer((100000,), "float64")
    C = T.alloc_buffer((100000,), "float64")
    for i in range(100000):
        B[i] = T.float64(n)
    for i in range(100000):
        C[i] = B[99999 - i]
        assert C[i] < 10.0, "too many"
    T.evaluate(T.ret(C[n]))


@T.prim_func
def asserts_in_tasks(n: T.int32):
    B = T.alloc_buffer((100000,), "float64")
    C = T.alloc_buffer((100000,), "float64")
    for i in range(100000):
        B[i] = T.float64(n)
    for i in T.parallel(100000):
        assert B[i] < 10.0, "too many"
        C[i] = B[i]
    T.evaluate(T.ret(C[n]))


@T.prim_func
def calls(n: T.int32):
    B = T.alloc_buffer((100000,), "float64")
    for i in range(100000):
        B[i] = T.float64(n)
    if B[n] > 10.0:
        T.evaluate(T.call_packed("no.such.function", n))
    T.evaluate(T.ret(B[n]))


class Value(ctypes.Structure):
    """One argument or result, as the calling convention has it."""

    _fields_ = [("kind", ctypes.c_int32), ("padding", ctypes.c_uint32), ("number", ctypes.c_int64)]


class Counted:
    """A library whose temporaries are counted; of more than `most` there is no memory."""

    def __init__(self, func, target, folder):
        path = folder / "counted.so"
        tvm.build(tvm.IRModule({"main": func}), target=target).export_library(str(path))
        self.library = ctypes.CDLL(str(path))
        self.held, self.given, self.most = {}, 0, 9
        take = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int32, ctypes.c_int32)
        leave = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
        self.slots = take(self.take), leave(lambda memory, *_: self.held.pop(memory) and None)
        for slot, name in zip(self.slots, ("alloc", "free"), strict=True):
            where = ctypes.c_void_p.in_dll(self.library, f"__slipway_workspace_{name}")
            where.value = ctypes.cast(slot, ctypes.c_void_p).value

    def take(self, size, *_):
        if len(self.held) == self.most:
            return None
        memory = ctypes.create_string_buffer(size + 64)
        at = (ctypes.addressof(memory) + 63) & ~63
        self.held[at], self.given = memory, self.given + 1
        return at

    def status(self, n):
        result = Value()
        return getattr(self.library, "__tvm_ffi_main")(
            None, ctypes.byref(Value(1, 0, n)), 1, ctypes.byref(result)
        )


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("func", [asserts, asserts_in_tasks, calls])
def test_what_fails_gives_its_temporaries_back(func, target, tmp_path):
    counted = Counted(func, target, tmp_path)
    for n, wanted in ((3, 0), (50, -1), (4, 0)):
        before = counted.given
        assert counted.status(n) == wanted
        assert (counted.held, counted.given > before) == ({}, True)
    counted.most = 1 if func is not calls else 0
    assert counted.status(3) == -1
    assert counted.held == {}
