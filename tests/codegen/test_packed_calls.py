"""Generated code that calls PackedFuncs by name."""

import ctypes

import kernels
import numpy as np
import pytest
import tvm_ffi

from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.ops import call_intrin, const

TARGETS = ["llvm", "c -opt-level=1"]


def caller(name, dtype="float32"):
    """y[i] = 2 * x[i] through the function `name`, then y[0] += what it returned."""
    x, y = decl_buffer((2, 3), dtype, "x"), decl_buffer((2, 3), dtype, "y")
    views = [call_intrin("handle", "tensor_view", b.data, 2, 3) for b in (x, y)]
    call = call_intrin(dtype, "call_packed", name, *views, const(2.0, "float32"), "text", 5)
    zero = const(0, "int32")
    result = E.Var("result", dtype)
    body = S.LetStmt(result, call, S.BufferStore(y, E.Add(y[zero, zero], result), (zero, zero)))
    return kernels.prim_func("caller", [x, y], body)


def fill_call_slots(library):
    for slot, symbol in (
        ("__TVMFFIFunctionGetGlobal", "TVMFFIFunctionGetGlobal"),
        ("__TVMFFIFunctionCall", "TVMFFIFunctionCall"),
    ):
        address = ctypes.cast(getattr(kernels._ERROR, symbol), ctypes.c_void_p).value
        ctypes.c_void_p.from_address(library.address(slot)).value = address


@pytest.mark.parametrize("target", TARGETS)
def test_a_packed_function_is_called_with_tensors_and_scalars(target):
    seen = []

    def double(x, y, factor, text, number):
        seen.append((factor, text, number))
        np.from_dlpack(y)[:] = np.from_dlpack(x) * factor
        return 0.5

    tvm_ffi.register_global_func("slipway.test.double", double, override=True)
    functions, _, library = kernels.load(caller("slipway.test.double"), target)
    fill_call_slots(library)
    x, y = kernels.random((2, 3)), np.zeros((2, 3), "float32")
    functions["caller"](x, y)
    want = x * 2
    want[0, 0] += 0.5
    np.testing.assert_array_equal(y, want)
    assert seen == [(2.0, "text", 5)]


@pytest.mark.parametrize("target", TARGETS)
def test_errors_come_through(target):
    def fail(*args):
        raise KeyError("no such thing")

    tvm_ffi.register_global_func("slipway.test.fail", fail, override=True)
    functions, _, library = kernels.load(caller("slipway.test.fail"), target)
    arrays = kernels.random((2, 3)), np.zeros((2, 3), "float32")
    with pytest.raises(RuntimeError, match="fail"):
        functions["caller"](*arrays)  # the slots are empty
    fill_call_slots(library)
    with pytest.raises(KeyError, match="no such thing"):
        functions["caller"](*arrays)
    functions, _, library = kernels.load(caller("slipway.test.nowhere"), target)
    fill_call_slots(library)
    with pytest.raises(RuntimeError, match="nowhere"):
        functions["caller"](*arrays)
