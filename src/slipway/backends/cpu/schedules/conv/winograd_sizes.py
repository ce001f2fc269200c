"""Tiles and blocks of a Winograd convolution of open size, of which its kernel takes the best.

A block of tiles is padded to whole register tiles, and an image to whole blocks, so that what suits
one size wastes up to half of the work at another::

    20 rows of tiles by 20 in blocks of 2 rows, register tiles of 13:  40 tiles take the time of 52
                                                of 10:                 40 tiles

A few pairs of both are chosen so that, over the whole range, the best of them for each size takes
little more than the one that a build for that size would choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from slipway.backends.cpu.tile import MicroKernel, Tile
from slipway.ir import ops
from slipway.relay.dims import lower_bound, usual

if TYPE_CHECKING:
    from slipway.target import Target

MOST = 4  # kernels of one convolution
GAIN = 0.02  # of the mean time, for which one more is worth its code
UNIT = 64  # of costs in integers, for a tile in the fastest register tile


@dataclass(frozen=True)
class BlockCosts:
    """What blocks of tiles take: the time of all cores, padding included."""

    kernel: MicroKernel
    target: Target
    chunks: int  # of output channels
    elements: int  # of a tile, transformed, in all channels
    rows: int  # of tiles in the largest image

    def cost(self, tile: Tile, block_rows: int, rows: Any, columns: Any) -> Any:
        """Return what an image of so many tiles takes: an integer, or a formula of open ones."""
        costs = self.target.core.costs
        fitting = self.target.core.l2_bytes * costs.winograd_l2_share // (4 * self.elements)
        whole = block_rows >= self.rows

        def block(of_rows: Any) -> Any:
            held = of_rows * columns
            padded = _ceil(held, tile.rows) * tile.rows
            each = padded * self._rate(tile) + UNIT * costs.winograd_tiles // 4
            if not whole or fitting >= costs.winograd_tiles:
                each = each * (1 + held // (int(fitting) + 1))  # read from beyond the cache again
            return each

        if whole:
            return sum(self.target.core_counts) * block(rows)
        # One core takes as much less as the last block has rows less.
        parts, each = _ceil(rows, block_rows), block(block_rows)
        less = each - block(rows - (parts - 1) * block_rows)
        times = sum(_ceil(parts, n) * n for n in self.target.core_counts)
        return times * each - (less if 1 in self.target.core_counts else 0)

    def _rate(self, tile: Tile) -> int:
        """Return the time of one tile in a full register tile, all channels together."""
        fastest = min(map(self._cycles, self.kernel.tiles(UNIT, self.chunks)))
        return round(UNIT * self._cycles(tile) / fastest)

    def _cycles(self, tile: Tile) -> float:
        return self.kernel.all_cycles(tile, tile.rows, self.chunks) / tile.rows


def _ceil(extent: Any, step: int) -> Any:
    return (extent + (step - 1)) // step


def sample_sizes(height: Any, width: Any, m: int) -> list[tuple[int, int]]:
    """Return rows and columns of tiles from all of the ranges, small ones as well as large ones."""

    def along(extent: Any) -> list[int]:
        low, high = (max(1, -(-end // m)) for end in (lower_bound(extent), usual(extent)))
        even = {low + (high - low) * i // 6 for i in range(7)}
        doubled = {low << i for i in range(6) if low << i < high}
        return sorted(even | doubled)

    return list(product(along(height), along(width)))


Candidate = tuple[Tile, int]  # a register tile, and the rows of a block


def best_together(
    costs: BlockCosts,
    sizes: Sequence[tuple[int, int]],
    choose: Callable[[int, int], Candidate],
) -> list[Candidate]:
    """Return the candidates that serve all `sizes`, each of which has one of its own to begin with.

    One after the other, that which brings the mean of the times nearest to that of their own.
    """
    own = list(dict.fromkeys(choose(*size) for size in sizes))
    table = {c: [costs.cost(*c, *size) for size in sizes] for c in own}
    shortest = [min(times) for times in zip(*table.values(), strict=True)]

    def mean(chosen: Sequence[Candidate]) -> float:
        best = map(min, zip(*(table[c] for c in chosen), strict=True))
        return float(sum(b / a for a, b in zip(shortest, best, strict=True)) / len(sizes))

    found: list[Candidate] = []
    while len(found) < MOST:
        following = min(own, key=lambda c: mean([*found, c]))
        if found and mean(found) - mean([*found, following]) < GAIN:
            break
        found.append(following)
    return found


def tiles_along(extent: Any, m: int) -> Any:
    """Return the number of tiles along an axis of results, as an int64 formula."""
    formula = ops.as_expr(getattr(extent, "formula", extent), "int32")
    return _ceil(ops.cast(formula, "int64"), m)
