"""Products that the 32 threads of a warp compute together: NVIDIA's ``mma.sync``.

To a thread, an instruction is a small product of its own: two rows of `a` with two columns of `b`
added to two by two sums, over a depth of 32 bytes::

    c[i, j] += sum over k of a[i, k] * b[j, k]

Its rows are its own; the columns it fetches for the others.  Thread ``4 g + t`` of a warp has sums
of the rows of its ``g`` and the columns of its ``t``, and gives the instruction eight bytes (those
from ``8 t`` on) of each of its two rows, and of one column: the first or second column (``g % 2``)
of the threads whose ``t`` is ``g // 2``.  Which row of the hardware's tile a row is does not matter
to a product, nor does the order of steps: both are such that what a thread fetches lies together.

Loops name one by ``Call("int32", "warp_product", (StringImm(name), a0, a1, b, c0, c1))``, whose
operands are pointers to the eight bytes and to the two rows of sums.  All threads of a warp must
come to it together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from slipway import dtypes

WARP = 32  # threads
ROWS, COLUMNS = 2, 2  # of a thread
_FETCHED = 8  # bytes of a row that a thread fetches


@dataclass(frozen=True)
class WarpProduct:
    """One instruction; `llvm` is the end of LLVM's name, `ptx` of the assembler's.

    `operand` is the type that LLVM's intrinsic takes for four bytes of `a` and `b`; below sm_N, N
    the `lowest_version`, there is none.
    """

    name: str
    a_dtype: str
    b_dtype: str
    c_dtype: str
    llvm: str
    ptx: str
    operand: str = "i32"
    lowest_version: int = 80

    @property
    def fetched(self) -> int:
        """Elements of a row that a thread fetches."""
        return _FETCHED // dtypes.bytes_of(self.a_dtype)

    @property
    def depth(self) -> int:
        """Steps of the sum."""
        return 4 * self.fetched


def _integers(a: str, b: str) -> WarpProduct:
    kinds = [f"{'s' if dtype == 'int8' else 'u'}8" for dtype in (a, b)]
    name = ".".join(kinds)
    llvm = "m16n8k32.row.col." + (kinds[0] if a == b else name)
    return WarpProduct(name, a, b, "int32", llvm, f"m16n8k32.row.col.s32.{name}.s32")


WARP_PRODUCTS: dict[str, WarpProduct] = {
    entry.name: entry
    for entry in (
        WarpProduct("f16", "float16", "float16", "float32", "m16n8k16.row.col.f32.f32",
                    "m16n8k16.row.col.f32.f16.f16.f32", "<2 x half>"),
        WarpProduct("bf16", "bfloat16", "bfloat16", "float32", "m16n8k16.row.col.bf16",
                    "m16n8k16.row.col.f32.bf16.bf16.f32"),
        *(_integers(a, b) for a in ("int8", "uint8") for b in ("int8", "uint8")),
    )
}  # fmt: skip


def warp_product(a_dtype: str, b_dtype: str, c_dtype: str) -> WarpProduct | None:
    """Return the instruction for products of these types, or None."""
    for entry in WARP_PRODUCTS.values():
        if (entry.a_dtype, entry.b_dtype, entry.c_dtype) == (a_dtype, b_dtype, c_dtype):
            return entry
    return None


def symbol(entry: WarpProduct) -> str:
    """Return the name of the function that does it in CUDA C."""
    return "slw_warp_" + entry.name.replace(".", "_")


def llvm_declaration(entry: WarpProduct) -> str:
    """Return LLVM's declaration of the instruction."""
    of, result = _sums(entry)
    return (
        f"declare {result} @llvm.nvvm.mma.{entry.llvm}({', '.join([entry.operand] * 6 + [of] * 4)})"
    )


def emit_llvm(
    entry: WarpProduct, pointers: Sequence[str], put: Callable[[str], str], do: Callable[[str], Any]
) -> None:
    """Emit the instruction; `put` appends a value and returns its name, `do` appends the rest."""
    of, result = _sums(entry)
    words = []
    for at in pointers[:3]:
        both = put(f"load <2 x i32>, ptr {at}, align 8")
        halves = [put(f"extractelement <2 x i32> {both}, i32 {half}") for half in range(2)]
        words.append([put(f"bitcast i32 {half} to {entry.operand}") for half in halves])
    (a0, a1, b) = words
    # The hardware has both rows' first halves, then their second halves.
    given = [f"{entry.operand} {word}" for word in (a0[0], a1[0], a0[1], a1[1], *b)]
    cells = []
    for row in pointers[3:]:
        cells += [row, put(f"getelementptr {of}, ptr {row}, i64 1")]
    given += [f"{of} {put(f'load {of}, ptr {cell}, align 4')}" for cell in cells]
    made = put(f"call {result} @llvm.nvvm.mma.{entry.llvm}({', '.join(given)})")
    for number, cell in enumerate(cells):
        do(f"store {of} {put(f'extractvalue {result} {made}, {number}')}, ptr {cell}, align 4")


def _sums(entry: WarpProduct) -> tuple[str, str]:
    """Return LLVM's type of a sum, and of the four that are the result."""
    of = "float" if entry.c_dtype == "float32" else "i32"
    return of, "{" + ", ".join([of] * 4) + "}"


def cuda_function(entry: WarpProduct) -> str:
    """Return the function in CUDA C."""
    of, letter = ("float", "f") if entry.c_dtype == "float32" else ("int", "r")
    sums = [f'"+{letter}"(c{row}[{i}])' for row in range(2) for i in range(2)]
    words = [f'"r"({at})' for at in ("p[0]", "q[0]", "p[1]", "q[1]", "s[0]", "s[1]")]
    text = "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    return (
        f"#ifndef SLW_WARP_PRODUCTS\n"
        f"static __device__ __forceinline__ void {symbol(entry)}(const void* a0, const void* a1, "
        f"const void* b, {of}* c0, {of}* c1) {{\n"
        "  const unsigned *p = (const unsigned*)a0, *q = (const unsigned*)a1;\n"
        "  const unsigned *s = (const unsigned*)b;\n"
        f'  asm volatile("mma.sync.aligned.{entry.ptx} {text}"\n'
        f"               : {', '.join(sums)}\n               : {', '.join(words)});\n}}\n#endif\n"
    )
