"""Tiles and blocks of a Winograd convolution of open size, of which its kernel takes the best.

A block of tiles is padded to half a register tile, and an image to whole blocks, so that what suits
one size wastes up to half of the work at another::

    20 rows of tiles by 20 in blocks of 2 rows, register tiles of 13:  40 tiles take the time of 46
                                                of 10:                 40 tiles

A few pairs of both are chosen so that, over the whole range, the best of them for each size takes
little more than the one that a build for that size would choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from slipway.backends.cpu.knobs import vector_lanes
from slipway.backends.cpu.tile import MicroKernel, Tile
from slipway.ir import ops
from slipway.relay.dims import lower_bound, usual

if TYPE_CHECKING:
    from slipway.target import Target

MOST = 3  # kernels of one convolution, with half a register tile at the end of each block
UNIT = 64  # of costs in integers, for a tile in the fastest register tile


@dataclass(frozen=True)
class BlockCosts:
    """What blocks of tiles take: the time of all cores, padding included."""

    kernel: MicroKernel
    target: Target
    chunks: int  # of output channels
    elements: int  # of a tile, transformed, in all channels
    planes: int  # of a tile, transformed, in one
    rows: int  # of tiles in the largest image

    def cost(self, tile: Tile, block_rows: int, rows: Any, columns: Any) -> Any:
        """Return what an image of so many tiles takes: an integer, or a formula of open ones."""
        costs = self.target.core.costs
        fitting = self.target.core.l2_bytes * costs.winograd_l2_share // (4 * self.elements)
        whole = block_rows >= self.rows

        def block(of_rows: Any) -> Any:
            held = of_rows * columns
            each = _multiplied(held, tile.rows) * self._rate(tile)
            # All of it is written and read again, beyond the cache where it does not fit.
            over = held // (int(fitting) + 1)
            over = _least(over, 1)
            return each + over * held * self._moving + UNIT * costs.winograd_tiles // 4

        if whole:  # as for a known size: tiles are chosen without regard to the cores
            return sum(self.target.core_counts) * block(rows)
        # One core takes as much less as the last block has rows less.
        parts, each = _ceil(rows, block_rows), block(block_rows)
        less = each - block(rows - (parts - 1) * block_rows)
        times = sum(_ceil(parts, n) * n for n in self.target.core_counts)
        made = times * each - (less if 1 in self.target.core_counts else 0)
        # A build for a size has no blocks of fewer tiles, for which the kernel is read so often.
        lacking = costs.winograd_tiles - _least(block_rows * columns, costs.winograd_tiles)
        return made * (1 + lacking)

    @cached_property
    def _moving(self) -> int:
        """Return the time in which a tile and its results are written to memory and read."""
        core, lanes = self.target.core, self.kernel.width * vector_lanes(self.target, "float32")
        outputs = self.chunks * lanes
        multiplying = self.elements * outputs * 32 / core.fma_bits
        moved = 2 * 4 * (self.elements + self.planes * outputs)
        return round(UNIT * moved / (core.l2_stream_bytes / 2) / multiplying)

    def _rate(self, tile: Tile) -> int:
        """Return the time of one tile in a full register tile, all channels together."""
        return round(UNIT * self._cycles(tile) / self._fastest)

    @cached_property
    def _fastest(self) -> float:
        return min(map(self._cycles, self.kernel.tiles(UNIT, self.chunks)))

    def _cycles(self, tile: Tile) -> float:
        return self.kernel.all_cycles(tile, tile.rows, self.chunks) / tile.rows


def _multiplied(tiles: Any, rows: int) -> Any:
    """Return how many tiles the products of so many take: the last of them half a register tile."""
    full, half = tiles // rows, -(-rows // 2)
    return full * rows + _least(_ceil(tiles - full * rows, half) * half, rows)


def _least(one: Any, other: int) -> Any:
    return min(one, other) if isinstance(one, int) else ops.minimum(one, other)


def _ceil(extent: Any, step: int) -> Any:
    return (extent + (step - 1)) // step


def serves_many_sizes(tile: Tile) -> bool:
    """Return whether few tiles are padded for a register tile, whatever an image has of them.

    Eight rows, and half of them at the end, add three tiles at most.  Tiles of 9 to 12 rows, beside
    builds for the size, took 1.10 to 1.17 where these took 1.03 to 1.10.
    """
    return tile.rows & (tile.rows - 1) == 0


def sample_sizes(height: Any, width: Any, m: int) -> list[tuple[int, int]]:
    """Return rows and columns of tiles from all of the ranges, small ones as well as large ones."""

    def along(extent: Any) -> list[int]:
        low, high = (max(1, -(-end // m)) for end in (lower_bound(extent), usual(extent)))
        even = {low + (high - low) * i // 6 for i in range(7)}
        doubled = {low << i for i in range(6) if low << i < high}
        return sorted(even | doubled)

    return list(product(along(height), along(width)))


Candidate = tuple[Tile, int]  # a register tile, and the rows of a block


def tiles_along(extent: Any, m: int) -> Any:
    """Return the number of tiles along an axis of results, as an int64 formula."""
    formula = ops.as_expr(getattr(extent, "formula", extent), "int32")
    return _ceil(ops.cast(formula, "int64"), m)
