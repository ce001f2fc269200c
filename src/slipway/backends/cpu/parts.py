"""How the work of a kernel is cut for caches and cores: parts, tasks, what is fetched ahead.

Sizes follow from the caches of the target's core, and from the numbers of cores it may have; how
many threads there are is decided when the kernel runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import TYPE_CHECKING

from slipway.relay.dims import usual

if TYPE_CHECKING:
    from slipway.backends.cpu.tile import Tile
    from slipway.target import Target


def prefetch_steps(lanes: int, target: Target) -> int:
    """Return the prefetch distance of weights in steps of the inner loop; 0: no prefetch.

    A step reads `lanes` float32 of a panel.  Where that is a whole line, a core is through with
    the lines of a panel sooner than its own prefetcher brings the next ones from memory; with
    shorter vectors it is not, and asking only takes instructions.
    """
    core = target.core
    return core.costs.ahead_bytes // core.line_bytes if 4 * lanes >= core.line_bytes else 0


def worth_sharing(products: int, target: Target, weight_bytes: int = 0) -> bool:
    """Return whether several cores finish so many multiply-adds earlier than one.

    Not where the target has one.  Shorter work is over before another core has begun and has
    fetched its data from the first one.  `weight_bytes` are those that are read once: a product
    with a single row waits for them.
    """
    core = target.core
    cycles = max(usual(products) * 32 / core.fma_bits, weight_bytes / core.l2_stream_bytes)
    return target.num_cores > 1 and cycles >= core.costs.share_cycles


def positions_per_part(
    positions: int, data_bytes: int, weight_bytes: int, panels: int, tile: Tile, target: Target
) -> int:
    """Return how many output positions are computed for all channels before the next ones.

    Every part reads all weights; every panel of weights reads the data of its part, for which the
    second-level cache is the place if it fits.  The number of parts is the one for which the least
    must come from beyond that cache, or some more, where fewer tiles overlap then.  Cores share all
    tiles of all parts, whose order they keep.
    """
    core = target.core
    room = core.costs.l2_share * core.l2_bytes

    def traffic(parts: int) -> float:
        fits = data_bytes / parts <= room
        return parts * weight_bytes + data_bytes * (1 if fits else panels)

    def cost(each: int) -> tuple[float, int]:
        """Return the tiles of all parts, with what the first reading of the panels takes."""
        start = core.costs.panel_positions / tile.rows
        return -(-tiles // each) * (each + start), -each

    tiles = -(-positions // tile.rows)
    fewest = max(1, min(tiles, -(-data_bytes // int(room))))
    parts = min((1, fewest), key=traffic)
    sizes = {-(-tiles // p) for p in range(parts, 2 * parts + 1)} if parts > 1 else {tiles}
    return min(positions, min(sizes, key=cost) * tile.rows)


def time_of_all(tasks: int, counts: Sequence[int]) -> int:
    """Return the time that `tasks` equal tasks take of all cores, the idle ones too.

    The sum over the numbers of cores in `counts` (`Target.core_counts`); the unit is a task.
    """
    return sum(-(-tasks // cores) * cores for cores in counts)


def rows_per_part(height: int, planes: int, target: Target, each: int = 1) -> int:
    """Return how many rows of a plane are one task: all, where the planes divide among the cores.

    Each part copies the padding of its rows again, so that it has eight rows at least.  Every core
    counts as `each`, for tasks of unequal length.
    """
    counts = [each * cores for cores in target.core_counts]

    def cost(parts: int) -> tuple[int, int]:
        rows = -(-height // parts) + target.core.costs.task_rows
        return time_of_all(planes * parts, counts) * rows, parts

    most = max(1, min(height // 8, 2 * counts[-1]))
    return -(-height // min(range(1, most + 1), key=cost))


def causes_conflict_misses(chunks: int, plane: Sequence[int], target: Target) -> bool:
    """Return whether a few positions of all channel blocks are too much for the first-level cache.

    Half of its ways may hold data: weights pass through it.
    `plane` is the (height, width, block) between one channel block and the next.  Planes whose
    distance is a multiple of many lines fall on few of the cache's sets, and evict each other.
    """
    core = target.core
    all_sets, ways = core.l1_sets, max(1, core.l1_ways // 2)
    distance = 4 * prod(plane) // core.line_bytes
    lines_each = 4  # that a tile touches of one plane
    lines = chunks * lines_each
    sets = min(all_sets, all_sets // gcd(distance, all_sets) * lines_each)
    return lines >= ways * all_sets or lines > ways * sets
