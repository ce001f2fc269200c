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
from slipway.ir.instructions.amd_products import SIDE, AmdProduct, amd_product, flushes, wave_of
from slipway.ir.instructions.cooperative_products import CooperativeProduct, read_sizes
from slipway.ir.instructions.simdgroup_products import SimdgroupProduct, simdgroup_product
from slipway.ir.instructions.warp_products import (
    COLUMNS,
    PRODUCT,
    WARP,
    ZERO,
    WarpProduct,
    warp_product,
)
from slipway.target import Target

_SIDE = 8  # of the matrices of other units
MatrixProduct = WarpProduct | SimdgroupProduct | AmdProduct | CooperativeProduct


def product_of_target(target: Target, a_dtype: str, b_dtype: str, out: str) -> MatrixProduct | None:
    """Return the instruction of the target's matrix units for products of these types, or None."""
    attrs = target.attrs
    match target.kind.name:
        case "cuda":
            entry = warp_product(a_dtype, b_dtype, out)
            has = entry is not None and version_of(target) >= entry.lowest_version
            return entry if has else None
        case "metal" if attrs.get("simdgroup_matrix") and attrs.get("thread_warp_size") == WARP:
            return simdgroup_product(a_dtype, b_dtype, out)
        case "rocm":
            cpu = str(attrs.get("mcpu"))
            found = amd_product(cpu, a_dtype, b_dtype, out)
            exact = found is None or not (target.is_strict and flushes(found, cpu))
            return found if exact else None
        case "vulkan":
            sizes = cooperative_products(target)
            of = (a_dtype, b_dtype, out)
            return next((p for p in sizes if (p.a_dtype, p.b_dtype, p.c_dtype) == of), None)
    return None


def cooperative_products(target: Target) -> tuple[CooperativeProduct, ...]:
    """Return the sizes that a target of Vulkan's says and this knows how to divide."""
    spelled = tuple(target.attrs.get("cooperative_matrix") or ())
    if not spelled:
        return ()
    lanes = lanes_of(target)
    sizes = read_sizes(spelled, lanes)
    return tuple(p for p in sizes if lanes % p.columns == 0 and p.rows * p.columns % lanes == 0)


def matrix_sides(target: Target) -> tuple[int, int]:
    """Return the rows and columns of the largest instruction of a target's matrix units."""
    match target.kind.name:
        case "rocm":
            return SIDE, SIDE
        case "vulkan":
            sizes = cooperative_products(target)
            return max(p.rows for p in sizes), max(p.columns for p in sizes)
    return _SIDE, _SIDE


def sum_bytes(target: Target) -> int:
    """Return the shared memory that gives the threads of a warp their sums."""
    if target.kind.name != "vulkan":
        return 0
    return max(4 * p.rows * p.columns for p in cooperative_products(target))


def lanes_of(target: Target) -> int:
    """Return how many threads compute a product together on the target's matrix units."""
    if target.kind.name == "vulkan":
        return int(target.attrs.get("thread_warp_size") or WARP)
    return wave_of(str(target.attrs.get("mcpu"))) if target.kind.name == "rocm" else WARP


def warp_intrinsic(entry: MatrixProduct, lane: te.IterVar) -> te.TensorIntrin:
    """Return the instruction for a thread's sums; `lane` is the axis of the warp's threads."""
    rows, columns = entry.layout.rows, entry.layout.columns
    a = te.placeholder((rows, entry.depth), entry.a_dtype, "a")
    b = te.placeholder((columns, entry.depth), entry.b_dtype, "b")
    k = te.reduce_axis((0, entry.depth), "k")
    of = entry.c_dtype
    c = te.compute(
        (rows, columns),
        lambda i, j: te.sum(a[i, k].astype(of) * b[j, k].astype(of), axis=k),
        name="c",
    )

    def statements(ins: list[Buffer], outs: list[Buffer]) -> Any:
        (left, right), sums = ins, outs[0]
        if isinstance(entry, WarpProduct):
            addresses = _nvidias(entry, lane.var, left, right, sums)
        elif isinstance(entry, AmdProduct):
            addresses = _amds(entry, lane.var, left, right, sums)
        elif isinstance(entry, CooperativeProduct):
            addresses = _cooperative(entry, lane.var, left, right, sums)
        else:
            addresses = _apples(entry, lane.var, left, right, sums)
        name = E.StringImm(entry.name)
        update = S.Evaluate(E.Call("int32", PRODUCT, (name, *addresses)))
        if isinstance(entry, CooperativeProduct):
            cleared = S.Evaluate(E.Call("int32", ZERO, (name, addresses[-1])))
            return S.seq((cleared, update)), cleared, update
        zero = ops.const(0, entry.c_dtype)
        cells = [(i, j) for i in range(rows) for j in range(columns)]
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


def _address(of: Buffer, row: Any, step: Any) -> PrimExpr:
    load = E.BufferLoad(of, (ops.as_expr(row), ops.as_expr(step)))
    return E.Call("handle", "address_of", (load,))


def _nvidias(
    entry: WarpProduct, lane: E.Var, left: Buffer, right: Buffer, sums: Buffer
) -> list[PrimExpr]:
    group, member = ops.floordiv(lane, 4), ops.floormod(lane, 4)
    # Of a column that may be another thread's: the columns of a warp lie beside each other.
    column, at = group - member * COLUMNS, member * entry.fetched
    return [
        _address(left, 0, at), _address(left, 1, at), _address(right, column, at),
        _address(sums, 0, 0), _address(sums, 1, 0),
    ]  # fmt: skip


def _amds(
    entry: AmdProduct, lane: E.Var, left: Buffer, right: Buffer, sums: Buffer
) -> list[PrimExpr]:
    """Return the row that a thread gives, from its own first one on, its column, and its sums."""
    number, group = ops.floormod(lane, SIDE), ops.floordiv(lane, SIDE)
    row, step = number, group * entry.steps
    if not entry.in_parts:
        row, step = ops.floormod(number, 2) * entry.sums + ops.floordiv(number, 2), ops.const(0)
    cells = [_address(sums, i, 0) for i in range(entry.sums)]
    return [_address(left, row - group * entry.sums, step), _address(right, 0, step), *cells]


def _cooperative(
    entry: CooperativeProduct, lane: E.Var, left: Buffer, right: Buffer, sums: Buffer
) -> list[PrimExpr]:
    """Return the first rows of both operands, how far rows lie apart, and the matrix of sums."""
    layout = entry.layout
    row = ops.floordiv(lane, layout.low_columns) * layout.rows
    column = ops.floormod(lane, layout.low_columns)
    apart = [of.strides[0] for of in (left, right)]
    return [_address(left, -row, 0), _address(right, -column, 0), *apart, _address(sums, 0, 0)]


def _apples(
    entry: SimdgroupProduct, lane: E.Var, left: Buffer, right: Buffer, sums: Buffer
) -> list[PrimExpr]:
    layout = entry.layout
    low = layout.low_rows * layout.low_columns
    member = ops.floordiv(ops.floormod(lane, WARP // 2), low) * layout.low_columns
    member = member + ops.floormod(lane, layout.low_columns)
    row = ops.floormod(ops.floordiv(lane, layout.low_columns), layout.low_rows)
    row = row + ops.floordiv(lane, WARP // 2) * layout.low_rows
    step = member * layout.columns
    return [
        _address(left, 0, step), _address(right, 0, row), _address(right, 1, row),
        _address(sums, 0, 0), _address(sums, 0, 1),
    ]  # fmt: skip
