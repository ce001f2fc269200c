"""The machine code of scheduled kernels: straight vector code in registers."""

import re

import kernels
import pytest

from slipway.compiler.emit import build_module
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.ops import call_intrin
from slipway.ir.stmt import seq
from slipway.target import Target


def register_tile(rows, columns, lanes, depth=64):
    """C[rows, columns * lanes] += A[rows, k] * B[k, columns * lanes], C held in registers."""
    width = columns * lanes
    a = decl_buffer((rows * depth,), "float32", "A")
    b = decl_buffer((depth * width,), "float32", "B")
    c = decl_buffer((rows * width,), "float32", "C")
    tile = decl_buffer((rows * width,), "float32", "tile", scope="local")
    k = E.Var("k")
    cells = [(r, v, kernels.ramp((r * columns + v) * lanes, lanes)) for r in range(rows)
             for v in range(columns)]  # fmt: skip
    zero = E.Broadcast(E.FloatImm("float32", 0.0), lanes)
    body = []
    for r, v, at in cells:
        left = E.Broadcast(a[k + r * depth], lanes)
        right = b[kernels.ramp(k * width + v * lanes, lanes)]
        body.append(S.BufferStore(tile, E.Add(tile[at], E.Mul(left, right)), (at,)))
    whole = seq([
        *(S.BufferStore(tile, zero, (at,)) for _, _, at in cells),
        kernels.loop(k, depth, seq(body)),
        *(S.BufferStore(c, tile[at], (at,)) for _, _, at in cells),
    ])  # fmt: skip
    return kernels.prim_func("tile", [a, b, c], S.Allocate(tile, whole))


def inner_loop(assembly, mark):
    """Return the block with the most `mark` instructions, up to the last of them."""
    blocks = re.split(r"\n\.?L?\w+:", assembly)
    block = max(blocks, key=lambda block: block.count(mark))
    return block[: block.rindex(mark) + len(mark)]


@pytest.mark.parametrize(
    ("target", "tile", "fma", "stack"),
    [
        ("llvm -mcpu=skylake-avx512", (14, 2, 16), "vfmadd", r"\(%r[sb]p\)"),
        ("llvm -mcpu=haswell", (6, 2, 8), "vfmadd", r"\(%r[sb]p\)"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", (8, 3, 4), "fmla", r"\[sp|\[x29"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1", (8, 3, 8), "fmla\tz", r"\[sp|\[x29"),
        (
            "llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a7 -mattr=+neon",
            (6, 2, 4),
            "vmla",
            r"\[sp|\[r11",
        ),
    ],
)
def test_register_tiles_stay_in_registers(target, tile, fma, stack):
    rows, columns, _ = tile
    module = build_module(register_tile(*tile), Target(target))
    block = inner_loop(module.get_source("asm"), fma)
    assert block.count(fma) % (rows * columns) == 0
    assert block.count(fma) >= rows * columns
    assert not re.search(stack, block), block


def test_no_calls_of_libraries():
    """Nothing but our own functions is called, whatever the loops look like."""
    a, b = (decl_buffer((4096,), "uint8", name) for name in "AB")
    i, j = E.Var("i"), E.Var("j")
    body = seq([
        kernels.loop(i, 4096, S.BufferStore(b, a[i], (i,))),
        kernels.loop(j, 4096, S.BufferStore(a, E.IntImm("uint8", 0), (j,))),
    ])  # fmt: skip
    module = build_module(kernels.prim_func("copy", [a, b], body), Target("llvm"))
    assert "memcpy" not in module.get_source("asm")
    assert "memset" not in module.get_source("asm")


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512"])
def test_high_products_with_a_factor_outside_the_loop_multiply_twice(cpu):
    """Even and odd elements by one pmuldq each, which knows that its operands have a sign."""
    a, c = (decl_buffer((8 * n,), "int32", name) for n, name in ((64, "A"), (1, "C")))
    factor, i = E.Var("factor", "int32x8"), E.Var("i")
    row = kernels.ramp(i * 8, 8)
    high = S.BufferStore(a, call_intrin("int32x8", "multiply_high", a[row], factor), (row,))
    body = S.LetStmt(factor, c[kernels.ramp(0, 8)], kernels.loop(i, 64, high))
    module = build_module(kernels.prim_func("scaled", [a, c], body), Target(f"llvm -mcpu={cpu}"))
    block = inner_loop(module.get_source("asm"), "vpmuldq")
    assert "vpmuludq" not in module.get_source("asm")
    assert block.count("vpmuldq") % 2 == 0


@pytest.mark.parametrize(
    ("target", "whole"),
    [
        ("llvm -mcpu=haswell", "8x32"),
        ("llvm -mcpu=znver3", "8x32"),
        ("llvm -mcpu=skylake-avx512", ""),
        ("llvm -mtriple=wasm32", "4x32"),
        ("llvm -mtriple=wasm32 -mattr=-simd128", ""),
    ],
)
def test_constants_of_a_function_cost_no_instructions(target, whole):
    """AVX2 repeats a constant by an instruction of its own; loaded whole, most are operands.

    Engines of WebAssembly take three instructions for one, in each round of a loop.
    """
    a, b = (decl_buffer((4096,), "float32", name) for name in "AB")
    k = E.Var("k")
    at = kernels.ramp(k * 8, 8)
    body = S.BufferStore(b, call_intrin("float32x8", "erf", a[at]), (at,))
    func = kernels.prim_func("erf", [a, b], kernels.loop(k, 512, body))
    module = build_module({"erf": func}, Target(target))
    assert (
        re.findall(r"@slw\.splat\.(\w+)\.", module.get_source("ll"))[:1] == [whole][: bool(whole)]
    )
    if whole == "8x32":
        loop = inner_loop(module.get_source("asm"), "vfmadd")
        assert loop.count("vbroadcastss") <= 1
        assert len(re.findall(r"vfmadd\w+\t\.L|vfmadd\w+\t\S*\(%rip\)", loop)) >= 6
    if whole == "4x32":
        loop = module.get_source("asm").rpartition("\tloop")[2].partition("end_loop")[0]
        assert loop.count("f32x4.mul") > 20
        assert loop.count("v128.const") <= 6  # of integers, and of signs
