"""Matrix products of two computed matrices: attention scores, and what has no packed weight.

The right matrix is copied into blocks of columns and padded to whole tiles; the last rows of the
left one are in two tiles where tiles do not divide them.  So no loop has guards but that copy.
Matrices of a narrower type than the result are converted once, before the product.

    packed (b, N/n, K, n)     tiles (b, M, N/n, n)     result (b, M, N)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.schedules.generic import (
    extent_of,
    inline_injective,
    producers,
    shape_of,
    vector_lanes,
)
from slipway.backends.cpu.schedules.matmul.lane_fma import (
    GROUP,
    choose_lane_tile,
    choose_width,
    multiply_by_lane,
)
from slipway.backends.cpu.schedules.transpose import schedule_turned
from slipway.backends.cpu.tile import Tile, choose_tile, worth_sharing
from slipway.backends.strategy import register_implementation
from slipway.relay.types import TensorType, Type

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
    by_lane = not attrs.transpose_a and reads_groups(target, a)
    lanes, tile = panel(target, rows, columns, out.dtype, by_lane)
    packed = packed_columns(b, (depth, columns), attrs.transpose_b, lanes, tile.vectors, out.dtype)
    a = widened(a, out.dtype)

    def row(p: Sequence[Any], k: Any, m: Any) -> Any:
        place = p if not batch or shape_of(a)[0] > 1 else [0]
        return a(*place, *((k, m) if attrs.transpose_a else (m, k)))

    return [tiled_product(row, packed, out, tile, by_lane)]


def packed_columns(
    b: te.Tensor, size: tuple[int, int], transposed: bool, lanes: int, vectors: int, dtype: str
) -> te.Tensor:
    """Return the right matrix (..., K, N), or (..., N, K), as (..., N/n, K, n) with n `lanes`.

    There are so many blocks that `vectors` divides their number; elements become `dtype`.
    """
    depth, columns = size
    *batch, _, _ = shape_of(b)
    blocks = -(-columns // (lanes * vectors)) * vectors

    def element(*i: Any) -> Any:
        *p, block, k, lane = i
        column = block * lanes + lane
        value = (b(*p, column, k) if transposed else b(*p, k, column)).astype(dtype)
        if columns % (lanes * vectors) == 0:
            return value
        return te.if_then_else(column < columns, value, te.const(0, dtype))

    shape = (*batch, blocks, depth, lanes)
    made: te.Tensor = te.compute(shape, element, name="packed", tag="injective,pack")
    return made


def widened(a: te.Tensor, dtype: str) -> te.Tensor:
    """Return the left matrix with elements of `dtype`: as it is, or a copy."""
    if a.dtype == dtype:
        return a
    made: te.Tensor = te.compute(
        a.shape, lambda *i: a(*i).astype(dtype), name="widened", tag="injective,pack"
    )
    return made


def tiled_product(
    row: Callable[..., Any], packed: te.Tensor, out: TensorType, tile: Tile, by_lane: bool = False
) -> te.Tensor:
    """Return the product of type `out` by tiles; ``row(batch, k, m)`` reads the left matrix."""
    *batch, rows, _ = out.shape
    *b_batch, blocks, depth, lanes = shape_of(packed)
    k = te.reduce_axis((0, depth), name="k")

    def sum_of(*i: Any) -> Any:
        *p, m, block, lane = i
        at = p if not b_batch or b_batch[0] > 1 else [0]
        left, right = row(p, k, m), packed(*at, block, k, lane)
        return te.sum(left.astype(out.dtype) * right.astype(out.dtype), axis=[k])

    tiles = te.compute(
        (*batch, rows, blocks, lanes),
        sum_of,
        name="tiles",
        tag=f"matmul_tiles,{tile.rows},{tile.vectors},{'by_lane' if by_lane else ''}",
    )

    def spread(*i: Any) -> Any:
        *p, m, n = i
        return tiles(*p, m, te.floordiv(n, lanes), te.floormod(n, lanes))

    made: te.Tensor = te.compute(out.shape, spread, name="T_matmul", tag="injective")
    return made


def panel(target: Target, rows: int, columns: int, dtype: str, by_lane: bool) -> tuple[int, Tile]:
    """Return (columns that are packed side by side, the tile in blocks of so many)."""
    lanes = vector_lanes(target, dtype)
    if not by_lane:
        return lanes, choose_tile(rows, -(-columns // lanes), target)
    width = choose_width(rows, -(-columns // lanes), target)
    return width * lanes, choose_lane_tile(rows, -(-columns // (width * lanes)), target, width)


def reads_groups(target: Target, a: te.Tensor) -> bool:
    """Tell whether rows of the left matrix (..., M, K) are loaded a few values at a time."""
    depth = shape_of(a)[-1]
    plain = isinstance(a.op, te.PlaceholderOp)
    return target.multiplies_by_lane and plain and a.dtype == "float32" and depth % GROUP == 0


def _applies(attrs: Any, in_types: Sequence[Type], target: Target) -> bool:
    """Floats, and rows long enough for a vector."""
    a, b = in_types
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    columns = b.shape[-2] if attrs.transpose_b else b.shape[-1]
    return dtypes.is_float(a.dtype) and columns >= vector_lanes(target, a.dtype)


@register_implementation(
    "nn.batch_matmul", "nn.matmul", name="batch_matmul.tile", compute=_matmul_compute,
    applies=_applies,
)  # fmt: skip
def schedule_batch_matmul(
    target: Target, outs: Sequence[te.Tensor], product: te.Tensor
) -> te.Schedule:
    """Tiles of registers over packed columns; what is fused behind is applied on the way out."""
    schedule = te.create_schedule([t.op for t in outs])
    (output,) = {id(t.op): t for t in outs}.values()
    stages = {getattr(op, "tag", "").split(",")[0]: op for op in producers(outs)}
    tiles = stages["matmul_tiles"].output(0)
    _, height, vectors, by_lane = tiles.op.tag.split(",")
    packed = [t for t in tiles.op.input_tensors if "pack" in getattr(t.op, "tag", "")]
    inline_injective(schedule, outs, keep=packed)
    left = tiles.op.input_tensors[0]
    accumulator = schedule.cache_write(tiles, "local")
    together = shape_of(tiles)[-1]
    lanes = min(together, vector_lanes(target, tiles.dtype))
    (depth,) = (extent_of(axis) for axis in accumulator.op.reduce_axis)
    parallel = worth_sharing(prod(shape_of(tiles)) * depth, target)

    copy = schedule[output]
    *batch, rows, columns = copy.op.axis
    m_outer, m_inner = copy.split(rows, factor=int(height), tail="shift")
    *images, high, wide = shape_of(output)
    run = min(together, wide)
    whole = together * int(vectors)
    alone = prod(images) * -(-high // int(height)) < target.num_cores and wide > whole
    if alone:  # too few rows for all cores: columns are shared too, in whole tiles
        n_part, columns = copy.split(columns, factor=whole)
        n_outer, n_lane = copy.split(columns, factor=run)
        tasks = [*batch, m_outer, n_part]
    else:
        n_outer, n_lane = copy.split(columns, factor=run, tail="shift")
        tasks = [*batch, m_outer]
    copy.reorder(*tasks, m_inner, n_outer, n_lane)
    copy.vectorize(n_lane)
    task = copy.fuse(*tasks)
    if parallel:
        copy.parallel(task)

    stage = schedule[tiles]
    stage.compute_at(copy, task)
    *p, row, block, lane = stage.op.axis
    part, block = stage.split(block, factor=int(vectors))
    vector, lane = stage.split(lane, factor=lanes)
    stage.reorder(*p, part, row, block, vector, lane)
    stage.unroll(row)
    stage.unroll(block)
    stage.unroll(vector)
    stage.vectorize(lane)

    schedule[accumulator].compute_at(stage, part)
    if by_lane:
        groups = schedule.cache_read(left, "local", [accumulator])
        first = len(p)
        multiply_by_lane(
            schedule, accumulator, groups, row=first, columns=[first + 1, first + 2], lanes=lanes
        )
    else:
        registers = schedule[accumulator]
        *p, row, block, lane = registers.op.axis
        (k,) = registers.op.reduce_axis
        registers.reorder(*p, k, row, block, lane)
        registers.unroll(row)
        registers.unroll(block)
        registers.vectorize(lane)

    for tensor in packed:
        if schedule_turned(schedule, tensor, target, lanes):
            continue
        pack = schedule[tensor]
        *blocks, k, lane = pack.op.axis
        pack.vectorize(lane)
        task_axis = pack.fuse(*blocks)
        if parallel:
            pack.parallel(task_axis)
    return schedule
