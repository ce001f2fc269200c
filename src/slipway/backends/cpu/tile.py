"""Register tiles: how many accumulators of a kernel fit a target, and which shape they take.

The inner loop of a convolution or matrix product keeps `rows` x `vectors` accumulators in
registers; each step loads `vectors` vectors of weights, broadcasts `rows` values of data, and does
rows * vectors multiply-adds.  Its speed is bound by the multiply-add units as long as loads are
rarer than multiply-adds and there are enough independent accumulators to cover their latency.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import TYPE_CHECKING

from slipway.backends.strategy import Knobs, Space
from slipway.relay.dims import is_open, least, usual

if TYPE_CHECKING:
    from slipway.target import Target


@dataclass(frozen=True)
class Tile(Knobs):
    """`rows` output positions by `vectors` vectors of output channels."""

    rows: int
    vectors: int


def vector_registers(target: Target) -> int:
    """Return the number of vector registers that a tile may fill.

    Before AVX an instruction overwrites one of its operands: a product takes a register to itself.
    Engines of WebAssembly keep one for themselves.
    """
    arch = target.arch
    if arch.startswith("x86"):
        features = target.features
        return 32 if "avx512f" in features else 16 if "avx" in features else 15
    if arch.startswith(("aarch64", "arm64", "riscv")):
        return 32
    return 15 if _is_wasm(target) else 16


def most_rows(vectors: int, target: Target) -> int:
    """Return the rows of the largest tile with `vectors` vectors, at least 1.

    Its sums, its weights and one broadcast value are in registers.  Engines of WebAssembly load all
    values of a step before they multiply, and want a register for a product unless it is fused.
    """
    registers = vector_registers(target)
    if not _is_wasm(target):
        return max(1, (registers - 1 - vectors) // vectors)
    product = 0 if target.has_feature("relaxed-simd") else 1
    return max(1, (registers - vectors - product) // (vectors + 1))


def _is_wasm(target: Target) -> bool:
    return target.parsed_triple.table == "wasm"


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


def step_cost(rows: int, vectors: int, target: Target, from_l1: bool = False) -> float:
    """Return the cycles of one step of a tile, for each of its multiply-adds.

    Its weights come from the second-level cache, where a panel of them lies; from the first if
    `from_l1`.
    """
    core, bits = target.core, max(32, target.vector_bits)
    products, loads = rows * vectors, rows + vectors
    streamed = 0 if from_l1 else vectors * bits / 8 / core.l2_stream_bytes
    multiplying = products * bits / core.fma_bits
    cycles = max(multiplying, loads * bits / core.load_bits, core.fma_latency, streamed)
    return (cycles + core.costs.load_cycles * loads) / products


def tiles_in_registers(
    positions: int, chunks: int, target: Target, width: int = 1
) -> Iterator[Tile]:
    """All tiles whose sums, weights and one broadcast value fit the registers.

    A chunk is `width` registers wide; `Tile.vectors` counts chunks.
    """
    for vectors in range(1, max(1, min(4 // width, chunks)) + 1):
        for rows in range(1, max(1, min(positions, most_rows(vectors * width, target))) + 1):
            yield Tile(rows, vectors)


def tile_space(positions: int, chunks: int, target: Target, width: int = 1) -> Space:
    """Return the sides that a tile may have; a tile that spills registers is slow, not wrong."""
    registers = vector_registers(target)
    return {
        "rows": range(1, max(1, min(positions, registers)) + 1),
        "vectors": range(1, max(1, min(chunks, 4)) + 1),
    }


def choose_tile(
    positions: int, chunks: int, target: Target, width: int = 1, divides: bool = False
) -> Tile:
    """Choose the tile for `positions` output positions in a row and `chunks` channel blocks.

    The one whose steps cost least for all the work, that of last tiles that overlap the ones before
    included (``split(..., tail="shift")``).  A block is `width` registers wide.  With `divides`,
    the blocks of a tile divide all blocks.  Where the positions are open, a tile has no more rows
    than there are positions at least, so that its last one may overlap the one before.
    """
    if is_open(positions):
        positions = max(1, least(positions))

    def cost(tile: Tile) -> float:
        steps = -(-positions // tile.rows) * -(-chunks // tile.vectors)
        each = step_cost(tile.rows, tile.vectors * width, target)
        return steps * tile.rows * tile.vectors * each

    tiles = tiles_in_registers(positions, chunks, target, width)
    return min((t for t in tiles if not divides or chunks % t.vectors == 0), key=cost)


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
    fewest = min(tiles, -(-data_bytes // int(room)))
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
