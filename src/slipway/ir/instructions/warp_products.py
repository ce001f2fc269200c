"""Products that the 32 threads of a warp compute together: NVIDIA's ``mma.sync``.

To a thread, an instruction is a small product of its own: two rows of `a` with two columns of `b`
added to two by two sums, over a depth of 32 bytes::

    c[i, j] += sum over k of a[i, k] * b[j, k]

Its rows are its own; the columns it fetches for the others.  Thread ``4 g + t`` of a warp has sums
of the rows of its ``g`` and the columns of its ``t``, and gives the instruction eight bytes (those
from ``8 t`` on) of each of its two rows, and of one column: the first or second column (``g % 2``)
of the threads whose ``t`` is ``g // 2``.  Which row of the hardware's tile a row is does not matter
to a product, nor does the order of steps: both are such that what a thread fetches lies together.

Matrix units of sm_75 take half of the depth at once, of bytes one row too: there it is two of their
instructions, or four, in the same registers.

Loops name one by ``Call("int32", "warp_product", (StringImm(name), a0, a1, b, c0, c1))``, whose
operands are pointers to the eight bytes and to the two rows of sums.  All threads of a warp must
come to it together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slipway import dtypes
from slipway.ir import expr as E

WARP = 32  # threads
ROWS, COLUMNS = 2, 2  # of a thread
WHOLE_FROM = 80  # the first sm_ with instructions for the whole
_FETCHED = 8  # bytes of a row that a thread fetches
PRODUCT, ZERO = "warp_product", "warp_zero"  # calls that name sums; the second is of matrices only


@dataclass(frozen=True)
class SumsLayout:
    """Which part of a warp's sums, `warp_rows` x `warp_columns`, is a thread's: `rows` x `columns`.

    Its number says its part: of the row's number the high digits, of the column's the high ones,
    then the low digits of both; `low_rows` and `low_columns` is how many values the low ones have.
    """

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    low_rows: int
    low_columns: int


_LAYOUT = SumsLayout(ROWS, COLUMNS, 16, 8, 8, 4)


@dataclass(frozen=True)
class WarpProduct:
    """One instruction; `llvm` is the end of LLVM's name, `ptx` of the assembler's.

    `operand` is the type that LLVM's intrinsic takes for four bytes of `a` and `b`.  It takes
    `halves` of the depth, and `rows`, at once.  Below sm_N, N the `lowest_version`, there is none;
    `parts` is the instruction of which several are this one below sm_80, or None.
    """

    name: str
    a_dtype: str
    b_dtype: str
    c_dtype: str
    llvm: str
    ptx: str
    operand: str = "i32"
    lowest_version: int = 75
    halves: int = 2
    rows: int = ROWS
    parts: WarpProduct | None = None

    @property
    def layout(self) -> SumsLayout:
        """Which sums are a thread's."""
        return _LAYOUT

    @property
    def pads(self) -> tuple[int, int]:
        """Bytes between rows of panels: banks of four threads' rows and columns."""
        return 16, 32

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
    llvm = "row.col." + (kinds[0] if a == b else name)
    ptx = f"row.col.s32.{name}.s32"
    whole = WarpProduct(name, a, b, "int32", f"m16n8k32.{llvm}", f"m16n8k32.{ptx}")
    small = replace(whole, llvm=f"m8n8k16.{llvm}", ptx=f"m8n8k16.{ptx}", halves=1, rows=1)
    return replace(whole, parts=small)


_F16 = WarpProduct("f16", "float16", "float16", "float32", "m16n8k16.row.col.f32.f32",
                   "m16n8k16.row.col.f32.f16.f16.f32", "<2 x half>")  # fmt: skip


WARP_PRODUCTS: dict[str, WarpProduct] = {
    entry.name: entry
    for entry in (
        replace(_F16, parts=replace(_F16, llvm="m16n8k8.row.col.f32.f32",
                                    ptx="m16n8k8.row.col.f32.f16.f16.f32", halves=1)),
        WarpProduct("bf16", "bfloat16", "bfloat16", "float32", "m16n8k16.row.col.bf16",
                    "m16n8k16.row.col.f32.bf16.bf16.f32", lowest_version=WHOLE_FROM),
        *(_integers(a, b) for a in ("int8", "uint8") for b in ("int8", "uint8")),
    )
}  # fmt: skip


def warp_product(a_dtype: str, b_dtype: str, c_dtype: str) -> WarpProduct | None:
    """Return the instruction for products of these types, or None."""
    for entry in WARP_PRODUCTS.values():
        if (entry.a_dtype, entry.b_dtype, entry.c_dtype) == (a_dtype, b_dtype, c_dtype):
            return entry
    return None


def sums_of(call: E.Call) -> list[E.BufferLoad]:
    """Return the elements that a call names as its sums: those of the last operand's memory."""
    elements = [arg.args[0] for arg in call.args if isinstance(arg, E.Call)]
    loads = [element for element in elements if isinstance(element, E.BufferLoad)]
    return [load for load in loads if load.buffer.data is loads[-1].buffer.data]


def symbol(name: str) -> str:
    """Return the name of the function that computes a product."""
    return "slw_warp_" + name.replace(".", "_")


def instruction(entry: WarpProduct, version: int) -> WarpProduct:
    """Return the instruction of sm_N, N the version, that `entry` is one or several of."""
    return entry if version >= WHOLE_FROM or entry.parts is None else entry.parts


def llvm_declaration(entry: WarpProduct) -> str:
    """Return LLVM's declaration of an instruction."""
    of, result = _sums(entry)
    operands = [entry.operand] * ((entry.rows + 1) * entry.halves)
    given = ", ".join(operands + [of] * (COLUMNS * entry.rows))
    return f"declare {result} @llvm.nvvm.mma.{entry.llvm}({given})"


def emit_llvm(
    entry: WarpProduct, pointers: Sequence[str], put: Callable[[str], str], do: Callable[[str], Any]
) -> None:
    """Emit the product by instructions that are `entry`, or its parts.

    `put` appends a value and returns its name, `do` appends the rest.
    """
    of, result = _sums(entry)
    words = []
    for at in pointers[:3]:
        both = put(f"load <2 x i32>, ptr {at}, align 8")
        halves = [put(f"extractelement <2 x i32> {both}, i32 {half}") for half in range(2)]
        words.append([put(f"bitcast i32 {half} to {entry.operand}") for half in halves])
    (*rows, b) = words
    cells = [[row, put(f"getelementptr {of}, ptr {row}, i64 1")] for row in pointers[3:]]
    sums = [[put(f"load {of}, ptr {cell}, align 4") for cell in row] for row in cells]
    for row in range(0, ROWS, entry.rows):
        for half in range(0, 2, entry.halves):
            taken = range(half, half + entry.halves)
            # The hardware has all rows' first halves, then their second halves.
            own = [rows[row + i][at] for at in taken for i in range(entry.rows)]
            given = [f"{entry.operand} {word}" for word in (*own, *(b[at] for at in taken))]
            given += [f"{of} {n}" for i in range(entry.rows) for n in sums[row + i]]
            made = put(f"call {result} @llvm.nvvm.mma.{entry.llvm}({', '.join(given)})")
            for number in range(COLUMNS * entry.rows):
                value = put(f"extractvalue {result} {made}, {number}")
                sums[row + number // COLUMNS][number % COLUMNS] = value
    for cells_of_row, values in zip(cells, sums, strict=True):
        for cell, value in zip(cells_of_row, values, strict=True):
            do(f"store {of} {value}, ptr {cell}, align 4")


def _sums(entry: WarpProduct) -> tuple[str, str]:
    """Return LLVM's type of a sum, and of those that are the result."""
    of = "float" if entry.c_dtype == "float32" else "i32"
    return of, "{" + ", ".join([of] * (COLUMNS * entry.rows)) + "}"


def cuda_function(entry: WarpProduct) -> str:
    """Return the function in CUDA C."""
    of = "float" if entry.c_dtype == "float32" else "int"
    lines = _assembly(entry)
    if entry.parts is not None:
        lines = (
            f"#if __CUDA_ARCH__ >= {WHOLE_FROM}0\n{lines}#else\n{_assembly(entry.parts)}#endif\n"
        )
    return (
        f"#ifndef SLW_WARP_PRODUCTS\n"
        f"static __device__ __forceinline__ void {symbol(entry.name)}(const void* a0, "
        f"const void* a1, const void* b, {of}* c0, {of}* c1) {{\n"
        "  const unsigned *p = (const unsigned*)a0, *q = (const unsigned*)a1;\n"
        f"  const unsigned *s = (const unsigned*)b;\n{lines}}}\n#endif\n"
    )


def _assembly(entry: WarpProduct) -> str:
    """Return the lines of the product by instructions that are `entry`."""
    letter = "f" if entry.c_dtype == "float32" else "r"
    text = ""
    for row in range(0, ROWS, entry.rows):
        for half in range(0, 2, entry.halves):
            taken = range(half, half + entry.halves)
            own = [f"{'pq'[row + i]}[{at}]" for at in taken for i in range(entry.rows)]
            words = [f'"r"({word})' for word in (*own, *(f"s[{at}]" for at in taken))]
            sums = [f'"+{letter}"(c{row + i}[{j}])' for i in range(entry.rows) for j in range(2)]
            count = len(sums)
            groups = (count, entry.rows * entry.halves, entry.halves)
            names, first = [], 0
            for size in groups:
                names.append("{" + ", ".join(f"%{first + i}" for i in range(size)) + "}")
                first += size
            text += (
                f'  asm volatile("mma.sync.aligned.{entry.ptx} '
                f'{names[0]}, {names[1]}, {names[2]}, {names[0]};"\n'
                f"               : {', '.join(sums)}\n               : {', '.join(words)});\n"
            )
    return text
