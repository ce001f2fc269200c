"""Matrix products of two computed matrices: attention scores, and what has no packed weight.

The right matrix is copied into blocks of columns, one vector wide, and padded to whole tiles; rows
of the left one beyond its end repeat the last.  So the inner loops have no guards, and only the
copy of a finished tile to its place looks at the edges.

    packed (b, N/n, K, n)     tiles (b, M/m, m, N/n, n)     result (b, M, N)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.relay.types import TensorType, Type
from slipway.schedules.cpu.tiles import choose_tile, worth_sharing
from slipway.schedules.generic import (
    Loop,
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
    """(b, M, K) by (b, K, N), either of them perhaps stored transposed."""
    a, b = inputs
    (out,) = out_types
    assert isinstance(out, TensorType)
    batch, rows, columns = out.shape
    depth = shape_of(a)[1 if attrs.transpose_a else 2]
    lanes = vector_lanes(target, out.dtype)
    tile = choose_tile(rows, -(-columns // lanes), target)
    blocks = -(-columns // (lanes * tile.vectors)) * tile.vectors
    a_batch, b_batch = shape_of(a)[0], shape_of(b)[0]

    def packed_element(p: Any, block: Any, k: Any, lane: Any) -> Any:
        column = block * lanes + lane
        value = b(p, column, k) if attrs.transpose_b else b(p, k, column)
        if columns % (lanes * tile.vectors) == 0:
            return value
        return te.if_then_else(column < columns, value, te.const(0, b.dtype))

    packed = te.compute(
        (b_batch, blocks, depth, lanes), packed_element, name="packed", tag="injective,pack"
    )
    k = te.reduce_axis((0, depth), name="k")

    def tile_element(p: Any, outer: Any, inner: Any, block: Any, lane: Any) -> Any:
        row = outer * tile.rows + inner
        if rows % tile.rows:
            row = te.min(row, rows - 1)
        left = a(0 if a_batch == 1 else p, *((k, row) if attrs.transpose_a else (row, k)))
        right = packed(0 if b_batch == 1 else p, block, k, lane)
        return te.sum(left.astype(out.dtype) * right.astype(out.dtype), axis=[k])

    tiles = te.compute(
        (batch, -(-rows // tile.rows), tile.rows, blocks, lanes),
        tile_element,
        name="tiles",
        tag=f"matmul_tiles,{tile.vectors}",
    )
    return [
        te.compute(
            out.shape,
            lambda p, m, n: tiles(
                p,
                te.floordiv(m, tile.rows),
                te.floormod(m, tile.rows),
                te.floordiv(n, lanes),
                te.floormod(n, lanes),
            ),
            name="T_batch_matmul",
            tag="injective",
        )
    ]


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """Floats, and rows long enough for a vector."""
    a, b = in_types
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    columns = b.shape[1] if attrs.transpose_b else b.shape[2]
    return dtypes.is_float(a.dtype) and columns >= vector_lanes(target, a.dtype)


@register_implementation(
    "nn.batch_matmul", name="batch_matmul.tile", compute=_matmul_compute, applies=_applies
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
    packed = next(t for t in tiles.op.input_tensors if "pack" in getattr(t.op, "tag", ""))
    inline_injective(schedule, outs, keep=[packed])
    accumulator = schedule.cache_write(tiles, "local")
    _, _, height, _, lanes = shape_of(tiles)
    parallel = worth_sharing(prod(shape_of(tiles)) * shape_of(packed)[2], target)

    copy = schedule[output]
    batch, rows, columns = Loop.of(copy.op.axis)
    m_outer, m_inner = split(copy, rows, height)
    n_outer, n_lane = split(copy, columns, lanes)
    copy.reorder(*(x.axis for x in (batch, m_outer, m_inner, n_outer, n_lane)))
    copy.vectorize(n_lane.axis)
    task = fuse(copy, (batch, m_outer))
    if parallel:
        copy.parallel(task.axis)

    stage = schedule[tiles]
    stage.compute_at(copy, task.axis)
    p, outer, inner, block, lane = stage.op.axis
    block_outer, block_inner = stage.split(block, factor=vectors)
    stage.reorder(p, outer, block_outer, inner, block_inner, lane)
    stage.unroll(inner)
    stage.unroll(block_inner)
    stage.vectorize(lane)

    registers = schedule[accumulator]
    registers.compute_at(stage, block_outer)
    p, outer, inner, block, lane = registers.op.axis
    (k,) = registers.op.reduce_axis
    registers.reorder(p, outer, k, inner, block, lane)
    registers.unroll(inner)
    registers.unroll(block)
    registers.vectorize(lane)

    pack = schedule[packed]
    p, block, k, lane = pack.op.axis
    pack.vectorize(lane)
    task_axis = pack.fuse(p, block)
    if parallel:
        pack.parallel(task_axis)
    return schedule
