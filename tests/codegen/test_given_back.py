"""Temporaries of the runtime's are given back by whatever way a function ends."""

import ctypes

import pytest

import slipway as tvm
from slipway.script import tir as T


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
