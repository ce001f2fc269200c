"""Matrix products of two computed matrices: attention scores, and what has no packed weight.

The right matrix is copied into blocks of columns and padded to whole tiles; the last rows of the
left one are in two tiles where tiles do not divide them.  So no loop has guards but that copy.
Matrices of a narrower type than the result are converted once, before the product.

    packed (b, N/n, K, n)     tiles (b, M, N/n, n)     result (b, M, N)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import positions_per_part, worth_sharing
from slipway.backends.cpu.schedules.matmul.lane_fma import schedule_lane_fma
from slipway.backends.cpu.schedules.matmul.partial_sums import PART, TILE_PART, in_parts
from slipway.backends.cpu.schedules.register_tile import image_tiles, register_tile
from slipway.backends.cpu.schedules.transpose import schedule_transposed
from slipway.backends.cpu.tile import GROUP, Tile, choose_kernel, fma, lane_indexed_fma, tile_space
from slipway.backends.stages import extent_of, inline_injective, new_schedule, shape_of, tagged
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.dims import is_open, usual
from slipway.relay.types import TensorType, Type

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.ops.nn.dense import MatmulAttrs
    from slipway.target import Target
    from slipway.te.stage import Stage


@dataclass(frozen=True)
class PanelTile(Tile):
    """A tile over panels of `width` vectors of contiguous columns.

    With `lane_fma` values of rows are loaded a vector at a time, for lane-indexed FMA.
    """

    width: int = 1
    lane_fma: bool = False


def panel_tile(
    rows: int, columns: int, dtype: str, target: Target, lane_fma: bool, row_bytes: int = 0
) -> PanelTile:
    """Return the best panels and tile for a product of `rows`, `row_bytes` apart, by `columns`."""
    vectors = -(-columns // vector_lanes(target, dtype))
    indexed = (lane_indexed_fma(target, width) for width in (4, 3, 2, 1))
    kernels = (replace(k, row_bytes=row_bytes) for k in (indexed if lane_fma else [fma(target)]))
    kernel, tile = choose_kernel(kernels, rows, vectors)
    return PanelTile(tile.rows, tile.vectors, kernel.width, lane_fma)


def panel_space(rows: int, columns: int, dtype: str, target: Target, lane_fma: bool) -> Space:
    """Return the legal tiles and panels of a product of `rows` by `columns`."""
    vectors = -(-columns // vector_lanes(target, dtype))
    space = tile_space(rows, vectors, target)
    return {**space, "width": (1, 2, 3, 4) if lane_fma else (1,), "lane_fma": (lane_fma,)}


def panel_cost(rows: int, columns: int, depth: int, dtype: str, target: Target, k: Tile) -> float:
    """Return the predicted cycles of a product with the tile `k`."""
    width = getattr(k, "width", 1)
    vectors = -(-columns // vector_lanes(target, dtype))
    return float(depth * fma(target, width).all_cycles(k, rows, -(-vectors // width)))


def _sides(problem: Problem) -> tuple[int, int, str, Target, bool]:
    (out,) = problem.out_types
    lane_fma = not problem.attrs.transpose_a and reads_groups(problem)
    return out.shape[-2], out.shape[-1], out.dtype, problem.target, lane_fma


def _default(problem: Problem) -> PanelTile:
    row_bytes = 0 if problem.attrs.transpose_a else bytes_of_row(problem)
    return panel_tile(*_sides(problem), row_bytes)


def bytes_of_row(problem: Problem) -> int:
    """Return the bytes from a row of the left matrix (..., M, K) to the next, as products read it.

    That is as floats of the result; of an open depth, those of the size that is usual.
    """
    (out,), left = problem.out_types, problem.in_types[0]
    return usual(left.shape[-1]) * dtypes.bits_of(out.dtype) // 8


def _space(problem: Problem) -> Space:
    return panel_space(*_sides(problem))


def _cost(problem: Problem, knobs: PanelTile) -> float:
    (out,), a = problem.out_types, problem.in_types[0]
    depth = a.shape[-2 if problem.attrs.transpose_a else -1]
    one = panel_cost(out.shape[-2], out.shape[-1], depth, out.dtype, problem.target, knobs)
    return float(prod(out.shape[:-2]) * one)


def _matmul_compute(
    problem: Problem, inputs: Sequence[te.Tensor], knobs: PanelTile
) -> list[te.Tensor]:
    """(b, M, K) by (b, K, N), either of them perhaps stored transposed; or both without batch."""
    target, attrs, (a, b) = problem.target, problem.attrs, inputs
    (out,) = problem.out_types
    assert isinstance(out, TensorType)
    *batch, _, columns = out.shape
    depth = shape_of(a)[-2 if attrs.transpose_a else -1]
    lanes = knobs.width * vector_lanes(target, out.dtype)
    packed = packed_columns(b, (depth, columns), attrs.transpose_b, lanes, knobs.vectors, out.dtype)
    a = widened(a, out.dtype)

    def row(p: Sequence[Any], k: PrimExpr, m: PrimExpr) -> Any:
        position = p if not batch or shape_of(a)[0] != 1 else [0]
        return a(*position, *((k, m) if attrs.transpose_a else (m, k)))

    return [tiled_product(row, packed, out)]


def packed_columns(
    b: te.Tensor, size: tuple[int, int], transposed: bool, lanes: int, vectors: int, dtype: str
) -> te.Tensor:
    """Return the right matrix (..., K, N), or (..., N, K), as (..., N/n, K, n) with n `lanes`.

    There are so many blocks that `vectors` divides their number; elements become `dtype`.
    """
    depth, columns = size
    *batch, _, _ = shape_of(b)
    blocks = -(-columns // (lanes * vectors)) * vectors

    def element(*i: PrimExpr) -> Any:
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


def tiled_product(row: Callable[..., Any], packed: te.Tensor, out: TensorType) -> te.Tensor:
    """Return the product of type `out` by tiles; ``row(batch, k, m)`` reads the left matrix."""
    *batch, rows, _ = out.shape
    *b_batch, blocks, depth, lanes = shape_of(packed)
    k = te.reduce_axis((0, depth), name="k")

    def sum_of(*i: Any) -> Any:
        *p, m, block, lane = i
        at = p if not b_batch or b_batch[0] != 1 else [0]
        left, right = row(p, k, m), packed(*at, block, k, lane)
        return te.sum(left.astype(out.dtype) * right.astype(out.dtype), axis=[k])

    tiles = te.compute(
        (*batch, rows, blocks, lanes),
        sum_of,
        name="tiles",
        tag="matmul_tiles",
    )

    def spread(*i: PrimExpr) -> Any:
        *p, m, n = i
        return tiles(*p, m, te.floordiv(n, lanes), te.floormod(n, lanes))

    made: te.Tensor = te.compute(out.shape, spread, name="T_matmul", tag="injective")
    return made


MOST_COPIES = 32  # vectors of a task that leave its tiles without a loop


def tile_product(
    schedule: te.Schedule,
    output: te.Tensor,
    tiles: te.Tensor,
    tile: Tile,
    target: Target,
    parallel: bool,
) -> tuple[Stage, te.IterVar]:
    """Make a task of some rows of `output`; return the stage of its `tiles`, and where sums belong.

    A task has all columns, or where there are too few rows for all cores, some whole tiles of them.
    """
    height, vectors, together = tile.rows, tile.vectors, shape_of(tiles)[-1]
    copy: Any = schedule[output]
    *batch, rows, columns = copy.op.axis
    m_outer, m_inner = copy.split(rows, factor=height, tail="shift")
    *images, high, wide = shape_of(output)
    run = min(together, wide)
    whole = together * vectors
    alone = usual(prod(images) * -(-high // height)) < target.num_cores and wide > whole
    if alone:
        n_part, columns = copy.split(columns, factor=whole)
        n_outer, n_lane = copy.split(columns, factor=run)
        tasks = [*batch, m_outer, n_part]
    else:
        n_outer, n_lane = copy.split(columns, factor=run, tail="shift")
        tasks = [*batch, m_outer]
    copy.reorder(*tasks, m_inner, n_outer, n_lane)
    copy.vectorize(n_lane)
    if not is_open(wide) and height * -(-wide // run) <= MOST_COPIES:
        copy.unroll(m_inner)
    task = copy.fuse(*tasks)
    if parallel:
        copy.parallel(task)

    stage: Any = schedule[tiles]
    stage.compute_at(copy, task)
    *p, row, block, lane = stage.op.axis
    part, block = stage.split(block, factor=vectors)
    vector, lane = stage.split(lane, factor=min(together, vector_lanes(target, tiles.dtype)))
    register_tile(stage, [*p, part], [row, block, vector], lane)
    return stage, part


def reads_groups(problem: Problem) -> bool:
    """Return whether rows of the left matrix (..., M, K) are loaded a few values at a time."""
    a, memory = problem.in_types[0], problem.reads_memory(0)
    fits = a.dtype == "float32" and a.shape[-1] % GROUP == 0
    return problem.target.has_lane_fma and memory and fits


def fills_vector(rows: int, columns: int, dtype: str, target: Target) -> bool:
    """Return whether rows of the result fill a vector well enough, padded with zeros.

    Short ones are filled by a quarter, and there are enough of them to pay for the packing: a row's
    sums of single columns would each be put together from a vector's lanes.
    """
    lanes = vector_lanes(target, dtype)
    many = not is_open(rows) and rows >= target.core.costs.packed_matrix_rows
    return columns >= lanes or (many and 4 * columns > lanes)


def _applies(attrs: MatmulAttrs, in_types: Sequence[Type], target: Target) -> bool:
    """Floats, and rows long enough for a vector."""
    a, b = in_types
    assert isinstance(a, TensorType)
    assert isinstance(b, TensorType)
    rows = a.shape[-1] if attrs.transpose_a else a.shape[-2]
    columns = b.shape[-2] if attrs.transpose_b else b.shape[-1]
    return dtypes.is_float(a.dtype) and fills_vector(rows, columns, a.dtype, target)


@register_strategy(
    "nn.batch_matmul", "nn.matmul", name="batch_matmul.tile", compute=_matmul_compute,
    applies=_applies, default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_batch_matmul(
    problem: Problem, outs: Sequence[te.Tensor], product: te.Tensor, knobs: Tile
) -> te.Schedule:
    """Tiles of registers over packed columns, with the epilogue on the way out."""
    target = problem.target
    schedule, output = new_schedule(outs)
    tiles = tagged(outs)["matmul_tiles"]
    packed = [t for t in tiles.op.input_tensors if "pack" in t.op.tag]
    inline_injective(schedule, outs, keep=packed)
    left = tiles.op.input_tensors[0]
    lanes = min(shape_of(tiles)[-1], vector_lanes(target, tiles.dtype))
    (depth,) = (extent_of(axis) for axis in tiles.op.reduce_axis)
    parallel = worth_sharing(prod(shape_of(tiles)) * depth, target)
    lane_fma = getattr(knobs, "lane_fma", False)
    if fills_panels(tiles, output, knobs, lane_fma):
        panel_product(schedule, output, tiles, knobs, target, parallel)
        pack_columns(schedule, packed, target, lanes, parallel)
        return schedule
    accumulator = schedule.cache_write(tiles, "local")
    stage, part = tile_product(schedule, output, tiles, knobs, target, parallel)

    alone = shape_of(tiles)[-3] == 1 and not lane_fma
    summed = accumulator
    if not lane_fma:
        summed = in_parts(schedule, accumulator, lanes, PART if alone else TILE_PART)
    schedule[accumulator].compute_at(stage, part)
    if lane_fma:
        groups = schedule.cache_read(left, "local", [accumulator])
        first = len(stage.op.axis) - 3
        schedule_lane_fma(
            schedule, accumulator, groups, row=first, columns=[first + 1, first + 2], lanes=lanes
        )
    else:
        registers = schedule[summed]
        *p, row, block, lane = registers.op.axis
        (k,) = registers.op.reduce_axis
        register_tile(registers, [*p, k], [row, block], lane)

    pack_columns(schedule, packed, target, lanes, parallel)
    return schedule


def fills_panels(tiles: te.Tensor, output: te.Tensor, tile: Tile, lane_fma: bool) -> bool:
    """Return whether several rows fill whole panels of columns, so that tiles store their sums."""
    *_, rows, columns = shape_of(output)
    whole = shape_of(tiles)[-1] * tile.vectors
    return not lane_fma and rows != 1 and columns % whole == 0


def panel_product(
    schedule: te.Schedule,
    output: te.Tensor,
    tiles: te.Tensor,
    tile: Tile,
    target: Target,
    parallel: bool,
) -> None:
    """Schedule tiles that store their sums: a part of the rows by one panel after the other.

    So a panel stays in the cache for all tiles of a part, and the part for all panels.
    """
    stage: Any = schedule[output]
    *batch, rows, columns = stage.op.axis
    *_, high, wide = shape_of(output)
    (k,) = tiles.op.reduce_axis
    lanes = shape_of(tiles)[-1]
    blocks, lane = stage.split(columns, factor=lanes)
    panel, vector = stage.split(blocks, factor=tile.vectors)
    bytes_of_row, panels = 4 * extent_of(k), wide // (lanes * tile.vectors)
    part = high
    if not is_open(high):
        part = positions_per_part(
            high, high * bytes_of_row, wide * bytes_of_row, panels, tile, target
        )
    each = image_tiles(
        stage, (*batch, panel), [rows], vector, lane, rows=tile.rows, part=part, shared=parallel
    )
    summed = in_parts(schedule, tiles, lanes, TILE_PART)
    schedule[tiles].set_scope("local")
    schedule[tiles].compute_at(stage, each)
    inner: Any = schedule[summed]
    *p, row, block, lane = inner.op.axis
    (k,) = inner.op.reduce_axis
    register_tile(inner, [*p, k], [row, block], lane)


def pack_columns(
    schedule: te.Schedule,
    packed: Sequence[te.Tensor],
    target: Target,
    lanes: int,
    parallel: bool,
) -> None:
    """Schedule the copies of the matrices."""
    for tensor in packed:
        if schedule_transposed(schedule, tensor, target, lanes):
            continue
        pack = schedule[tensor]
        *blocks, _, lane = pack.op.axis
        pack.vectorize(lane)
        task_axis = pack.fuse(*blocks)
        if parallel:
            pack.parallel(task_axis)
