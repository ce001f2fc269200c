"""Winograd convolution: transforms on vectors of channels, products from a tile of registers.

Where one block of rows of tiles, transformed, fits the second-level cache, the whole convolution
runs block by block and its transformed tensors never leave that cache.  A smaller image with more
channels is one block: all of it is transformed first, and the products and results of a few output
channels follow at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import time_of_all
from slipway.backends.cpu.predict import product_cycles
from slipway.backends.cpu.schedules.matmul.lane_fma import schedule_lane_fma
from slipway.backends.cpu.schedules.matmul.panels import PanelProgress, prefetch_next, split_steps
from slipway.backends.cpu.schedules.register_tile import register_tile
from slipway.backends.cpu.tile import GROUP, Tile, choose_tile, fma, lane_indexed_fma, tile_space
from slipway.backends.stages import inline_injective, new_schedule, producers, shape_of
from slipway.backends.strategy import Problem, Space, register_strategy
from slipway.relay.ops.packed.winograd import TileBlocks, winograd_stages

if TYPE_CHECKING:
    from slipway.relay.expr import Expr
    from slipway.target import Target


def blocks_of_rows(rows: int, columns: int, elements: int, target: Target) -> int:
    """Return the rows of tiles in a block: as many as the cache holds, or all of them.

    A transformed tile has so many `elements` in all channels.

    All of them where too few tiles would fit.  Else, of the sizes that fit, the one that leaves the
    least work to the core that has most, where small blocks pay for reading the kernel more often.
    """
    per_row = elements * columns * 4
    costs = target.core.costs
    fitting = target.core.l2_bytes * costs.winograd_l2_share // per_row
    few = costs.winograd_tiles
    sizes = [g for g in range(1, rows + 1) if g <= fitting and g * columns >= few // 2]

    def cost(size: int) -> float:
        time = time_of_all(ceil(rows / size), target.core_counts)
        return time * size / rows * (1 + few / 4 / (size * columns))

    best = min(sizes, key=cost, default=rows)
    return best if best * columns >= few or best == rows else rows


def _product_tile(tiles: int, blocks: int, lanes: int, target: Target) -> Tile:
    kernel = lane_indexed_fma if target.has_lane_fma else fma
    width = max(1, lanes // vector_lanes(target, "float32"))
    return choose_tile(kernel(target, width), tiles, blocks)


@dataclass(frozen=True)
class WinogradTile(Tile):
    """A tile of the products, and how many rows of tiles of the image are in a block."""

    block_rows: int = 1


def _tiles_of(problem: Problem) -> tuple[int, int, int]:
    """Return the rows and columns of tiles of an image, and the elements of one in all channels."""
    (out,) = problem.out_types
    _, _, height, width, _ = out.shape
    _, chunks, _, _, ic = problem.in_types[0].shape
    side = problem.in_types[1].shape[1]
    rows, columns = -(-height // (side - 2)), -(-width // (side - 2))
    return rows, columns, side * side * chunks * ic


def _default(problem: Problem) -> WinogradTile:
    (out,), target = problem.out_types, problem.target
    rows, columns, elements = _tiles_of(problem)
    size = blocks_of_rows(rows, columns, elements, target)
    tile = _product_tile(size * columns, out.shape[1], out.shape[-1], target)
    return WinogradTile(tile.rows, tile.vectors, size)


def _cost(problem: Problem, tile: WinogradTile) -> float:
    """The products of all elements of all tiles, and the transforms."""
    (data, kernel), (out,), target = problem.in_types, problem.out_types, problem.target
    rows, columns, elements = _tiles_of(problem)
    tiles = out.shape[0] * rows * columns
    products = tiles * prod(kernel.shape)
    channels = prod(out.shape) // prod(out.shape[2:-1]) // out.shape[0]
    sides = elements / data.shape[1] / data.shape[-1] * (channels + data.shape[1] * data.shape[-1])
    transforms = 32 * target.core.costs.transform_products * tiles * sides / target.core.fma_bits
    return product_cycles(problem, products, tile.rows, tile.vectors) + float(transforms)


def _space(problem: Problem) -> Space:
    (out,), target = problem.out_types, problem.target
    rows, columns, _ = _tiles_of(problem)
    width = max(1, out.shape[-1] // vector_lanes(target, "float32"))
    space = tile_space(rows * columns, out.shape[1], target, width)
    return {**space, "block_rows": range(1, rows + 1)}


def _winograd_compute(
    problem: Problem, inputs: Sequence[te.Tensor], tile: WinogradTile
) -> list[te.Tensor]:
    (out,) = problem.out_types
    blocks = TileBlocks(tile.block_rows, tile.rows)
    return [winograd_stages(problem.attrs, list(inputs), out, blocks)]


@register_strategy(
    "nn.contrib_conv2d_winograd_nchwc", name="conv2d_winograd", compute=_winograd_compute,
    default=_default, space=_space, cost=_cost,
)  # fmt: skip
def schedule_winograd(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: WinogradTile
) -> te.Schedule:
    """Into the transform, the products, and back, a block of tiles and some channels at once."""
    target = problem.target
    schedule, output = new_schedule(outs)
    stages = {
        tag: op.output(0)
        for op in producers(outs)
        for tag in getattr(op, "tag", "").split(",")
        if tag
    }
    half, data, products = (stages[f"winograd_{n}"] for n in ("half", "data", "products"))
    rest = stages["winograd_rest"]
    pad = stages.get("pad")
    kept = [half, data, products, rest, *([pad] if pad is not None else [])]
    inline_injective(schedule, outs, keep=kept)

    _, parts, _, side, *_ = shape_of(products)
    m = side - 2
    _, _, lines, *_ = shape_of(rest)
    step = lines // parts
    stage = schedule[output]
    n, o, y, x, ob = stage.op.axis
    part, y_inside = stage.split(y, factor=step)
    ty, y_inner = stage.split(y_inside, factor=m)
    tx, x_inner = stage.split(x, factor=m)
    o_outer, o_inner = stage.split(o, factor=tile.vectors, tail="shift")
    register_tile(stage, [n, part, o_outer, o_inner, ty, tx], [y_inner, x_inner], ob)
    if parts == 1:
        task = stage.fuse(n, part, o_outer)
        products_at = task
        schedule[data].parallel(schedule[data].fuse(*data.op.axis[:3]))
    else:
        task, products_at = stage.fuse(n, part), o_outer
        schedule[data].compute_at(stage, task)
    stage.parallel(task)

    _schedule_back(schedule, rest, stage, tx)
    schedule[products].compute_at(stage, products_at)
    _schedule_products(schedule, products, tile, target)
    _schedule_data(schedule, half, data, pad)
    return schedule


def _schedule_data(
    schedule: te.Schedule, half: te.Tensor, data: te.Tensor, pad: te.Tensor | None
) -> None:
    """One tile of one channel block at a time, all its elements unrolled."""
    stage = schedule[data]
    *_, x, y, q, i = stage.leaf_iter_vars
    register_tile(stage, [q], [x, y], i)
    outer = stage.leaf_iter_vars[stage.leaf_iter_vars.index(q) - 1]
    if pad is not None:
        schedule[pad].compute_at(stage, outer)
        schedule[pad].vectorize(pad.op.axis[-1])
    inner = schedule[half]
    inner.compute_at(stage, q)
    inner.set_scope("local")
    *_, x, b, i = inner.op.axis
    register_tile(inner, [], [b, x], i)  # column by column: a column in, a column out


def _schedule_products(
    schedule: te.Schedule, products: te.Tensor, tile: Tile, target: Target
) -> None:
    """A matrix product, tiles by output channels, for each element of a transformed tile."""
    registers = schedule.cache_write(products, "local")
    stage = schedule[products]
    n, part, o, x, y, q, ob = stage.op.axis
    q_outer, q_inner = stage.split(q, factor=tile.rows)
    register_tile(stage, [n, part, x, y, q_outer], [o, q_inner], ob)
    inner = schedule[registers]
    inner.compute_at(stage, q_outer)
    data, kernel = inner.op.input_tensors
    if target.has_lane_fma and shape_of(kernel)[-2] % GROUP == 0:
        groups = schedule.cache_read(data, "local", [registers])
        lanes = min(shape_of(products)[-1], vector_lanes(target, products.dtype))
        schedule_lane_fma(schedule, registers, groups, row=5, columns=[2, 6], lanes=lanes)
        return
    n, part, o, x, y, q, ob = inner.op.axis
    chunk, lane = inner.op.reduce_axis
    _, _, _, chunks, block, _ = shape_of(kernel)
    split = split_steps(inner, lane, tile, target)
    register_tile(inner, [n, part, x, y, chunk, split.asking], [split.unrolled, q, o], ob)
    tiles = -(-shape_of(products)[5] // tile.rows)
    step = chunk * block + lane
    at = PanelProgress(te.floordiv(q, tile.rows), tiles, step, chunks * block)

    def place(vector: int, line: Expr) -> tuple[Any, ...]:
        return o + vector, x, y + 1, 0, line, 0  # beyond the last y lies the next x

    for vector in range(tile.vectors):
        prefetch_next(inner, kernel, split, at, partial(place, vector))


def _schedule_back(schedule: te.Schedule, rest: te.Tensor, stage: te.Stage, at: te.IterVar) -> None:
    """One tile of results at a time, with the epilogue of the convolution."""
    inner = schedule[rest]
    inner.compute_at(stage, at)
    inner.set_scope("local")
    _, _, y, _, j, ob = inner.op.axis
    register_tile(inner, [], [j, y], ob)
