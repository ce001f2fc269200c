"""A few knobs of a kernel of open sizes, of which it takes the cheapest for the size it is given.

They are chosen so that, over the whole range, the best of them for each size takes little more
than the one that a build for that size would choose::

    rows of a product     tiles of 8 rows compute     the best of 8, 9, 10 and 11
                 17                            24                              18
                 20                            24                              20
                 33                            40                              33
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from slipway.backends.cpu.tile import MicroKernel, Tile
from slipway.backends.strategy import SizedKnobs
from slipway.ir import ops
from slipway.relay.dims import is_open, lower_bound

MOST = 4  # kernels of one operator
GAIN = 0.015  # of the mean time, for which one more is worth its code
UNIT = 64  # of costs in integers, for a row in the fastest register tile
FEW_ROWS = 8  # from which on tiles are chosen when a kernel runs; below, each size has its version

Size = TypeVar("Size")
Candidate = TypeVar("Candidate")


def best_together(
    cost: Callable[[Candidate, Size], Any],
    sizes: Sequence[Size],
    choose: Callable[[Size], Sequence[Candidate]],
    most: int = MOST,
) -> list[Candidate]:
    """Return the candidates that serve all `sizes`, each of which has its own to begin with.

    One after the other, that which brings the mean of the times nearest to that of their own.
    """
    own = list(dict.fromkeys(c for size in sizes for c in choose(size)))
    table = {c: [cost(c, size) for size in sizes] for c in own}
    shortest = [min(times) for times in zip(*table.values(), strict=True)]

    def mean(chosen: Sequence[Candidate]) -> float:
        best = map(min, zip(*(table[c] for c in chosen), strict=True))
        return float(sum(b / a for a, b in zip(shortest, best, strict=True)) / len(sizes))

    found: list[Candidate] = []
    while len(found) < most:
        following = min(own, key=lambda c: mean([*found, c]))
        if found and mean(found) - mean([*found, following]) < GAIN:
            break
        found.append(following)
    return found


def tiles_by_rows(kernel: MicroKernel, rows: Any, chunks: int) -> list[SizedKnobs]:
    """Return tiles of a product of open `rows` by `chunks` chunks of columns, with what they cost.

    None where there may be so few rows that a tile has all of them, or few as well as many.
    """
    if not is_open(rows) or lower_bound(rows) < FEW_ROWS:
        return []
    many = lower_bound(rows) >= 2 * FEW_ROWS
    if not many:
        if rows.high is None or rows.high >= 2 * FEW_ROWS:
            return []
        kernel = replace(kernel, from_l1=True)  # a panel of weights is read once or twice
    low = 2 * FEW_ROWS if many else lower_bound(rows)
    ends = [low, 2 * low, 4 * low] if many else [low]
    sizes = [end + end * i // FEW_ROWS for end in ends for i in range(FEW_ROWS)]
    tiles = list(kernel.tiles(low, chunks))
    fastest = min(kernel.all_cycles(tile, tile.rows, chunks) / tile.rows for tile in tiles)

    def cost(tile: Tile, count: Any) -> Any:
        each = round(UNIT * kernel.all_cycles(tile, tile.rows, chunks) / fastest)
        return (count + (tile.rows - 1)) // tile.rows * each

    def own(count: int) -> list[Tile]:
        return [min(tiles, key=lambda tile: (cost(tile, count), -tile.rows))]

    formula = ops.cast(ops.as_expr(getattr(rows, "formula", rows), "int32"), "int64")
    found = best_together(cost, sizes, own)
    return [SizedKnobs(tile, cost(tile, formula)) for tile in found]
