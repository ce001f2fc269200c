"""Columns of a matrix as vectors: four rows' neighbours at a time, transposed in registers."""

import kernels
import numpy as np
import pytest
from kernels import loop, prim_func, ramp

from slipway.compiler.emit import build_module
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.stmt import seq
from slipway.target import Target


def transposed(rows, columns, dtype="float32", unrolled=4):
    """B[j, i] = A[i, j], a vector of all rows for each column, columns unrolled in steps."""
    a = decl_buffer((rows * columns,), dtype, "A")
    b = decl_buffer((columns * rows,), dtype, "B")
    j = E.Var("j")
    steps = [
        S.BufferStore(
            b, a[ramp(j * unrolled + k, rows, columns)], (ramp((j * unrolled + k) * rows, rows),)
        )
        for k in range(unrolled)
    ]
    return prim_func("turn", [a, b], loop(j, columns // unrolled, seq(steps)))


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64"])
@pytest.mark.parametrize(
    ("rows", "columns", "unrolled", "dtype"),
    [(4, 12, 4, "float32"), (8, 24, 8, "int32"), (16, 4, 4, "float32"), (16, 12, 1, "float32"),
     (8, 6, 2, "float32"), (16, 7, 7, "float32"), (8, 12, 4, "int16")],
)  # fmt: skip
def test_every_column(target, rows, columns, unrolled, dtype):
    run = kernels.load(transposed(rows, columns, dtype, unrolled), target)[0]["turn"]
    x = np.arange(rows * columns, dtype=dtype)
    y = np.zeros((columns, rows), dtype)
    run(x, y.reshape(-1))
    np.testing.assert_array_equal(y, x.reshape(rows, columns).T)


def test_four_columns_share_their_loads():
    def loads(columns, unrolled):
        target = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3")
        text = build_module(transposed(8, columns, "float32", unrolled), target).get_source("asm")
        body = text[text.index("turn") :]
        return body.count("vinsertps"), body.count("vmovss")

    assert loads(12, 4) == (0, 0)
    # Rows that begin anywhere have no groups of four within the matrix.
    assert loads(7, 7)[0] > 0
