"""Products that the 32 threads of a wave compute together: AMD's WMMA, on RDNA 3 and 4.

To a thread, an instruction is a small product of its own: eight rows of `a` with a column of `b`
added to eight sums, over a depth of sixteen::

    c[i] += sum over k of a[i, k] * b[k]

RDNA 3 (gfx11): the hardware's sums are matrices of 16 x 16, of which thread ``16 h + j`` has column
`j` of rows h, h + 2, and so on; it gives row `j` of `a`, all sixteen steps, and column `j` of `b`,
and the threads of both halves give the same.  Which row of the hardware's a row is does not matter
to a product: hardware row ``2 i + h`` is row ``8 h + i``, so that a thread's rows lie together.

RDNA 4 (gfx12): thread ``16 h + j`` has rows ``8 h`` to ``8 h + 7`` of column `j`, and gives eight
steps of row `j` of `a` and of column `j` of `b`, those from ``8 h`` on.

Loops name one by ``Call("int32", "warp_product", (StringImm(name), a, b, c0, ..., c7))``, whose
operands are pointers to the row and the column that the thread gives, and to its sums.  All threads
must come to it together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slipway import dtypes
from slipway.ir.instructions.warp_products import SumsLayout

SUMS = 8  # of a thread
SIDE = 16  # of the hardware's matrices
_ALIGNED = 16  # bytes, of a row in a panel
_LAYOUT = SumsLayout(SUMS, 1, SIDE, SIDE, 2, SIDE)
_GENERATION = re.compile(r"gfx(11|120)")


@dataclass(frozen=True)
class WmmaProduct:
    """One instruction; `llvm` is LLVM's name, `operand` its type of a row or a column.

    `builtin` is the function of HIP's C.  Bytes have a flag in front that says whether they have a
    sign.  A thread gives `steps` of a row and of a column.
    """

    name: str
    a_dtype: str
    b_dtype: str
    c_dtype: str
    llvm: str
    operand: str
    builtin: str
    steps: int = SIDE

    @property
    def in_halves(self) -> bool:
        """Whether the halves of a wave give different steps (gfx12), not the same ones (gfx11)."""
        return self.steps < SIDE

    @property
    def layout(self) -> SumsLayout:
        """Which sums are a thread's."""
        return _LAYOUT

    @property
    def depth(self) -> int:
        """Steps of the sum."""
        return SIDE

    @property
    def pads(self) -> tuple[int, int]:
        """Bytes between rows of panels: of 80 bytes, sixteen rows begin in different banks."""
        return 16, 16

    @property
    def sum_type(self) -> str:
        """LLVM's type of a sum."""
        return "float" if self.c_dtype == "float32" else "i32"

    def flags(self, dtype: str) -> str:
        """Return what stands in front of an operand."""
        if self.c_dtype == "float32":
            return ""
        return f"i1 {'true' if dtypes.is_int(dtype) else 'false'}, "

    @property
    def given_bytes(self) -> int:
        """The bytes that a thread gives of a row."""
        return self.steps * dtypes.bytes_of(self.a_dtype)


def _bytes(a: str, b: str) -> WmmaProduct:
    kinds = [f"{'s' if dtype == 'int8' else 'u'}8" for dtype in (a, b)]
    return WmmaProduct(
        f"wmma.{kinds[0]}.{kinds[1]}", a, b, "int32", "wmma.i32.16x16x16.iu8.v8i32.v4i32",
        "<4 x i32>", "__builtin_amdgcn_wmma_i32_16x16x16_iu8_w32",
    )  # fmt: skip


def _of_gfx12(entry: WmmaProduct) -> WmmaProduct:
    """Return the same product on RDNA 4, whose threads give half of the steps."""
    whole, kind = entry.operand[1:-1].split(" x ")
    count = int(whole) // 2
    name = re.sub(r"\d+(\w\d+)$", rf"{count}\1", entry.llvm)
    return replace(
        entry, name=entry.name.replace("wmma.", "wmma12."), llvm=name,
        operand=f"<{count} x {kind}>", builtin=f"{entry.builtin}_gfx12", steps=SIDE // 2,
    )  # fmt: skip


_GFX11 = (
    WmmaProduct("wmma.f16", "float16", "float16", "float32",
                "wmma.f32.16x16x16.f16.v8f32.v16f16", "<16 x half>",
                "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32"),
    WmmaProduct("wmma.bf16", "bfloat16", "bfloat16", "float32",
                "wmma.f32.16x16x16.bf16.v8f32.v16i16", "<16 x i16>",
                "__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32"),
    *(_bytes(a, b) for a in ("int8", "uint8") for b in ("int8", "uint8")),
)  # fmt: skip
WMMA_PRODUCTS: dict[str, WmmaProduct] = {
    entry.name: entry for entry in (*_GFX11, *map(_of_gfx12, _GFX11))
}


def wmma_product(cpu: str, a_dtype: str, b_dtype: str, c_dtype: str) -> WmmaProduct | None:
    """Return the instruction of a GPU of AMD's for products of these types, or None."""
    found = _GENERATION.match(cpu)
    for entry in WMMA_PRODUCTS.values() if found else ():
        alike = (entry.a_dtype, entry.b_dtype, entry.c_dtype) == (a_dtype, b_dtype, c_dtype)
        if alike and entry.in_halves == (found is not None and found[1] == "120"):
            return entry
    return None


def llvm_declaration(entry: WmmaProduct) -> str:
    """Return LLVM's declaration of an instruction."""
    flag = "i1, " if entry.flags(entry.a_dtype) else ""
    sums = f"<{SUMS} x {entry.sum_type}>"
    end = ", i1" if flag else ""
    return (
        f"declare {sums} @llvm.amdgcn.{entry.llvm}({flag}{entry.operand}, {flag}{entry.operand}, "
        f"{sums}{end})"
    )


def emit_llvm(
    entry: WmmaProduct, pointers: Sequence[str], put: Callable[[str], str], do: Callable[[str], Any]
) -> None:
    """Emit the product.  `put` appends a value and returns its name, `do` appends the rest."""
    of = entry.sum_type
    aligned = min(entry.given_bytes, _ALIGNED)
    left, right = (put(f"load {entry.operand}, ptr {at}, align {aligned}") for at in pointers[:2])
    cells = pointers[2:]
    sums = "poison"
    for number, cell in enumerate(cells):
        one = put(f"load {of}, ptr {cell}, align 4")
        sums = put(f"insertelement <{SUMS} x {of}> {sums}, {of} {one}, i64 {number}")
    first, second = (entry.flags(dtype) for dtype in (entry.a_dtype, entry.b_dtype))
    end = ", i1 false" if first else ""
    made = put(
        f"call <{SUMS} x {of}> @llvm.amdgcn.{entry.llvm}({first}{entry.operand} {left}, "
        f"{second}{entry.operand} {right}, <{SUMS} x {of}> {sums}{end})"
    )
    for number, cell in enumerate(cells):
        one = put(f"extractelement <{SUMS} x {of}> {made}, i64 {number}")
        do(f"store {of} {one}, ptr {cell}, align 4")


def hip_function(entry: WmmaProduct, symbol: str) -> str:
    """Return the function in HIP's C."""
    of = "float" if entry.c_dtype == "float32" else "int"
    element = {"float16": "_Float16", "bfloat16": "short"}.get(entry.a_dtype, "int")
    count = entry.steps if entry.c_dtype == "float32" else entry.steps // 4
    sums = [f"c{number}" for number in range(SUMS)]
    given = "*(const slw_operand*)a, *(const slw_operand*)b, s"
    if of == "int":
        signs = ["true" if dtypes.is_int(d) else "false" for d in (entry.a_dtype, entry.b_dtype)]
        given = f"{signs[0]}, *(const slw_operand*)a, {signs[1]}, *(const slw_operand*)b, s, false"
    lines = [
        f"typedef {element} slw_operand __attribute__((ext_vector_type({count})));",
        f"typedef {of} slw_sums __attribute__((ext_vector_type({SUMS})));",
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
