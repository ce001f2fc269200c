"""Register tiles: how many sums of a kernel fit the registers, and which shape they take.

The inner loop of a product keeps `rows` x `vectors` sums in registers; each step loads vectors of
weights and values of data, and multiplies.  How many registers that leaves for sums, and how long a
step takes, are facts of the instruction that multiplies: a `MicroKernel` holds them, one function
for each way to multiply makes it from the target, and `choose_tile` takes the tile that is fastest:

- `fma`: a vector by one broadcast value, also by a word of several values (dot products);
- `lane_indexed_fma`: a vector by each lane of another: one load brings a group of a row's values;
- `mmla`: two small matrices, whose product is a tile of 2 by 2 sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway.backends.strategy import Knobs, Space
from slipway.relay.dims import is_open, lower_bound, usual

if TYPE_CHECKING:
    from slipway.target import Target

GROUP = 4  # values of a row that are loaded together, for lane-indexed FMA
SIDE = 2  # of the tiles of sums that instructions on matrices (MMLA) make
PAIR = 2  # steps of a sum, or vectors, whose weights one instruction loads


@dataclass(frozen=True)
class Tile(Knobs):
    """`rows` output positions by `vectors` vectors of output channels."""

    rows: int
    vectors: int


@dataclass(frozen=True)
class MicroKernel:
    """One way to multiply on `target`: what a step of its tiles holds in registers and takes.

    - `width`: registers of a chunk of columns, contiguous weights; tiles count chunks.
    - `side`: rows of a register of sums.
    - `held`: registers of each `side` rows of data in a step; with 0 a row's value is forgotten
      before the next is loaded.
    - `weights`: registers of weights that are held together; None: all of a step.
    - `others`: registers for broadcast values, products and what the instruction itself needs.
    - `most_vectors`, `most_rows`: of a tile, in registers and in rows.
    - `row_loads`: instructions that load or pack a row of data, for each step.
    - `pairs`: loads bring two vectors of contiguous weights, or one for two steps; with `far` those
      of other chunks, which are addressed apart, come one by one.
    - `counted`: other instructions of a step.  None where units that multiply and load are what a
      step waits for, and their latency; else instructions are, of all kinds alike.
    - `from_l1`: weights come from the first-level cache, not from a panel in the second.
    - `bits`: of its vectors, where they are narrower than the target's.
    - `row_bytes`: between rows of data in memory, of which the first-level cache keeps a line each;
      0 where they lie together.
    """

    target: Target
    width: int = 1
    side: int = 1
    held: int = 0
    weights: int | None = None
    others: int = 1
    most_vectors: int = 4
    most_rows: int | None = None
    row_loads: float = 1
    pairs: bool = False
    far: bool = False
    counted: int | None = None
    from_l1: bool = False
    bits: int = 0
    row_bytes: int = 0

    def registers(self, tile: Tile) -> int:
        """Return the registers of a step."""
        across, high = tile.vectors * self.width, tile.rows // self.side
        weights = across if self.weights is None else self.weights
        return high * (across + self.held) + weights + self.others

    def most_steps(self, tile: Tile, steps: int) -> int:
        """Return how many of `steps` are unrolled: with `held`, those whose operands all fit."""
        if not self.held:
            return steps
        operands = tile.rows // self.side * self.held + tile.vectors * self.width
        left = vector_registers(self.target) - self.registers(tile)
        return max(1, min(steps, 1 + left // operands))

    def tiles(self, rows: int, chunks: int) -> Iterator[Tile]:
        """All tiles of `rows` by `chunks` or less that fit the registers; at least the smallest."""
        room, side = vector_registers(self.target), self.side
        highest = min(-(-rows // side) * side, self.most_rows or rows * side)
        yield Tile(side, 1)
        for vectors in range(1, max(1, min(self.most_vectors // self.width, chunks)) + 1):
            for height in range(side, highest + 1, side):
                tile = Tile(height, vectors)
                if self.registers(tile) > room or self.evicts(tile):
                    break
                yield tile

    def evicts(self, tile: Tile) -> bool:
        """Return whether lines of a tile's rows drive each other out of the first-level cache."""
        return self.row_bytes > 0 and not self.target.core.fits_ways(tile.rows, self.row_bytes)

    def cycles(self, tile: Tile) -> float:
        """Return the cycles of one step of a tile, for each of its vectors of products."""
        target, across = self.target, tile.vectors * self.width
        if self.counted is None:
            return step_cost(tile.rows, across, target, self.from_l1, self.bits)
        units = max(1, target.core.fma_bits // max(32, target.vector_bits))
        loads = tile.rows * self.row_loads + self._weight_loads(tile)
        step = tile.rows // self.side * across + loads + self.counted
        return step / units / (tile.rows * across)

    def _weight_loads(self, tile: Tile) -> float:
        if not self.pairs:
            return tile.vectors * self.width
        adjacent = 1 / PAIR if self.width == 1 else -(-self.width // PAIR)
        return adjacent + (tile.vectors - 1) * (self.width if self.far else adjacent)

    def all_cycles(self, tile: Tile, rows: int, chunks: int) -> float:
        """Return the cycles of one step of all tiles that cover `rows` by `chunks`."""
        tiles = -(-rows // tile.rows) * -(-chunks // tile.vectors)
        return tiles * tile.rows * tile.vectors * self.width * self.cycles(tile)


def fma(target: Target, width: int = 1, temporaries: int = 0, row_bytes: int = 0) -> MicroKernel:
    """Return the micro-kernel of vectors times broadcast values, of rows `row_bytes` apart.

    An instruction that takes words of several values may need `temporaries`.  Engines of
    WebAssembly load all values of a step before they multiply, and want a register for a product
    unless it is fused.
    """
    if not _is_wasm(target):
        return MicroKernel(target, width, others=1 + temporaries, row_bytes=row_bytes)
    product = 1 if prefers_long_loops(target) else 0
    others = max(product, temporaries)
    return MicroKernel(target, width, held=1, others=others, row_bytes=row_bytes)


def lane_indexed_fma(target: Target, width: int = 1) -> MicroKernel:
    """Return the micro-kernel of vectors times lanes of others.

    With more weights in a step than a quarter of the registers, LLVM loads them all before it
    multiplies, and spills.
    """
    return MicroKernel(
        target, width, held=1, weights=2, others=0, most_vectors=vector_registers(target) // 4,
        row_loads=1 / GROUP, pairs=True, far=True, counted=1,
    )  # fmt: skip


def mmla(target: Target) -> MicroKernel:
    """Return the micro-kernel of matrices; a chunk is a vector of results, two MMLA tiles wide.

    Rows of data are packed in registers, for two steps at a time.
    """
    return MicroKernel(
        target, SIDE, side=SIDE, held=PAIR, weights=PAIR, others=2,
        most_vectors=vector_registers(target), most_rows=8, pairs=True, counted=2,
    )  # fmt: skip


def all_rows(target: Target, spare: int) -> MicroKernel:
    """Return the micro-kernel of tiles with all of few rows, as wide as registers are left.

    All but `spare` registers hold sums: those are for the rows' values and a vector of columns.
    """
    return MicroKernel(
        target, weights=1, others=spare - 1, most_vectors=vector_registers(target), from_l1=True
    )


def choose_tile(
    kernel: MicroKernel,
    rows: int,
    chunks: int,
    *,
    legal: Callable[[Tile], bool] = lambda tile: True,
    cost: Callable[[Tile], Any] | None = None,
) -> Tile:
    """Choose the tile for `rows` output positions in a row and `chunks` chunks of channels.

    Of those that are `legal`, the one whose steps take least for all the work, that of last tiles
    that overlap the ones before included (``split(..., tail="shift")``); or that of least `cost`.
    Where the rows are open, a tile has no more than there are at least, so that its last one may
    overlap the one before; it is chosen for sizes from all of the range.
    """
    sizes = sizes_of(rows)
    price = cost or (lambda tile: _relative(kernel, tile, sizes, chunks))
    return min((t for t in kernel.tiles(sizes[0], chunks) if legal(t)), key=price)


def follows_lines(rows: int, width: int) -> bool:
    """Return whether tiles of `rows` positions begin with lines of an image, or end with them.

    Others would cross its edges at places that differ from tile to tile, so that each position
    has an address of its own.
    """
    return rows % width == 0 or width % rows == 0


def choose_line_tile(
    kernel: MicroKernel,
    lines: int,
    width: int,
    chunks: int,
    *,
    legal: Callable[[Tile], bool] = lambda tile: True,
) -> Tile:
    """Choose the tile for `lines` of `width` positions each, of whole lines or within one.

    Where no tile of whole lines divides them, each line has last tiles that overlap.
    """
    positions = lines * width

    def price(tile: Tile) -> float:
        if follows_lines(tile.rows, width):
            return kernel.all_cycles(tile, positions, chunks)
        return lines * kernel.all_cycles(tile, width, chunks)

    def fits(tile: Tile) -> bool:
        return legal(tile) and (tile.rows <= width or tile.rows % width == 0)

    return choose_tile(kernel, positions, chunks, legal=fits, cost=price)


def sizes_of(rows: Any) -> tuple[int, ...]:
    """Return the numbers of rows that a tile is chosen for, the smallest first."""
    if not is_open(rows):
        return (rows,)
    low = max(1, lower_bound(rows))
    high = max(low, usual(rows))
    return tuple(sorted({low + (high - low) * i // 4 for i in range(5)}))


def _relative(kernel: MicroKernel, tile: Tile, sizes: tuple[int, ...], chunks: int) -> float:
    """Return the cycles of a step of all tiles, for each row; the mean over `sizes`."""
    if len(sizes) == 1:
        return kernel.all_cycles(tile, sizes[0], chunks)
    return sum(kernel.all_cycles(tile, rows, chunks) / rows for rows in sizes)


def choose_kernel(
    kernels: Iterable[MicroKernel], rows: int, vectors: int
) -> tuple[MicroKernel, Tile]:
    """Choose among micro-kernels of several widths, and the tile, for `rows` by `vectors`."""
    rows = sizes_of(rows)[0]

    def best(kernel: MicroKernel) -> tuple[float, Tile]:
        chunks = -(-vectors // kernel.width)
        tile = choose_tile(kernel, rows, chunks)
        return kernel.all_cycles(tile, rows, chunks), tile

    found = [(kernel, *best(kernel)) for kernel in kernels]
    kernel, _, tile = min(found, key=lambda entry: entry[1])
    return kernel, tile


def dividing(chunks: int) -> Callable[[Tile], bool]:
    """Return what asks of a tile whether its chunks divide `chunks`."""
    return lambda tile: chunks % tile.vectors == 0


def whole_groups(chunks: int, groups: int) -> Callable[[Tile], bool]:
    """Return what asks of a tile whether it is in one of several groups of `chunks`."""
    return dividing(chunks if groups > 1 else 0)


def widest_tile(kernel: MicroKernel, rows: int, vectors: int) -> Tile:
    """Choose the tile of all `rows`: fewest parts of the `vectors`, of about equal lengths."""
    return choose_tile(
        kernel, rows, vectors,
        legal=lambda tile: tile.rows == rows,
        cost=lambda tile: (-(-vectors // tile.vectors), tile.vectors),
    )  # fmt: skip


LANE_BLOCKS = (3, 2)  # vectors of weights in a block beside whole tiles whose rows are lanes


def lane_rows(target: Target) -> int:
    """Return the rows of a tile of lane-indexed FMA whose rows are the lanes of vectors.

    Whole vectors of rows, as many as leave the sums of the widest block of weights in registers,
    beside a step's rows and weights: eight with NEON's 32 registers of four lanes.
    """
    lanes, widest = max(1, target.vector_bits // 32), max(LANE_BLOCKS)
    each = lanes * widest + 1
    return max(1, (vector_registers(target) - widest) // each) * lanes


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


def _is_wasm(target: Target) -> bool:
    return target.parsed_triple.table == "wasm"


def prefers_long_loops(target: Target) -> bool:
    """Return whether instructions are what a step of a tile waits for, those of its loop included.

    So it is in engines of WebAssembly, which unroll loops themselves, unless products are fused.
    """
    return _is_wasm(target) and not target.has_feature("relaxed-simd")


def step_cost(
    rows: int, vectors: int, target: Target, from_l1: bool = False, bits: int = 0
) -> float:
    """Return the cycles of one step of a tile, for each of its multiply-adds.

    Its weights come from the second-level cache, where a panel of them lies; from the first if
    `from_l1`.  `bits` are those of a vector, 0: the target's.
    """
    core, whole = target.core, max(32, target.vector_bits)
    wide = bits or whole

    def taken(at_once: int) -> float:
        # Two instructions begin in a cycle: where one whole vector fills the units, two halves do.
        return min(whole, max(wide, at_once // 2)) / at_once

    products, loads = rows * vectors, rows + vectors
    streamed = 0 if from_l1 else vectors * wide / 8 / core.l2_stream_bytes
    multiplying = products * taken(core.fma_bits)
    # Sums beyond the registers, of which two hold factors, are loaded and stored in each step.
    spilled = 2 * max(0, products + 2 - vector_registers(target))
    moved = (loads + spilled) * taken(core.load_bits)
    cycles = max(multiplying, moved, core.fma_latency, streamed)
    return (cycles + core.costs.load_cycles * (loads + spilled)) / products


def tile_space(positions: int, chunks: int, target: Target, width: int = 1) -> Space:
    """Return the sides that a tile may have; a tile that spills registers is slow, not wrong."""
    registers = vector_registers(target)
    return {
        "rows": range(1, max(1, min(positions, registers)) + 1),
        "vectors": range(1, max(1, min(chunks, 4)) + 1),
    }


def fmas_in_flight(target: Target) -> int:
    """Return how many multiply-adds of vectors a core works on at once."""
    units = max(1, target.core.fma_bits // max(32, target.vector_bits))
    return units * target.core.fma_latency
