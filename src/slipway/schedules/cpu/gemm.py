"""Matrix products of two computed matrices: attention scores, and what has no packed weight.

The right matrix is copied into blocks of columns, one vector wide, and padded to whole tiles; rows
of the left one beyond its end repeat the last.  So the inner loops have no guards, and only the
copy of a finished tile to its place looks at the edges.

    packed (b, N/n, K, n)     tiles (b, M/m, m, N/n, n)     result (b, M, N)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.relay.types import TensorType, Type
from slipway.schedules.cpu.tiles import Tile, choose_tile, worth_sharing
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


def _matmul_compute(
    target: Target, attrs: Any, inputs: Sequence[te.Tensor], out_types: Sequence[Type]
) -> list[te.Tensor]:
    """(b, M, K) by (b, K, N), either of them perhaps stored transposed; or both without batch."""
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


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """Floats, and rows long enough for a vector."""
    a, b = in_types
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    columns = b.shape[-2] if attrs.transpose_b else b.shape[-1]
    return dtypes.is_float(a.dtype) and columns >= vector_lanes(target, a.dtype)


@register_implementation(
    "nn.batch_matmul",
    "nn.matmul",
    name="batch_matmul.tile",
    compute=_matmul_compute,
    applies=_applies,
)
def schedule_batch_matmul(
    target: Target, outs: Sequence[te.Tensor], product: te.Tensor
) -> te.Schedule:
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
