"""The documented register tile comes out of LLVM as straight FMA code without spills."""

import re

import pytest

import slipway as tvm
from slipway import te


def tiled_product(rows, columns, depth=256, size=64):
    """A matrix product whose rows x columns sums are one stage in scope "local"."""
    a, b = te.placeholder((size, depth), name="A"), te.placeholder((depth, size), name="B")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    tile = s.cache_write(c, "local")
    _, jo, ii, ji = s[c].tile(*c.op.axis, rows, columns)
    s[c].unroll(ii)
    s[c].vectorize(ji)
    s[tile].compute_at(s[c], jo)
    ic, jc = s[tile].op.axis
    s[tile].reorder(k, ic, jc)
    s[tile].unroll(ic)
    s[tile].vectorize(jc)
    return s, [a, b, c]


def inner_loop(text, is_fma):
    """The basic block with the most fused multiply-adds: from a label to a branch."""
    ends = r"^[.\w$]+:.*$|^\s+(?:j\w+|b\.\w+|b|cbn?z)\s.*$"
    blocks = re.split(ends, text, flags=re.MULTILINE)
    return max(
        ([line.strip() for line in block.splitlines() if line.strip()] for block in blocks),
        key=lambda lines: sum(map(is_fma, lines)),
    )


@pytest.mark.parametrize(
    ("target", "rows", "columns", "fma", "stack"),
    [
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4", 8, 32, r"vfmadd\w+ps", r"%r[sb]p"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell", 4, 16, r"vfmadd\w+ps", r"%r[sb]p"),
        ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", 4, 16, r"fmla", r"\[sp"),
    ],
)
def test_the_loop_is_fused_multiply_adds_and_nothing_goes_to_the_stack(
    target, rows, columns, fma, stack
):
    s, args = tiled_product(rows, columns)
    lanes = {"znver4": 16, "haswell": 8, "cortex-a72": 4}[target.split("=")[-1]]
    text = tvm.build(s, args, target).get_source("asm")

    def is_fma(line):
        return re.match(fma, line) is not None

    loop = inner_loop(text, is_fma)
    count = sum(map(is_fma, loop))
    assert count % (rows * columns // lanes) == 0
    assert count > 0
    assert not [line for line in loop if re.search(stack, line)], "a register was spilled"
    # Nothing of the tile is stored in the loop, and little else is there than the arithmetic.
    assert not [line for line in loop if re.match(r"vmov\w+\s+%[xyz]mm\d+, .*\(", line)]
    assert not [line for line in loop if re.match(r"st[rp]\s+q", line)]
    assert len(loop) <= 2.2 * count
