"""Products on a matrix unit (`te.tiles`): which grid of tiles, and how its stages are scheduled.

Positions of an image, or rows of a matrix, are the rows of a tile of data: `height` neighbours
along x for each; a grid has `across` adjacent tiles on `lines` lines.  Its columns are vectors
of 16 channels.  What follows a product reads the sums where the grid has stored them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.strategy import Knobs, Space
from slipway.ir.instructions.tiles import INSTRUCTIONS, ROW_BYTES, ROWS, WORD, TileInstruction
from slipway.te.hardware import byte_of
from slipway.te.tiles import Operand, TileGrid, tile_intrinsic

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.target import Target

LANES = ROW_BYTES // WORD  # channels of a tile of sums


@dataclass(frozen=True)
class GridKnobs(Knobs):
    """`lines` x `across` tiles of `height` positions, by `vectors` of channels, `words` a step."""

    lines: int
    across: int
    height: int
    vectors: int
    words: int

    @property
    def grid(self) -> TileGrid:
        """The grid of these knobs."""
        return TileGrid(self.lines * self.across, self.vectors, self.height, self.words)


def tile_instruction(data: str, weight: str, target: Target) -> TileInstruction | None:
    """Return the instruction of `target` that multiplies tiles of these types."""
    if not target.is_by_llvm or target.vector_bits < 512:
        return None
    for entry in INSTRUCTIONS.values():
        if (entry.a_dtype, entry.b_dtype) == (data, weight) and not entry.missing(target):
            return entry
    return None


def words_of(steps: int) -> int:
    """Return the words of a step for `steps` of all: as many as a tile has, or the next divisor."""
    return max(w for w in range(1, ROWS + 1) if steps % w == 0)


def grids(size: tuple[int, int], blocks: int, words: int, together: int) -> Iterator[GridKnobs]:
    """All legal grids for (lines, positions) of an image and blocks of channels.

    `together` blocks are contiguous, and not divided.
    """
    high, wide = size
    for vectors in _vectors(blocks, together):
        for lines in range(1, min(high, 6) + 1):
            for across in range(1, 7):
                if not TileGrid(lines * across, vectors, 1, words).fits:
                    continue
                for height in range(1, min(ROWS, wide // across) + 1):
                    yield GridKnobs(lines, across, height, vectors, words)


def _vectors(blocks: int, together: int) -> list[int]:
    return [v for v in (1, 2, 3) if v % together == 0 and blocks % v == 0]


def choose_grid(
    size: tuple[int, int], blocks: int, words: int, target: Target, together: int = 1
) -> GridKnobs:
    """Choose the grid whose steps take least for all positions and channels."""

    def cost(knobs: GridKnobs) -> tuple[float, int]:
        return all_cycles(knobs, size, blocks, target), -knobs.height

    return min(grids(size, blocks, words, together), key=cost)


def all_cycles(knobs: GridKnobs, size: tuple[int, int], blocks: int, target: Target) -> float:
    """Return the cycles of one step of all grids; last ones overlap those before."""
    costs, grid = target.core.costs, knobs.grid
    count = (
        -(-size[0] // knobs.lines)
        * -(-size[1] // (knobs.across * knobs.height))
        * -(-blocks // knobs.vectors)
    )
    each = costs.tile_cycles + costs.tile_row_cycles * knobs.height
    loading = (grid.rows + grid.columns) * costs.tile_load_cycles
    # Loads from the second-level cache are not hidden behind products entirely.
    return count * (max(grid.rows * grid.columns * each, loading) + loading / 4)


def grid_space(size: tuple[int, int], blocks: int, steps: int, together: int = 1) -> Space:
    """Return the legal knobs."""
    high, wide = size
    return {
        "lines": range(1, min(high, 6) + 1),
        "across": range(1, 7),
        "height": range(1, min(wide, ROWS) + 1),
        "vectors": _vectors(blocks, together),
        "words": [w for w in range(1, ROWS + 1) if steps % w == 0],
    }


def joins_taps(window: int, dilation: int, steps: int, whole: bool) -> bool:
    """Return whether a step takes the taps of a line of the window together.

    They are neighbours in memory where a position has all its channels in one place (`whole`).
    """
    return whole and window > 1 and dilation == 1 and window * steps <= ROWS


def product_intrinsic(
    entry: TileInstruction,
    knobs: GridKnobs,
    strides: Sequence[int],
    taps: int,
    together: int = 1,
    ahead: int = 0,
    window: int = 1,
    in_words: bool = False,
) -> te.TensorIntrin:
    """Return the intrinsic for sums ([y,] x, o, block, lane) of data ([y,] x, c).

    The weight is (o, 1.., words, block * lane, depth), with an axis for each of the `taps` of a
    window that does not vary; it is prefetched `ahead` rows.  `strides` has that of x, and before
    it that of y where there are lines.  With a `window`, a step has so many neighbours along x,
    which are an axis of the weight before the words.  Data `in_words` is int32 of four bytes.
    """
    depth, wide, columns = entry.depth, knobs.across * knobs.height, together * LANES
    sx, step, joined = strides[-1], strides[0], window > 1
    grid = replace(knobs.grid, words=knobs.words * window)
    lines = [(knobs.lines - 1) * step + 1] if len(strides) > 1 else []
    channels = knobs.words * (1 if in_words else depth)
    a = te.placeholder(
        (*lines, (wide - 1) * sx + window, channels), "int32" if in_words else entry.a_dtype,
        name="a",
    )  # fmt: skip
    ones, groups = (1,) * taps, knobs.vectors // together
    neighbours = (window,) if joined else ()
    b = te.placeholder(
        (groups, *ones, *neighbours, knobs.words, columns, depth), entry.b_dtype, name="b"
    )
    kx, word, part = (
        te.reduce_axis((0, n), name=x)
        for n, x in ((window, "kx"), (knobs.words, "word"), (depth, "part"))
    )
    zeros = (0,) * taps

    def product(*i: PrimExpr) -> Any:
        *position, o, block, lane = i
        at = [p * s for p, s in zip(position, strides, strict=True)]
        tap = (kx,) if joined else ()
        if joined:
            at[-1] = at[-1] + kx
        if in_words:
            left = byte_of(a(*at, word), part.var)
        else:
            left = a(*at, word * depth + part).astype(entry.c_dtype)
        right = b(o, *zeros, *tap, word, block * LANES + lane, part).astype(entry.c_dtype)
        return te.sum(left * right, axis=[*tap, word, part])

    counts = [knobs.lines] if lines else []
    meaning = te.compute((*counts, wide, groups, together, LANES), product, name="c")

    def data_first(i: int) -> Sequence[int]:
        line, tile = divmod(i, knobs.across)
        return *([line * step] if lines else []), tile * knobs.height * sx, 0

    def sums_first(i: int, j: int) -> Sequence[int]:
        line, tile = divmod(i, knobs.across)
        o, block = divmod(j, together)
        return *([line] if lines else []), tile * knobs.height, o, block, 0

    def weight_first(j: int) -> Sequence[int]:
        o, block = divmod(j, together)
        return o, *zeros, *((0,) if joined else ()), 0, block * LANES, 0

    known = {a: (channels, 1), b: (knobs.words * columns * depth, columns * depth, depth, 1)}
    return tile_intrinsic(
        entry, grid, meaning, Operand(data_first, len(lines), sx),
        Operand(weight_first, 1 + taps + joined), sums_first, len(lines), ahead,
        known if joined else {},
    )  # fmt: skip


def multiply_tiles(
    stage: te.Stage,
    knobs: GridKnobs,
    around: Sequence[te.IterVar],
    grid: Sequence[te.IterVar],
    words: Sequence[te.IterVar],
    part: te.IterVar,
    intrinsic: te.TensorIntrin,
) -> None:
    """Order the loops of the sums: `around`, those of a grid, and of a reduction in words.

    `words` may have the taps of a line before them.
    """
    *taps, word = words
    steps, inside = stage.split(word, factor=knobs.words)
    stage.reorder(*around, steps, *grid, *taps, inside, part)
    stage.tensorize(grid[0], intrinsic)


def rows_ahead(positions: int, together: int, target: Target) -> int:
    """Return how many rows of weights to prefetch; 0 where they are read again and again.

    A row has the pairs, or fours, of a block of channels.
    """
    costs = target.core.costs
    if positions > costs.streamed_positions:
        return 0
    return int(costs.tile_ahead_bytes) // (ROW_BYTES * together)


def all_panels_first(weight_bytes: int, target: Target) -> bool:
    """Return whether a grid's data is multiplied by all weights before the next one's.

    They are read once for each grid then, which the first-level cache allows where they fit it,
    and what a grid gives lies together.
    """
    return 2 * weight_bytes <= target.core.l1_bytes
