"""Arguments as a graph gives them: taken in a few instructions, and none but the right ones."""

import ctypes

import kernels
import numpy as np
import pytest

from slipway.compiler.emit import build_module
from slipway.target import Target

COUNT, LANES = 1024, 16
CHECK = "call i32 @slw_check_args"


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Any(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("zero", ctypes.c_int32), ("value", ctypes.c_void_p)]


def tensor(array, **changes):
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    made = DLTensor(array.ctypes.data, 1, 0, array.ndim, 2, 32, 1, shape, None, 0)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def call(address, tensors, kinds=None, count=None):
    args = (Any * len(tensors))(
        *(Any(k, 0, ctypes.addressof(t)) for k, t in zip(kinds or [7] * 3, tensors, strict=True))
    )
    function = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p
    )(address)
    result = Any()
    return function(None, args, len(args) if count is None else count, ctypes.byref(result))


@pytest.fixture(scope="module")
def vector_add():
    _, _, library = kernels.load(kernels.vector_add(COUNT, LANES))
    return library


def test_right_arguments(vector_add):
    a, b, out = (kernels.random(COUNT, seed=i) for i in range(3))
    tensors = [tensor(a), tensor(b, data=b.ctypes.data - 64, byte_offset=64), tensor(out)]
    assert call(vector_add.address("__tvm_ffi_vector_add"), tensors) == 0
    np.testing.assert_array_equal(out, a + b)


def test_strides_of_a_compact_tensor_are_no_error(vector_add):
    a, b, out = (kernels.random(COUNT, seed=i) for i in range(3))
    one = (ctypes.c_int64 * 1)(1)
    tensors = [tensor(a), tensor(b, strides=one), tensor(out)]
    assert call(vector_add.address("__tvm_ffi_vector_add"), tensors) == 0
    np.testing.assert_array_equal(out, a + b)


SHAPE = (ctypes.c_int64 * 2)(COUNT, 1)
WRONG = {
    "device": {"device_type": 2}, "rank": {"ndim": 2, "shape": SHAPE}, "code": {"code": 0},
    "bits": {"bits": 16}, "lanes": {"lanes": 2}, "extent": {"shape": (ctypes.c_int64 * 1)(1023)},
    "extent beyond 32 bits": {"shape": (ctypes.c_int64 * 1)(COUNT | 1 << 32)},
    "strides": {"strides": (ctypes.c_int64 * 1)(2)}, "alignment": {"byte_offset": 2},
}  # fmt: skip


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments(vector_add, wrong, which):
    arrays = [kernels.random(COUNT, seed=i) for i in range(3)]
    before = arrays[2].copy()
    tensors = [tensor(x, **(WRONG[wrong] if i == which else {})) for i, x in enumerate(arrays)]
    assert call(vector_add.address("__tvm_ffi_vector_add"), tensors) != 0
    np.testing.assert_array_equal(arrays[2], before)


@pytest.mark.parametrize(("kinds", "count"), [((7, 1, 7), 3), ((7, 7, 0), 3), ((7, 7, 7), 2)])
def test_wrong_kinds_and_counts(vector_add, kinds, count):
    arrays = [kernels.random(COUNT, seed=i) for i in range(3)]
    address = vector_add.address("__tvm_ffi_vector_add")
    assert call(address, [tensor(x) for x in arrays], kinds, count) != 0


@pytest.mark.parametrize(
    ("target", "is_plain"),
    [
        ("llvm -mtriple=x86_64-linux-gnu", True),
        ("llvm -mtriple=aarch64-linux-gnu", True),
        ("llvm -mtriple=armv7l-linux-gnueabihf", False),
        ("llvm -mtriple=riscv32-unknown-none-elf", False),
    ],
)
def test_where_code_may_be_longer(target, is_plain):
    module = build_module(kernels.vector_add(COUNT, 4), Target(target))
    text = module.get_source("ll")
    wrapper = text[text.index("@__tvm_ffi_vector_add(") :]
    assert ("icmp" in wrapper[: wrapper.index(CHECK)]) == is_plain
