"""Products on a GPU: each thread computes a tile of the output in registers.

What a step of the reduction reads of one side serves all rows of the tile, and of the other side
all columns.  A tile divides the output, so that no thread asks whether its elements are there, but
for the rows of a product of matrices, where their number (197 tokens, say) has no such divisor and
a question for each row costs less than what is read.  What a step reads of a padded image is put
into registers first.  Where a sum has more steps than a thread takes, its parts are tiles of their
own (`partial_sums`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from slipway import te
from slipway.backends.gpu.limits import most_blocks
from slipway.backends.gpu.schedules.generic import (
    ThreadKnobs,
    bind_elements,
    bind_tiles,
    only_reader,
    readers_of,
    schedule_elements,
    thread_knobs,
    thread_space,
)
from slipway.backends.gpu.schedules.joined import schedule_joined, schedule_tile
from slipway.backends.gpu.schedules.partial_sums import cut_product, product_parts
from slipway.backends.gpu.warps import runs_in_lanes
from slipway.backends.stages import extent_of, inline_injective, is_injective, producers
from slipway.backends.strategy import Problem, register_strategy
from slipway.relay.types import flatten
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU

_SIDE = (1, 2, 3, 4, 5, 6, 7, 8)
_LONG_SIDE = (*_SIDE, 12, 16)  # where a product may have tiles of so many sums


@dataclass(frozen=True)
class TileKnobs(ThreadKnobs):
    """Also `rows` x `columns`: the tile of a thread."""

    rows: int
    columns: int


def tiled_axes(problem: Problem) -> tuple[int, int]:
    """Return which axes of the output a tile's rows and columns lie along."""
    rank = len(_shape(problem))
    channels_first = problem.op == "nn.conv2d" and problem.attrs.data_layout == "NCHW"
    return (1 if channels_first else rank - 2), rank - 1


def tile_knobs(problem: Problem) -> TileKnobs:
    """Return the default knobs: the tile that reads least, of those that leave enough threads.

    One of many rows has fewer threads and reads at as many places: it must save more than a little.
    Columns are beside each other.  On a device of type "cpu" whose driver runs threads in lanes
    (Vulkan's and WebGPU's do) a tile may be larger: an instruction for an element that is read is
    one for each lane there.
    """
    shape = _shape(problem)
    row, column = tiled_axes(problem)
    rows, columns = _row_sides(problem), _divisors(shape[column], problem)
    most, threads = ANY_GPU.tile_sums, ANY_GPU.tile_threads
    if runs_in_lanes(problem.target):
        most = ANY_GPU.processor_sums
        if problem.op != "nn.conv2d":  # whose threads have what they read of the image beside them
            most = ANY_GPU.processor_product_sums
        threads = ANY_GPU.processor_threads
    tiles = [
        (r, c)
        for r in rows
        for c in columns
        if r * c == 1 or (r * c <= most and prod(shape) // (r * c) >= threads)
    ]

    def reads(tile: tuple[int, int]) -> float:
        return _reads(tile, shape[row])

    usual = min((t for t in tiles if max(t) <= ANY_GPU.tile_side), key=reads)
    best = min(tiles, key=reads)
    is_worth = reads(best) <= (1 - ANY_GPU.tile_saving) * reads(usual)
    r, c = best if is_worth or best[0] <= ANY_GPU.tile_side else usual
    return TileKnobs(thread_knobs(problem).threads, r, c)


def _reads(tile: tuple[int, int], extent: int) -> float:
    """Return the elements that a thread reads for each product, of tiles of so many rows.

    Where they do not divide the rows, each is asked for at every step, and the last tile has less.
    """
    rows, columns = tile
    reads = 1 / rows + 1 / columns
    if extent % rows == 0:
        return reads
    return (reads + 1 / columns) * (-(-extent // rows) * rows / extent)


def tile_space(problem: Problem) -> dict[str, Sequence[Any]]:
    """Return the legal knobs."""
    shape = _shape(problem)
    column = tiled_axes(problem)[1]
    return {
        **thread_space(problem),
        "rows": _row_sides(problem),
        "columns": _divisors(shape[column], problem),
    }


def tile_cost(problem: Problem, knobs: TileKnobs) -> float:
    """Return the elements that all threads read in a step: what a tile saves."""
    tiles = prod(_shape(problem)) / (knobs.rows * knobs.columns)
    return tiles * (knobs.rows + knobs.columns)


def _shape(problem: Problem) -> tuple[int, ...]:
    (out,) = flatten(problem.out_types[0])
    return tuple(out.shape)


def _sides(problem: Problem) -> tuple[int, ...]:
    is_long = problem.op != "nn.conv2d" and runs_in_lanes(problem.target)
    return _LONG_SIDE if is_long else _SIDE


def _divisors(extent: int, problem: Problem) -> tuple[int, ...]:
    return tuple(n for n in _sides(problem) if extent % n == 0)


def _row_sides(problem: Problem) -> tuple[int, ...]:
    extent = _shape(problem)[tiled_axes(problem)[0]]
    if problem.op == "nn.conv2d":
        return _divisors(extent, problem)
    return tuple(n for n in _sides(problem) if n <= max(1, extent))


def _has_tiles(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
    return getattr(attrs, "data_layout", "NCHW") in ("NCHW", "NHWC")


@register_strategy(
    "nn.conv2d", "nn.dense", "nn.matmul", "nn.batch_matmul", name="threads.tile",
    applies=_has_tiles, default=tile_knobs, space=tile_space, cost=tile_cost,
)  # fmt: skip
def schedule_tiles(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: TileKnobs
) -> te.Schedule:
    """A tile for each thread; a thread for each element where the kernel does more than that."""
    sums = [op for op in producers(outs) if isinstance(op, te.ComputeOp) and op.reduce_axis]
    schedule = te.create_schedule([t.op for t in outs])
    padded = _padded(problem, anchor)
    inline_injective(schedule, outs, keep=padded)
    is_result = any(t.op is anchor.op for t in outs)
    out = anchor if is_result else only_reader(readers_of(schedule, outs), anchor.op, outs)
    if len(outs) != 1 or len(sums) != 1 or sums[0] is not anchor.op or out is None:
        tiled, sides = tiled_axes(problem), (knobs.rows, knobs.columns)
        joined = schedule_joined(outs, anchor, padded, tiled, sides, problem)
        return joined or schedule_elements(problem, outs, anchor, knobs)
    parts = product_parts(anchor.op)
    if parts > 1:
        return _in_parts(schedule, out, anchor, parts, padded, problem, knobs)
    if is_result:
        tile = schedule.cache_write(anchor, "local")
    else:
        tile = anchor
        schedule[tile].set_scope("local")
    thread = _bind_tiles(schedule[out], tiled_axes(problem), problem, knobs)
    schedule[tile].compute_at(schedule[out], thread)
    schedule_tile(schedule, tile, tiled_axes(problem), padded, problem.target)
    return schedule


def _in_parts(
    schedule: te.Schedule, out: te.Tensor, product: te.Tensor, parts: int,
    padded: list[te.Tensor], problem: Problem, knobs: TileKnobs,
) -> te.Schedule:  # fmt: skip
    """A tile of a part of the depth for each thread; another kernel adds up the parts."""
    part = cut_product(schedule, product, parts)
    tile = schedule.cache_write(part, "local")
    row, column = tiled_axes(problem)
    tiled = row + 1, column + 1
    thread = _bind_tiles(schedule[part], tiled, problem, knobs)
    schedule[tile].compute_at(schedule[part], thread)
    schedule_tile(schedule, tile, tiled, padded, problem.target)
    end = bind_elements(schedule, out, knobs.threads, most_blocks(problem.target))
    if out.op is not product.op:
        assert end is not None  # it has axes
        schedule[product].compute_at(schedule[out], end)
        schedule[product].set_scope("local")
    return schedule


def _padded(problem: Problem, anchor: te.Tensor) -> list[te.Tensor]:
    """Return the padded image of a convolution, which all rows of a tile read."""
    if getattr(problem.attrs, "groups", 0) != 1:
        return []  # a tile's rows may be of several groups
    image = anchor.op.input_tensors[0]
    return [image] if is_injective(image.op) and image.op.name == "pad_temp" else []


def _bind_tiles(
    stage: Any, tiled: tuple[int, int], problem: Problem, knobs: TileKnobs
) -> te.IterVar:
    """Bind the tiles of a stage to threads; return the axis of the threads."""
    sides = dict(zip(tiled, (knobs.rows, knobs.columns), strict=True))
    outer, inner = [], []
    for number, axis in enumerate(stage.op.axis):
        if number in sides:
            axis, step = stage.split(axis, factor=sides[number])
            inner.append(step)
        outer.append(axis)
    tiles = prod(-(-extent_of(a) // sides.get(k, 1)) for k, a in enumerate(stage.op.axis))
    return bind_tiles(stage, outer, inner, tiles, problem, knobs.threads)
