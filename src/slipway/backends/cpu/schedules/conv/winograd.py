"""Winograd convolution: transforms on vectors of channels, products from a tile of registers.

Where one block of rows of tiles, transformed, fits the second-level cache, the whole convolution
runs block by block and its transformed tensors never leave that cache.  A smaller image with more
channels is one block: all of it is transformed first, and the products and results of a few output
channels follow at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, gcd, prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.best_together import best_together
from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.parts import time_of_all
from slipway.backends.cpu.predict import product_cycles
from slipway.backends.cpu.schedules.conv.winograd_sizes import (
    MOST,
    BlockCosts,
    Candidate,
    sample_sizes,
    serves_many_sizes,
    tiles_along,
)
from slipway.backends.cpu.schedules.conv.winograd_tiles import (
    LastBlock,
    WinogradStages,
    last_block,
    registers_of_products,
    results_before_epilogue,
    tasks_of,
    tile_image,
    transform_back,
    transform_half,
    winograd_schedule,
)
from slipway.backends.cpu.schedules.matmul.lane_fma import schedule_lane_fma
from slipway.backends.cpu.schedules.matmul.panels import PanelProgress, prefetch_next, split_steps
from slipway.backends.cpu.schedules.register_tile import register_tile
from slipway.backends.cpu.tile import (
    GROUP,
    MicroKernel,
    Tile,
    choose_tile,
    fma,
    lane_indexed_fma,
    tile_space,
)
from slipway.backends.stages import extent_of, shape_of
from slipway.backends.strategy import Problem, SizedKnobs, Space, register_strategy
from slipway.relay.dims import is_open, lower_bound, usual
from slipway.relay.ops.packed.winograd import TileBlocks, winograd_stages

if TYPE_CHECKING:
    from slipway.relay.expr import Expr
    from slipway.target import Target


def sizes_in_tiles(height: Any, width: Any, m: int) -> list[tuple[int, int]]:
    """Return the rows and columns of tiles of m by m of images, from the smallest to the largest.

    One where height and width are known, else several from all of their ranges.
    """
    ends = [(lower_bound(extent), usual(extent)) for extent in (height, width)]
    found = [[-(-(low + (high - low) * i // 4) // m) for low, high in ends] for i in range(5)]
    return list(dict.fromkeys((max(1, rows), max(1, columns)) for rows, columns in found))


def blocks_of_rows(images: Sequence[tuple[int, int]], elements: int, target: Target) -> int:
    """Return the rows of tiles in a block: as many as the cache holds, or all of them.

    A transformed tile has so many `elements` in all channels; `images` are those of
    `sizes_in_tiles`.

    All of them where too few tiles would fit.  Else, of the sizes that fit, the one that leaves the
    least work to the core that has most, where small blocks pay for reading the kernel more often.
    """
    rows, columns = images[-1]
    per_row = elements * columns * 4
    costs = target.core.costs
    fitting = target.core.l2_bytes * costs.winograd_l2_share // per_row
    few = costs.winograd_tiles
    sizes = [g for g in range(1, rows + 1) if g <= fitting and g * columns >= few // 2]

    def cost(size: int) -> float:
        time = 0.0
        for high, wide in images:
            high_of_block = high if size == rows else size  # a block of all has no more than that
            parts = time_of_all(ceil(high / size), target.core_counts)
            time += parts * (high_of_block * wide + few / 4)
        return time

    best = min(sizes, key=cost, default=rows)
    return best if best * columns >= few or best == rows else rows


def kernel_of(problem: Problem) -> MicroKernel:
    """Return the kernel that multiplies transformed tiles."""
    target = problem.target
    make = lane_indexed_fma if target.has_lane_fma else fma
    lanes = problem.out_types[0].shape[-1]
    return make(target, max(1, lanes // vector_lanes(target, "float32")))


def _product_tile(
    problem: Problem,
    images: Sequence[tuple[int, int]],
    block_rows: int,
    legal: Callable[[Tile], bool] = lambda tile: True,
) -> Tile:
    """Choose the tile that takes least for all blocks of all images."""
    (out,), kernel = problem.out_types, kernel_of(problem)
    whole = block_rows >= images[-1][0]
    blocks = [
        (ceil(rows / block_rows), (rows if whole else block_rows) * columns)
        for rows, columns in images
    ]

    def cost(tile: Tile) -> float:
        return sum(count * kernel.all_cycles(tile, q, out.shape[1]) for count, q in blocks)

    return choose_tile(kernel, blocks[-1][1], out.shape[1], legal=legal, cost=cost)


@dataclass(frozen=True)
class WinogradTile(Tile):
    """A tile of the products, and how many rows of tiles of the image are in a block."""

    block_rows: int = 1


def _images_of(problem: Problem) -> tuple[list[tuple[int, int]], int]:
    """Return images in tiles, and the elements of a tile in all channels."""
    _, _, height, width, _ = problem.out_types[0].shape
    _, chunks, _, _, ic = problem.in_types[0].shape
    side = problem.in_types[1].shape[1]
    return sizes_in_tiles(height, width, side - 2), side * side * chunks * ic


def _default(problem: Problem) -> WinogradTile:
    images, elements = _images_of(problem)
    size = blocks_of_rows(images, elements, problem.target)
    tile = _product_tile(problem, images, size)
    return WinogradTile(tile.rows, tile.vectors, size)


def _by_size(problem: Problem) -> list[SizedKnobs]:
    """Blocks and tiles for different sizes of an image, with what they cost."""
    (out,), target = problem.out_types, problem.target
    _, chunks, height, width, _ = out.shape
    if not (is_open(height) or is_open(width)):
        return []
    images, elements = _images_of(problem)
    m = problem.in_types[1].shape[1] - 2
    most_rows = images[-1][0]
    planes = (m + 2) * (m + 2)
    costs = BlockCosts(kernel_of(problem), target, chunks, elements, planes, most_rows)

    def choose(image: tuple[int, int]) -> list[Candidate]:
        rows, _ = image
        own = blocks_of_rows([image], elements, target)
        found = []
        for size in dict.fromkeys((own, rows, 1)):
            tile = _product_tile(problem, [image], size, serves_many_sizes)
            found.append((Tile(tile.rows, tile.vectors), most_rows if size >= rows else size))
        return found

    def cost(candidate: Candidate, image: tuple[int, int]) -> int:
        return int(costs.cost(*candidate, *image))

    found = best_together(cost, sample_sizes(height, width, m), choose, MOST)
    across = tiles_along(height, m), tiles_along(width, m)
    return [
        SizedKnobs(WinogradTile(tile.rows, tile.vectors, size), costs.cost(tile, size, *across))
        for tile, size in found
    ]


def _cost(problem: Problem, tile: WinogradTile) -> float:
    """The products of all elements of all tiles, and the transforms."""
    (data, kernel), (out,), target = problem.in_types, problem.out_types, problem.target
    images, elements = _images_of(problem)
    tiles = usual(out.shape[0]) * prod(images[-1])
    products = tiles * prod(kernel.shape)
    channels = out.shape[1] * out.shape[-1]
    sides = elements / data.shape[1] / data.shape[-1] * (channels + data.shape[1] * data.shape[-1])
    transforms = 32 * target.core.costs.transform_products * tiles * sides / target.core.fma_bits
    return product_cycles(problem, products, tile.rows, tile.vectors) + float(transforms)


def _space(problem: Problem) -> Space:
    (out,), target = problem.out_types, problem.target
    rows, columns = _images_of(problem)[0][-1]
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
    default=_default, space=_space, cost=_cost, by_size=_by_size,
)  # fmt: skip
def schedule_winograd(
    problem: Problem, outs: Sequence[te.Tensor], conv: te.Tensor, tile: WinogradTile
) -> te.Schedule:
    """Into the transform, the products, and back, a block of tiles and some channels at once."""
    schedule, output, stages = winograd_schedule(outs)
    _, parts, _, side, *_ = shape_of(stages.products)
    stage = schedule[output]
    n, o, y, x, ob = stage.op.axis
    image = tile_image(stage, y, x, tile.block_rows * (side - 2), side - 2)
    o_outer, o_inner = stage.split(o, factor=tile.vectors, tail="shift")
    around = [n, image.part, o_outer, o_inner, image.ty, image.tx]
    register_tile(stage, around, image.inside, ob)
    data = schedule[stages.data]
    products_at = tasks_of(stage, data, [n, image.part], o_outer, parts)
    if parts == 1:
        data.parallel(data.fuse(*data.op.axis[:3]))

    if stages.results is not None:
        results_before_epilogue(schedule[stages.results], stage, image)
    transform_back(schedule, stages.output_half, stage, image.tx)
    schedule[stages.products].compute_at(stage, products_at)
    last = last_block(output, parts, tile.block_rows, side - 2)
    if last is not None:
        stage.compute_below(te.floordiv(y, side - 2) * (side - 2), last.height)
    schedule_products(schedule, stages.products, tile, problem.target, last)
    schedule_data(schedule, stages, tile.rows, last)
    for tensor in (stages.data, stages.products):
        spread_planes(schedule[tensor], tensor, problem.target)
    return schedule


def spread_planes(stage: te.Stage, tensor: te.Tensor, target: Target) -> None:
    """Keep the elements of one tile, a plane for each, out of each other's places in the cache.

    A transform reads or writes all of them: planes whose size is a large power of two share a few
    sets of the first-level cache.  An odd number of lines has them in as many sets as there are.
    """
    core = target.core
    *_, side, _, tiles, lanes = shape_of(tensor)
    line = core.line_bytes // 4
    size = usual(tiles) * lanes
    held = core.l1_sets // gcd(core.l1_sets, size // line) * core.l1_ways
    if size % line == 0 and held < side * side:
        stage.storage_align(stage.op.axis[-3], 2 * line, line)


def schedule_data(
    schedule: te.Schedule, stages: WinogradStages, rows: int, last: LastBlock | None
) -> None:
    """One tile of one channel block at a time, all its elements unrolled."""
    stage = schedule[stages.data]
    *_, x, y, q, i = stage.leaf_iter_vars
    register_tile(stage, [q], [x, y], i)
    outer = stage.leaf_iter_vars[stage.leaf_iter_vars.index(q) - 1]
    if last is not None:
        stage.compute_below(te.floordiv(q, rows) * rows, last.tiles(stage.op.axis[1]))
    if stages.pad is not None:
        schedule[stages.pad].compute_at(stage, outer)
        schedule[stages.pad].vectorize(stages.pad.op.axis[-1])
    transform_half(schedule, stages.half, stage, q)


def schedule_products(
    schedule: te.Schedule,
    products: te.Tensor,
    tile: Tile,
    target: Target,
    last: LastBlock | None,
) -> None:
    """A matrix product, tiles by output channels, for each element of a transformed tile."""
    inner = registers_of_products(schedule, products, tile.rows, last)
    data, kernel = inner.op.input_tensors
    if target.has_lane_fma and shape_of(kernel)[-2] % GROUP == 0:
        registers = inner.op.output(0)
        groups = schedule.cache_read(data, "local", [registers])
        lanes = min(shape_of(products)[-1], vector_lanes(target, products.dtype))
        schedule_lane_fma(schedule, registers, groups, row=5, columns=[2, 6], lanes=lanes)
        return
    n, part, o, x, y, q, ob = inner.op.axis
    *frames, chunk, lane = inner.op.reduce_axis  # frames: of a window over several
    _, _, _, chunks, block, _ = shape_of(kernel)
    split = split_steps(inner, lane, tile, target)
    around = [n, part, x, y, *frames, chunk, split.asking]
    register_tile(inner, around, [split.unrolled, q, o], ob)
    if is_open(shape_of(products)[5]):
        inner.pragma(q, "half_in_tail")
    tiles = -(-usual(shape_of(products)[5]) // tile.rows)
    step = chunk * block + lane
    for frame in frames:
        step = frame * (extent_of(chunk) * block) + step
    at = PanelProgress(te.floordiv(q, tile.rows), tiles, step, chunks * block)

    def next_at(vector: int, line: Expr) -> tuple[Any, ...]:
        return o + vector, x, y + 1, 0, line, 0  # beyond the last y lies the next x

    for vector in range(tile.vectors):
        prefetch_next(inner, kernel, split, at, partial(next_at, vector))
