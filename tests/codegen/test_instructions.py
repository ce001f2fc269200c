"""Instructions of one CPU, called by their LLVM names."""

import kernels
import numpy as np
import pytest

from slipway import dtypes
from slipway.compiler.emit import build_module
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.ops import call_intrin
from slipway.target import Target


def dot_product(name, lanes, left="uint8"):
    """acc[i] += sum of 4 products a[4 i + k] * b[4 i + k]."""
    acc = decl_buffer((lanes,), "int32", "acc")
    a = decl_buffer((4 * lanes,), left, "a")
    b = decl_buffer((4 * lanes,), "int8", "b")
    at, whole = kernels.ramp(0, lanes), kernels.ramp(0, 4 * lanes)
    value = call_intrin(
        f"int32x{lanes}", "call_llvm_pure_intrin", name, acc[at], a[whole], b[whole]
    )
    return kernels.prim_func("dot", [acc, a, b], S.BufferStore(acc, value, (at,)))


def test_vnni_on_this_cpu():
    if not Target("llvm").has_feature("avx512vnni"):
        pytest.skip("this CPU has no AVX512-VNNI")
    run = kernels.load(dot_product("llvm.x86.avx512.vpdpbusd.512", 16))[0]["dot"]
    rng = np.random.default_rng(0)
    acc = rng.integers(-1000, 1000, 16, dtype="int32")
    a, b = rng.integers(0, 255, 64, dtype="uint8"), rng.integers(-128, 127, 64, dtype="int8")
    want = acc + (a.astype("int32") * b).reshape(16, 4).sum(1)
    run(acc, a, b)
    np.testing.assert_array_equal(acc, want)


def test_neon_dot_product_is_one_instruction():
    func = dot_product("llvm.aarch64.neon.sdot.v4i32.v16i8", 4, "int8")
    target = Target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76")
    assert "sdot" in build_module(func, target).get_source("asm")


def test_c_has_no_such_names():
    func = dot_product("llvm.aarch64.neon.sdot.v4i32.v16i8", 4, "int8")
    with pytest.raises(CodegenError, match="call_llvm_pure_intrin"):
        build_module(func, Target("c"))


def test_foreign_functions_are_declared_once():
    a = decl_buffer((4,), "float32", "A")
    i = E.Var("i")
    value = call_intrin("float32", "call_pure_extern", "their_scale", a[i])
    body = kernels.loop(i, 4, S.BufferStore(a, value, (i,)))
    func = kernels.prim_func("foreign", [a], body)
    source = build_module(func, Target("c")).get_source()
    assert source.count("float their_scale(float);") == 1
    module = build_module(func, Target("llvm -mtriple=aarch64-linux-gnu"))
    assert b"their_scale" in module.objects[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_avx512_scales_a_power_in_one_instruction(dtype):
    lanes = 64 // dtypes.bytes_of(dtype)
    x, y = (decl_buffer((lanes,), dtype, name) for name in "xy")
    at = kernels.ramp(0, lanes)
    value = E.Call(x[at].dtype, "exp", (x[at],))
    func = kernels.prim_func("power", [x, y], S.BufferStore(y, value, (at,)))
    assert "vscalef" in build_module(func, Target("llvm -mcpu=znver5")).get_source("asm")
