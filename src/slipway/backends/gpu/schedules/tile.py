"""Products on a GPU: each thread computes a tile of the output in registers.

What a step of the reduction reads of one side serves all rows of the tile, and of the other side
all columns.  A tile divides the output, so that no thread asks whether its elements are there; what
a step reads of a padded image is put into registers first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from slipway import te
from slipway.backends.gpu.schedules.generic import (
    ThreadKnobs,
    bind_tiles,
    only_reader,
    readers_of,
    schedule_elements,
    thread_knobs,
    thread_space,
)
from slipway.backends.gpu.schedules.joined import schedule_joined, schedule_tile
from slipway.backends.stages import extent_of, inline_injective, is_injective, producers
from slipway.backends.strategy import Problem, register_strategy
from slipway.relay.types import flatten
from slipway.target.gpu_costs import ANY_GPU

_SIDE = (1, 2, 3, 4, 5, 6, 7, 8)


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
    Columns are beside each other.
    """
    shape = _shape(problem)
    row, column = tiled_axes(problem)
    rows, columns = (_divisors(shape[axis]) for axis in (row, column))
    tiles = [
        (r, c)
        for r in rows
        for c in columns
        if r * c == 1
        or (r * c <= ANY_GPU.tile_sums and prod(shape) // (r * c) >= ANY_GPU.tile_threads)
    ]
    usual = min((t for t in tiles if max(t) <= ANY_GPU.tile_side), key=_reads)
    best = min(tiles, key=_reads)
    is_worth = _reads(best) <= (1 - ANY_GPU.tile_saving) * _reads(usual)
    r, c = best if is_worth or best[0] <= ANY_GPU.tile_side else usual
    return TileKnobs(thread_knobs(problem).threads, r, c)


def _reads(tile: tuple[int, int]) -> float:
    """Return the elements that a thread reads for each product."""
    rows, columns = tile
    return 1 / rows + 1 / columns


def tile_space(problem: Problem) -> dict[str, Sequence[Any]]:
    """Return the legal knobs."""
    shape = _shape(problem)
    row, column = tiled_axes(problem)
    return {
        **thread_space(problem),
        "rows": _divisors(shape[row]),
        "columns": _divisors(shape[column]),
    }


def tile_cost(problem: Problem, knobs: TileKnobs) -> float:
    """Return the elements that all threads read in a step: what a tile saves."""
    tiles = prod(_shape(problem)) / (knobs.rows * knobs.columns)
    return tiles * (knobs.rows + knobs.columns)


def _shape(problem: Problem) -> tuple[int, ...]:
    (out,) = flatten(problem.out_types[0])
    return tuple(out.shape)


def _divisors(extent: int) -> tuple[int, ...]:
    return tuple(n for n in _SIDE if extent % n == 0)


def _has_tiles(attrs: Any, in_types: Sequence[Any], target: Any) -> bool:
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
    if is_result:
        tile = schedule.cache_write(anchor, "local")
    else:
        tile = anchor
        schedule[tile].set_scope("local")
    thread = _bind_tiles(schedule[out], tiled_axes(problem), problem, knobs)
    schedule[tile].compute_at(schedule[out], thread)
    schedule_tile(schedule, tile, tiled_axes(problem), padded)
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
    tiles = prod(extent_of(axis) for axis in stage.op.axis) // (knobs.rows * knobs.columns)
    return bind_tiles(stage, outer, inner, tiles, problem, knobs.threads)
