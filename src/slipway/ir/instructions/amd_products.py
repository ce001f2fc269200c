"""Products that the threads of a wave compute together: AMD's WMMA (RDNA 3, 4) and MFMA (CDNA).

To a thread, an instruction is a small product of its own: eight rows of `a` (four, of MFMA) with a
column of `b` added to as many sums, over the depth of the instruction::

    c[i] += sum over k of a[i, k] * b[k]

The hardware's sums are matrices of 16 x 16, of which thread ``16 g + j`` has rows of column `j`:

RDNA 3 (gfx11, waves of 32): rows g, g + 2, and so on; it gives row `j` of `a`, all sixteen steps,
and column `j` of `b`, and the threads of both halves give the same.  Which row of the hardware's a
row is does not matter to a product: hardware row ``2 i + g`` is row ``8 g + i``, so that a thread's
rows lie together.

RDNA 4 (gfx120, waves of 32): rows ``8 g`` to ``8 g + 7``; it gives eight steps of row `j` of `a`
and of column `j` of `b`, those from ``8 g`` on.

CDNA 2 and 3 (gfx90a, gfx94, gfx950, waves of 64): rows ``4 g`` to ``4 g + 3``; it gives a fourth
of the steps, those from g times as many on.

Loops name one by ``Call("int32", "warp_product", (StringImm(name), a, b, c0, c1, ...))``, whose
operands are pointers to the row and the column that the thread gives, and to its sums.  All threads
must come to it together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slipway import dtypes
from slipway.ir.instructions.warp_products import WARP, SumsLayout

SIDE = 16  # of the hardware's matrices
WIDE_WAVE = 64  # threads, of CDNA
_ALIGNED = 16  # bytes, of a row in a panel
_CDNA = "gfx90a|gfx94|gfx950"


@dataclass(frozen=True)
class AmdProduct:
    """One instruction; `llvm` is LLVM's name, `operand` its type of what a thread gives.

    `builtin` is the function of HIP's C.  A thread gives `steps` of a row and of a column, of
    `depth`, and has `sums`.  Of WMMA, bytes have a flag in front that says whether they have a
    sign.  `cpus` is a pattern of the processors that have it.
    """

    name: str
    a_dtype: str
    b_dtype: str
    c_dtype: str
    llvm: str
    operand: str
    builtin: str
    cpus: str = "gfx11"
    steps: int = SIDE
    depth: int = SIDE
    wave: int = WARP
    sums: int = 8

    @property
    def in_parts(self) -> bool:
        """Whether threads give different steps of a row, not all of them the same ones."""
        return self.steps < self.depth

    @property
    def layout(self) -> SumsLayout:
        """Which sums are a thread's."""
        return SumsLayout(self.sums, 1, SIDE, SIDE, self.wave // SIDE, SIDE)

    @property
    def pads(self) -> tuple[int, int]:
        """Bytes between rows of panels: of 80 bytes, sixteen rows begin in different banks."""
        return 16, 16

    @property
    def sum_type(self) -> str:
        """LLVM's type of a sum."""
        return "float" if self.c_dtype == "float32" else "i32"

    @property
    def given_bytes(self) -> int:
        """The bytes that a thread gives of a row."""
        return self.steps * dtypes.bytes_of(self.a_dtype)

    @property
    def is_wmma(self) -> bool:
        """Whether it is of RDNA's instructions, not of CDNA's."""
        return self.wave == WARP

    def flags(self, dtype: str) -> str:
        """Return what stands in front of an operand."""
        if self.c_dtype == "float32" or not self.is_wmma:
            return ""
        return f"i1 {'true' if dtypes.is_int(dtype) else 'false'}, "

    @property
    def end(self) -> str:
        """What follows the sums in a call: no saturation, or nothing broadcast or negated."""
        if not self.is_wmma:
            return ", i32 0, i32 0, i32 0"
        return ", i1 false" if self.flags(self.a_dtype) else ""


def _bytes(a: str, b: str) -> AmdProduct:
    kinds = [f"{'s' if dtype == 'int8' else 'u'}8" for dtype in (a, b)]
    return AmdProduct(
        f"wmma.{kinds[0]}.{kinds[1]}", a, b, "int32", "wmma.i32.16x16x16.iu8.v8i32.v4i32",
        "<4 x i32>", "__builtin_amdgcn_wmma_i32_16x16x16_iu8_w32",
    )  # fmt: skip


def _of_gfx12(entry: AmdProduct) -> AmdProduct:
    """Return the same product on RDNA 4, whose threads give half of the steps."""
    whole, kind = entry.operand[1:-1].split(" x ")
    count = int(whole) // 2
    name = re.sub(r"\d+(\w\d+)$", rf"{count}\1", entry.llvm)
    return replace(
        entry, name=entry.name.replace("wmma.", "wmma12."), llvm=name, cpus="gfx120",
        operand=f"<{count} x {kind}>", builtin=f"{entry.builtin}_gfx12", steps=SIDE // 2,
    )  # fmt: skip


def _mfma(kind: str, dtype: str, llvm: str, operand: str, depth: int, cpus: str) -> AmdProduct:
    """Return an instruction of CDNA's, of which a thread gives a fourth of the steps."""
    of = "int32" if dtype == "int8" else "float32"
    builtin = "__builtin_amdgcn_" + llvm.replace(".", "_")
    return AmdProduct(
        f"mfma.{kind}", dtype, dtype, of, llvm, operand, builtin, cpus, depth // 4, depth,
        WIDE_WAVE, 4,
    )  # fmt: skip


_GFX11 = (
    AmdProduct("wmma.f16", "float16", "float16", "float32",
               "wmma.f32.16x16x16.f16.v8f32.v16f16", "<16 x half>",
               "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32"),
    AmdProduct("wmma.bf16", "bfloat16", "bfloat16", "float32",
               "wmma.f32.16x16x16.bf16.v8f32.v16i16", "<16 x i16>",
               "__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32"),
    *(_bytes(a, b) for a in ("int8", "uint8") for b in ("int8", "uint8")),
)  # fmt: skip
_MFMA = (
    _mfma("f16", "float16", "mfma.f32.16x16x16f16", "<4 x half>", 16, _CDNA),
    _mfma("bf16", "bfloat16", "mfma.f32.16x16x16bf16.1k", "<4 x i16>", 16, _CDNA),
    _mfma("f32", "float32", "mfma.f32.16x16x4f32", "float", 4, _CDNA),
    _mfma("s8", "int8", "mfma.i32.16x16x16i8", "i32", 16, "gfx90a"),
    _mfma("s8.wide", "int8", "mfma.i32.16x16x32.i8", "i64", 32, "gfx94|gfx950"),
)
AMD_PRODUCTS: dict[str, AmdProduct] = {
    entry.name: entry for entry in (*_GFX11, *map(_of_gfx12, _GFX11), *_MFMA)
}


def flushes(entry: AmdProduct, cpu: str) -> bool:
    """Return whether an instruction takes numbers below the smallest normal one as zero."""
    return not entry.is_wmma and entry.a_dtype in ("float16", "bfloat16") and cpu == "gfx90a"


def wave_of(cpu: str) -> int:
    """Return how many threads compute a product of a GPU of AMD's together."""
    return WIDE_WAVE if re.match(_CDNA, cpu) else WARP


def amd_product(cpu: str, a_dtype: str, b_dtype: str, c_dtype: str) -> AmdProduct | None:
    """Return the instruction of a GPU of AMD's for products of these types, or None."""
    for entry in AMD_PRODUCTS.values():
        alike = (entry.a_dtype, entry.b_dtype, entry.c_dtype) == (a_dtype, b_dtype, c_dtype)
        if alike and re.match(entry.cpus, cpu):
            return entry
    return None


def llvm_declaration(entry: AmdProduct) -> str:
    """Return LLVM's declaration of an instruction."""
    flag = "i1, " if entry.flags(entry.a_dtype) else ""
    sums = f"<{entry.sums} x {entry.sum_type}>"
    end = re.sub(r" (false|0)\b", "", entry.end)
    return (
        f"declare {sums} @llvm.amdgcn.{entry.llvm}({flag}{entry.operand}, {flag}{entry.operand}, "
        f"{sums}{end})"
    )


def emit_llvm(
    entry: AmdProduct, pointers: Sequence[str], put: Callable[[str], str], do: Callable[[str], Any]
) -> None:
    """Emit the product.  `put` appends a value and returns its name, `do` appends the rest."""
    of = entry.sum_type
    aligned = min(entry.given_bytes, _ALIGNED)
    left, right = (put(f"load {entry.operand}, ptr {at}, align {aligned}") for at in pointers[:2])
    cells = pointers[2:]
    sums = "poison"
    for number, cell in enumerate(cells):
        one = put(f"load {of}, ptr {cell}, align 4")
        sums = put(f"insertelement <{entry.sums} x {of}> {sums}, {of} {one}, i64 {number}")
    first, second = (entry.flags(dtype) for dtype in (entry.a_dtype, entry.b_dtype))
    made = put(
        f"call <{entry.sums} x {of}> @llvm.amdgcn.{entry.llvm}({first}{entry.operand} {left}, "
        f"{second}{entry.operand} {right}, <{entry.sums} x {of}> {sums}{entry.end})"
    )
    for number, cell in enumerate(cells):
        one = put(f"extractelement <{entry.sums} x {of}> {made}, i64 {number}")
        do(f"store {of} {one}, ptr {cell}, align 4")


def hip_function(entry: AmdProduct, symbol: str) -> str:
    """Return the function in HIP's C."""
    of = "float" if entry.c_dtype == "float32" else "int"
    sums = [f"c{number}" for number in range(entry.sums)]
    given = "*(const slw_operand*)a, *(const slw_operand*)b, s"
    if not entry.is_wmma:
        given += ", 0, 0, 0"
    elif of == "int":
        signs = ["true" if dtypes.is_int(d) else "false" for d in (entry.a_dtype, entry.b_dtype)]
        given = f"{signs[0]}, *(const slw_operand*)a, {signs[1]}, *(const slw_operand*)b, s, false"
    lines = [
        f"typedef {_hip_type(entry.operand)};",
        f"typedef {of} slw_sums __attribute__((ext_vector_type({entry.sums})));",
        f"slw_sums s = {{{', '.join(f'*{name}' for name in sums)}}};",
        f"s = {entry.builtin}({given});",
        *(f"*{name} = s[{number}];" for number, name in enumerate(sums)),
    ]
    parameters = ", ".join(f"{of}* {name}" for name in sums)
    body = "\n".join(f"  {line}" for line in lines)
    return (
        f"static __device__ __forceinline__ void {symbol}(const void* a, const void* b, "
        f"{parameters}) {{\n{body}\n}}\n"
    )


def _hip_type(operand: str) -> str:
    """Return what declares ``slw_operand`` as a type of LLVM's, in HIP's C."""
    count, _, kind = operand.strip("<>").rpartition(" x ")
    of = {"half": "_Float16", "i16": "short", "i32": "int", "i64": "long", "float": "float"}[kind]
    return f"{of} slw_operand" + (f" __attribute__((ext_vector_type({count})))" if count else "")
