"""Sizes of a fused attention: query rows in a task, keys in a chunk, tiles of registers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from slipway.backends.cpu.knobs import vector_lanes, widest_lanes
from slipway.backends.cpu.parts import time_of_all, worth_sharing
from slipway.backends.cpu.tile import Tile, choose_tile, fma
from slipway.backends.strategy import Knobs, Space

if TYPE_CHECKING:
    from slipway.target import Target


def score_bytes(target: Target) -> int:
    """Return the room of a task's scores, which share the second-level cache with key and value."""
    return target.core.l2_bytes // 2


def l1_score_bytes(target: Target) -> int:
    """Return the bytes of scores that stay in the first-level cache, or are back at once."""
    return target.core.l1_bytes * 9 // 8


@dataclass(frozen=True)
class AttentionKnobs(Knobs):
    """`rows` of the query are a task, in which `chunk` keys are looked at together."""

    rows: int
    chunk: int


@dataclass(frozen=True)
class Blocks:
    """A task is `rows` query rows, in vectors of `lanes`, against chunks of `chunk` keys.

    `scores` is a tile of keys by vectors of rows, `values` one of rows by vectors of
    `value_lanes` elements of the value.  `parallel`: there is work for several cores.
    """

    rows: int
    chunk: int
    lanes: int
    value_lanes: int
    scores: Tile
    values: Tile
    parallel: bool
    copied_reads: int

    def read_often(self, rows: int) -> bool:
        """Return whether so many tasks read a head's key and value that a copy of them pays."""
        return ceil(rows / self.rows) >= self.copied_reads

    @property
    def together(self) -> int:
        """Vectors of rows whose maximum scores, or sums, are found at the same time."""
        vectors = self.rows // self.lanes
        return max(width for width in range(1, 9) if vectors % width == 0)


def lanes_for(extent: int, target: Target) -> int:
    """Return the lanes of the widest vectors that `extent` fills, a power of two."""
    return widest_lanes(extent, vector_lanes(target, "float32"))


def value_lanes(size: int, target: Target) -> int:
    """Return the lanes that cut a value: half a vector's where only those divide it."""
    lanes = lanes_for(size, target)
    half = lanes // 2
    minimum = target.core.costs.attention_lanes
    return half if size % lanes and half >= minimum and size % half == 0 else lanes


def _lanes_along(size: int, in_chunks: bool, target: Target) -> int:
    """Return the lanes along the value; the last tile begins early, unless chunks are joined."""
    return value_lanes(size, target) if in_chunks else lanes_for(size, target)


def choose_knobs(
    heads: int, rows: int, keys: int, size: int, value_size: int, target: Target
) -> AttentionKnobs:
    """Choose the sizes for that many heads of all batch entries.

    The rows of a task are those for which the core that has most to do has least: rows that tasks
    have in common are computed twice, and each task reads key and value once.
    """
    lanes, costs = lanes_for(rows, target), target.core.costs

    def busiest(vectors: int) -> float:
        each = vectors * lanes
        tasks = heads * ceil(rows / each)
        time = time_of_all(tasks, target.core_counts)
        products = size * _score_tile(vectors, keys, size, target)[1]
        products += value_size * _value_tile(each, value_size, False, target)[1]
        distance = 1.0 if each * keys * 4 <= l1_score_bytes(target) else costs.far_scores
        return time * each * products * distance * (1 + costs.reread_rows / each)

    most = max(1, min(rows, target.core.costs.query_rows) // lanes)
    vectors = min(range(1, most + 1), key=busiest)
    fitting = max(1, score_bytes(target) // (vectors * lanes * 4))  # keys whose scores do
    chunks = max(1, ceil(keys / fitting))
    return AttentionKnobs(vectors * lanes, ceil(keys / chunks))


def knob_space(rows: int, keys: int, target: Target) -> Space:
    """Return the legal knobs: whole vectors of rows, chunks that split the keys evenly."""
    lanes = lanes_for(rows, target)
    most = max(1, min(rows, target.core.costs.query_rows) // lanes)
    chunks = sorted({ceil(keys / n) for n in range(1, min(keys, 64) + 1)})
    return {"rows": range(lanes, most * lanes + 1, lanes), "chunk": chunks}


def blocks_of(
    knobs: AttentionKnobs,
    heads: int,
    rows: int,
    keys: int,
    size: int,
    value_size: int,
    target: Target,
) -> Blocks:
    """Return all sizes that follow from the knobs."""
    lanes, in_chunks = lanes_for(rows, target), knobs.chunk < keys
    vectors = knobs.rows // lanes
    return Blocks(
        rows=vectors * lanes,
        chunk=knobs.chunk,
        lanes=lanes,
        value_lanes=_lanes_along(value_size, in_chunks, target),
        scores=_score_tile(vectors, knobs.chunk, size, target)[0],
        values=_value_tile(vectors * lanes, value_size, in_chunks, target)[0],
        parallel=worth_sharing(heads * rows * keys * (size + value_size), target),
        copied_reads=target.core.costs.copied_reads,
    )


def choose_blocks(
    heads: int, rows: int, keys: int, size: int, value_size: int, target: Target
) -> Blocks:
    """Return the sizes of the chosen knobs."""
    sizes = heads, rows, keys, size, value_size
    return blocks_of(choose_knobs(*sizes, target), *sizes, target)


def _score_tile(vectors: int, keys: int, size: int, target: Target) -> tuple[Tile, float]:
    """Return the tile of keys by vectors of rows, and the cycles of a product of it.

    The vectors stay in the first-level cache, and one that takes part twice is computed twice.
    """
    kernel = replace(fma(target), most_vectors=8, from_l1=True)

    def cost(tile: Tile) -> float:
        products = tile.rows * tile.vectors
        steps = ceil(vectors / tile.vectors) * ceil(keys / tile.rows)
        begin = target.core.costs.loop_cycles / (products * size)
        return steps * products / (vectors * keys) * (kernel.cycles(tile) + begin)

    best = choose_tile(kernel, keys, vectors, cost=cost)
    return best, cost(best)


def _value_tile(rows: int, size: int, in_chunks: bool, target: Target) -> tuple[Tile, float]:
    """Return the tile of rows by vectors of the value, and the cycles of a product of it.

    It divides the rows, so that no sum is taken twice, and with `in_chunks` the value; else the
    last tile of a row may begin early.
    """
    kernel = fma(target)
    lanes = _lanes_along(size, in_chunks, target)
    blocks = ceil(size / lanes)

    def legal(tile: Tile) -> bool:
        fits = blocks % tile.vectors == 0 if in_chunks else tile.vectors * lanes <= size
        return rows % tile.rows == 0 and fits

    def cost(tile: Tile) -> float:
        computed = ceil(size / (tile.vectors * lanes)) * tile.vectors * lanes
        return kernel.cycles(tile) * computed / size

    best = choose_tile(kernel, rows, blocks, legal=legal, cost=cost)
    return best, cost(best)
