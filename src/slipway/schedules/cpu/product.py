"""Matrix products of two matrices, weights that blocks do not divide, and few rows.

Tiles are those of `gemm`, rows of the left matrix beyond its end repeat the last::

    packed (N/n, K, n)     tiles (M/m, m, N/n, n)     result (M, N)

With few rows, to bring the right matrix into blocks would take longer than the product.  It is read
as it lies: a tile is those rows by as many vectors of neighbouring columns as registers hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.relay.types import TensorType, Type
from slipway.schedules.cpu.tiles import Tile, choose_tile, vector_registers, worth_sharing
from slipway.schedules.generic import (
    Loop,
    extent_of,
    fuse,
    inline_injective,
    producers,
    shape_of,
    split,
    vector_lanes,
)
from slipway.schedules.registry import register_implementation

if TYPE_CHECKING:
    from slipway.target import Target

FEW_ROWS = 4


def _matmul_compute(
    target: Target, attrs: Any, inputs: Sequence[te.Tensor], out_types: Sequence[Type]
) -> list[te.Tensor]:
    """(M, K) by (K, N), either of them perhaps stored transposed."""
    a, b = inputs
    (out,) = out_types
    assert isinstance(out, TensorType)
    *batch, rows, columns = out.shape
    depth = shape_of(a)[-2 if attrs.transpose_a else -1]
    tile = choose_tile(rows, -(-columns // vector_lanes(target, out.dtype)), target)
    packed = packed_columns(target, b, (depth, columns), attrs.transpose_b, tile)

    def row(p: Sequence[Any], k: Any, m: Any) -> Any:
        place = p if not batch or shape_of(a)[0] > 1 else [0]
        return a(*place, *((k, m) if attrs.transpose_a else (m, k)))

    return [tiled_product(row, packed, out, tile)]


def packed_columns(
    target: Target, b: te.Tensor, size: tuple[int, int], transposed: bool, tile: Tile
) -> te.Tensor:
    """Return the right matrix (..., K, N), or (..., N, K), as (..., N/n, K, n)."""
    depth, columns = size
    *batch, _, _ = shape_of(b)
    lanes = vector_lanes(target, b.dtype)
    blocks = -(-columns // (lanes * tile.vectors)) * tile.vectors

    def element(*i: Any) -> Any:
        *p, block, k, lane = i
        column = block * lanes + lane
        value = b(*p, column, k) if transposed else b(*p, k, column)
        if columns % (lanes * tile.vectors) == 0:
            return value
        return te.if_then_else(column < columns, value, te.const(0, b.dtype))

    shape = (*batch, blocks, depth, lanes)
    made: te.Tensor = te.compute(shape, element, name="packed", tag="injective,pack")
    return made


def tiled_product(
    row: Callable[..., Any], packed: te.Tensor, out: TensorType, tile: Tile
) -> te.Tensor:
    """Return the product of type `out` by tiles; ``row(batch, k, m)`` reads the left matrix."""
    *batch, rows, _ = out.shape
    *b_batch, blocks, depth, lanes = shape_of(packed)
    k = te.reduce_axis((0, depth), name="k")

    def tile_element(*i: Any) -> Any:
        *p, outer, inner, block, lane = i
        m = outer * tile.rows + inner
        if rows % tile.rows:
            m = te.min(m, rows - 1)
        at = p if not b_batch or b_batch[0] > 1 else [0]
        left, right = row(p, k, m), packed(*at, block, k, lane)
        return te.sum(left.astype(out.dtype) * right.astype(out.dtype), axis=[k])

    tiles = te.compute(
        (
            *batch,
            -(-rows // tile.rows),
            tile.rows,
            -(-blocks // tile.vectors) * tile.vectors,
            lanes,
        ),
        tile_element,
        name="tiles",
        tag=f"matmul_tiles,{tile.vectors}",
    )

    def spread(*i: Any) -> Any:
        *p, m, n = i
        at = te.floordiv(m, tile.rows), te.floormod(m, tile.rows)
        return tiles(*p, *at, te.floordiv(n, lanes), te.floormod(n, lanes))

    made: te.Tensor = te.compute(out.shape, spread, name="T_matmul", tag="injective")
    return made


def _applies_to_matmul(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """Floats, and rows long enough for a vector."""
    a, b = in_types
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    columns = b.shape[-2] if attrs.transpose_b else b.shape[-1]
    return dtypes.is_float(a.dtype) and columns >= vector_lanes(target, a.dtype)


@register_implementation(
    "nn.matmul", name="matmul.tile", compute=_matmul_compute, applies=_applies_to_matmul
)
def schedule_tiles(target: Target, outs: Sequence[te.Tensor], product: te.Tensor) -> te.Schedule:
    """Tiles of registers over packed columns; what is fused behind is applied on the way out."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    stages = {getattr(op, "tag", "").split(",")[0]: op for op in producers(outs)}
    tiles = stages["matmul_tiles"].output(0)
    vectors = int(tiles.op.tag.split(",")[1])
    packed = [t for t in tiles.op.input_tensors if "pack" in getattr(t.op, "tag", "")]
    inline_injective(schedule, outs, keep=packed)
    accumulator = schedule.cache_write(tiles, "local")
    *_, height, _, lanes = shape_of(tiles)
    (depth,) = (extent_of(axis) for axis in tiles.op.reduce_axis)
    parallel = worth_sharing(prod(shape_of(tiles)) * depth, target)

    copy = schedule[output]
    *batch, rows, columns = Loop.of(copy.op.axis)
    m_outer, m_inner = split(copy, rows, height)
    n_outer, n_lane = split(copy, columns, lanes)
    copy.reorder(*(x.axis for x in (*batch, m_outer, m_inner, n_outer, n_lane)))
    copy.vectorize(n_lane.axis)
    task = fuse(copy, (*batch, m_outer))
    if parallel:
        copy.parallel(task.axis)

    stage = schedule[tiles]
    stage.compute_at(copy, task.axis)
    *outer, inner, block, lane = stage.op.axis
    block_outer, block_inner = stage.split(block, factor=vectors)
    stage.reorder(*outer, block_outer, inner, block_inner, lane)
    stage.unroll(inner)
    stage.unroll(block_inner)
    stage.vectorize(lane)

    registers = schedule[accumulator]
    registers.compute_at(stage, block_outer)
    *outer, inner, block, lane = registers.op.axis
    (k,) = registers.op.reduce_axis
    registers.reorder(*outer, k, inner, block, lane)
    registers.unroll(inner)
    registers.unroll(block)
    registers.vectorize(lane)

    for tensor in packed:
        pack = schedule[tensor]
        *blocks, k, lane = pack.op.axis
        pack.vectorize(lane)
        task_axis = pack.fuse(*blocks)
        if parallel:
            pack.parallel(task_axis)
    return schedule


def _dense_compute(
    target: Target, attrs: Any, inputs: Sequence[te.Tensor], out_types: Sequence[Type]
) -> list[te.Tensor]:
    """(M, K) by (N, K), both of them computed."""
    data, weight = inputs
    (out,) = out_types
    assert isinstance(out, TensorType)
    columns, depth = shape_of(weight)
    tile = choose_tile(out.shape[0], -(-columns // vector_lanes(target, out.dtype)), target)
    packed = packed_columns(target, weight, (depth, columns), True, tile)
    return [tiled_product(lambda p, k, m: data(m, k), packed, out, tile)]


def _many_rows(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """Floats, enough rows to pay for the packing, at least one vector of columns."""
    data, weight = in_types
    assert isinstance(data, TensorType)
    assert isinstance(weight, TensorType)
    lanes = vector_lanes(target, data.dtype)
    enough = data.rank == 2 and data.shape[0] >= FEW_ROWS and weight.shape[0] >= lanes
    return enough and data.dtype == weight.dtype and dtypes.is_float(data.dtype)


register_implementation("nn.dense", name="dense.tile", compute=_dense_compute, applies=_many_rows)(
    schedule_tiles
)


def _cut_compute(
    target: Target, attrs: Any, inputs: Sequence[te.Tensor], out_types: Sequence[Type]
) -> list[te.Tensor]:
    """(M, K) by blocks of units, of which the last is not full."""
    data, packed = inputs
    (out,) = out_types
    assert isinstance(out, TensorType)
    blocks = shape_of(packed)[0]
    tile = choose_tile(out.shape[0], blocks, target, divides=True)
    return [tiled_product(lambda p, k, m: data(m, k), packed, out, tile)]


def _is_cut(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    _, weight = in_types
    assert isinstance(weight, TensorType)
    return bool(attrs.units) and attrs.units % weight.shape[-1] != 0


register_implementation(
    "nn.contrib_dense_pack", name="dense_pack.cut", priority=30, compute=_cut_compute,
    applies=_is_cut,
)(schedule_tiles)  # fmt: skip


def _few_rows(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """Floats, one to three rows, the right matrix stored row by row.

    Not where products go by lane, which has its own way with few rows.
    """
    a, b = in_types
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    rows = a.shape[-1 if attrs.transpose_a else -2]
    return (
        dtypes.is_float(a.dtype)
        and a.dtype == b.dtype
        and not target.multiplies_by_lane
        and not attrs.transpose_b
        and 0 < rows < FEW_ROWS
        and b.shape[-1] >= vector_lanes(target, a.dtype)
    )


@register_implementation(
    "nn.batch_matmul", "nn.matmul", name="matmul.rows", priority=20, applies=_few_rows
)
def schedule_rows(target: Target, outs: Sequence[te.Tensor], product: te.Tensor) -> te.Schedule:
    """A run of columns in registers, all rows of it; the depth is the loop around them."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    inline_injective(schedule, outs, keep=[product])
    if output.op is product.op:
        sums = schedule.cache_write(output, "local")
    else:
        sums = product
        schedule[product].set_scope("local")
    *_, rows, columns = shape_of(output)
    lanes = vector_lanes(target, output.dtype)
    held = max(1, (vector_registers(target) - 4) // rows)
    parts = -(-columns // (lanes * held))
    run = min(columns, -(-columns // (lanes * parts)) * lanes)  # parts of about equal length
    stage = schedule[output]
    *batch, m, n = stage.op.axis
    outer, inner = stage.split(n, factor=run, tail="shift")
    block, lane = stage.split(inner, factor=lanes, tail="shift")
    stage.reorder(*batch, outer, m, block, lane)
    stage.unroll(m)
    stage.unroll(block)
    stage.vectorize(lane)
    task = stage.fuse(*batch, outer)
    registers = schedule[sums]
    registers.compute_at(stage, task)
    *batch, m, n = registers.op.axis
    (k,) = registers.op.reduce_axis
    if worth_sharing(prod(shape_of(output)) * extent_of(k), target):
        stage.parallel(task)
    block, lane = registers.split(n, factor=lanes)
    registers.reorder(*batch, k, block, m, lane)
    registers.unroll(block)
    registers.unroll(m)
    registers.vectorize(lane)
    return schedule
