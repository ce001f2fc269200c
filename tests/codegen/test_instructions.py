"""Instructions of one CPU, called by their LLVM names."""

from functools import partial

import kernels
import numpy as np
import pytest

from slipway import dtypes
from slipway.compiler.emit import build_module
from slipway.errors import CodegenError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.interpreter import interpret
from slipway.ir.ops import call_intrin, const
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


REGROUPED = [
    ("int8x4", "int32"), ("int32", "int8x4"), ("uint8x16", "int32x4"), ("float32", "uint8x4"),
    ("float64", "int32x2"), ("int32x2", "float16x4"), ("int8x8", "int64"),
]  # fmt: skip


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(("have", "want"), REGROUPED)
def test_bits_of_a_vector_are_those_of_another_number_of_lanes(target, have, want):
    steps = 5
    lanes = [dtypes.lanes_of(d) for d in (have, want)]
    a, b = (decl_buffer((steps * n,), dtypes.scalar_of(d), name)
            for n, d, name in zip(lanes, (have, want), "ab", strict=True))  # fmt: skip
    i = E.Var("i")
    at = [kernels.ramp(i * n, n) if n > 1 else i for n in lanes]
    store = S.BufferStore(b, E.Call(want, "reinterpret", (a[at[0]],)), (at[1],))
    func = kernels.prim_func("regroup", [a, b], kernels.loop(i, steps, store))
    raw = np.random.default_rng(0).integers(0, 256, steps * lanes[0] * dtypes.bytes_of(a.dtype))
    data = raw.astype("uint8").view(a.dtype)
    functions, *_ = kernels.load(func, target)
    for run in (functions["regroup"], partial(interpret.run, func)):
        out = np.zeros(steps * lanes[1], b.dtype)
        run(data, out)
        assert out.tobytes() == data.tobytes()


def test_reinterpret_takes_as_many_bits_as_it_gives():
    a, b = decl_buffer((4,), "int8", "a"), decl_buffer((1,), "int64", "b")
    value = E.Call("int64", "reinterpret", (a[kernels.ramp(const(0), 4)],))
    func = kernels.prim_func("short", [a, b], S.BufferStore(b, value, (const(0),)))
    for target in ("c", "llvm"):
        with pytest.raises(CodegenError, match="int8x4 is not int64"):
            build_module(func, Target(target))
