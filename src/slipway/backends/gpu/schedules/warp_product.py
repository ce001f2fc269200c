"""The product of a warp as a tensor intrinsic, and its place in a target."""

from __future__ import annotations

from typing import Any

from slipway import te
from slipway.codegen.gpu.nvptx import version_of
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.expr import PrimExpr
from slipway.ir.instructions.warp_products import COLUMNS, ROWS, WarpProduct, warp_product
from slipway.target import Target


def product_of_target(target: Target, a_dtype: str, b_dtype: str, out: str) -> WarpProduct | None:
    """Return the instruction of the target's matrix units for products of these types, or None."""
    if target.kind.name != "cuda":
        return None
    entry = warp_product(a_dtype, b_dtype, out)
    return entry if entry is not None and version_of(target) >= entry.lowest_version else None


def warp_intrinsic(entry: WarpProduct, lane: te.IterVar) -> te.TensorIntrin:
    """Return the instruction for a thread's sums; `lane` is the axis of the warp's threads."""
    a = te.placeholder((ROWS, entry.depth), entry.a_dtype, "a")
    b = te.placeholder((COLUMNS, entry.depth), entry.b_dtype, "b")
    k = te.reduce_axis((0, entry.depth), "k")
    of = entry.c_dtype
    c = te.compute(
        (ROWS, COLUMNS),
        lambda i, j: te.sum(a[i, k].astype(of) * b[j, k].astype(of), axis=k),
        name="c",
    )
    group, member = ops.floordiv(lane.var, 4), ops.floormod(lane.var, 4)
    # Of a column that may be another thread's: the columns of a warp lie beside each other.
    column = group - member * COLUMNS

    def statements(ins: list[Buffer], outs: list[Buffer]) -> Any:
        (left, right), sums = ins, outs[0]
        at = member * entry.fetched

        def address(of: Buffer, row: Any, step: Any) -> PrimExpr:
            load = E.BufferLoad(of, (ops.as_expr(row), ops.as_expr(step)))
            return E.Call("handle", "address_of", (load,))

        addresses = [
            address(left, 0, at), address(left, 1, at), address(right, column, at),
            address(sums, 0, 0), address(sums, 1, 0),
        ]  # fmt: skip
        update = S.Evaluate(E.Call("int32", "warp_product", (E.StringImm(entry.name), *addresses)))
        zero = ops.const(0, entry.c_dtype)
        cells = [(i, j) for i in range(ROWS) for j in range(COLUMNS)]
        reset = S.seq(
            S.BufferStore(sums, zero, tuple(ops.as_expr(n) for n in cell)) for cell in cells
        )
        return S.seq((reset, update)), reset, update

    binds = {
        t: decl_buffer(
            t.shape, t.dtype, t.name, strides=[E.Var(f"{t.name}.stride"), 1],
            elem_offset=E.Var(f"{t.name}.offset"),
        )
        for t in (a, b, c)
    }  # fmt: skip
    return te.decl_tensor_intrin(c.op, statements, f"warp_product.{entry.name}", binds)
