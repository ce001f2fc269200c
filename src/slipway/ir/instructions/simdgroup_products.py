"""Products that the 32 threads of a SIMD-group compute together: Apple's ``simdgroup_matrix``.

To a thread, an instruction is a small product of its own: a row of `a` with two columns of `b`
added to two sums, over eight steps::

    c[j] += sum over k of a[k] * b[j, k]

Of each 8 x 8 matrix a thread has two elements, beside each other in a row: of the bits 43210 of
its number, 421 are the row, 30 the pair of columns.  So it gives the instruction two steps of its
row of `a`, those with its columns' numbers, and of its columns of `b` the step of its row's number.
Loops name one by ``Call("int32", "warp_product", (StringImm(name), a, b0, b1, c0, c1))``, whose
operands are pointers to those, `a` to the first of two; all threads must come to it together.
"""

from __future__ import annotations

from dataclasses import dataclass

from slipway.ir.instructions.warp_products import SumsLayout

_LAYOUT = SumsLayout(1, 2, 8, 8, 4, 2)


@dataclass(frozen=True)
class SimdgroupProduct:
    """One instruction; `read` is an element of memory as a float in Metal's language."""

    name: str
    a_dtype: str
    read: str
    depth: int = 8
    c_dtype: str = "float32"

    @property
    def layout(self) -> SumsLayout:
        """Which sums are a thread's."""
        return _LAYOUT

    @property
    def b_dtype(self) -> str:
        """The type of the second operand."""
        return self.a_dtype

    @property
    def pads(self) -> tuple[int, int]:
        """Bytes between rows of panels in shared memory whose elements lie beside each other.

        A thread fetches two elements of `a` at once, eight rows a warp: rows of floats lie 24
        banks apart, of halves 20; of `b` one of each of two columns, 20 banks apart.
        """
        return (32, 16) if self.a_dtype == "float32" else (16, 16)


SIMDGROUP_PRODUCTS: dict[str, SimdgroupProduct] = {
    entry.name: entry
    for entry in (
        SimdgroupProduct("simdgroup.f32", "float32", "{}"),
        SimdgroupProduct("simdgroup.f16", "float16", "(float)as_type<half>({})"),
        SimdgroupProduct("simdgroup.bf16", "bfloat16", "as_type<float>((uint32_t){} << 16)"),
    )
}


def simdgroup_product(a_dtype: str, b_dtype: str, c_dtype: str) -> SimdgroupProduct | None:
    """Return the instruction for products of these types, or None."""
    for entry in SIMDGROUP_PRODUCTS.values():
        if (entry.a_dtype, entry.b_dtype, entry.c_dtype) == (a_dtype, b_dtype, c_dtype):
            return entry
    return None


def metal_function(entry: SimdgroupProduct, symbol: str) -> str:
    """Return the function in Metal's language."""
    elements = (("a", 0, "a[0]"), ("a", 1, "a[1]"), ("b", 0, "b0[0]"), ("b", 1, "b1[0]"))
    lines = [f"{of}s.thread_elements()[{n}] = {entry.read.format(at)};" for of, n, at in elements]
    lines += [f"cs.thread_elements()[{n}] = c{n}[0];" for n in range(2)]
    lines.append("simdgroup_multiply_accumulate(cs, as, bs, cs);")
    lines += [f"c{n}[0] = cs.thread_elements()[{n}];" for n in range(2)]
    body = "\n".join(f"  {line}" for line in lines)
    return (
        "#include <metal_simdgroup_matrix>\n"
        "template <typename A, typename B>\n"
        f"static inline void {symbol}(A a, B b0, B b1, thread float* c0, thread float* c1) {{\n"
        f"  simdgroup_matrix<float, 8, 8> as, bs, cs;\n{body}\n}}\n"
    )
