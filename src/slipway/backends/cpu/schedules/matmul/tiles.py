"""Products on a matrix unit (`te.tiles`): which grid of tiles, and how its stages are scheduled.

Positions of an image, or rows of a matrix, are the rows of a tile of data: `height` neighbours along
x for each; a grid has `across` tiles side by side on `lines` lines.  Its columns are vectors of 16
channels.  What follows a product reads the sums where the grid has stored them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.strategy import Knobs, Space
from slipway.ir.tiles import INSTRUCTIONS, ROW_BYTES, ROWS, WORD, TileInstruction
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
    if target.kind.name != "llvm" or target.vector_bits < 512:
        return None
    for entry in INSTRUCTIONS.values():
        if (entry.a_dtype, entry.b_dtype) == (data, weight) and not entry.missing(target):
            return entry
    return None


def words_of(steps: int) -> int:
    """Return the words of a step for `steps` of all: as many as a tile has, or the next divisor."""
    return max(w for w in range(1, ROWS + 1) if steps % w == 0)


def grids(size: tuple[int, int], blocks: int, words: int) -> Iterator[GridKnobs]:
    """All legal grids for (lines, positions) of an image and blocks of channels."""
    high, wide = size
    for vectors in (v for v in (1, 2, 3) if blocks % v == 0):
        for lines in range(1, min(high, 6) + 1):
            for across in range(1, 7):
                if not TileGrid(lines * across, vectors, 1, words).fits:
                    continue
                for height in range(1, min(ROWS, wide // across) + 1):
                    yield GridKnobs(lines, across, height, vectors, words)


def choose_grid(size: tuple[int, int], blocks: int, words: int, target: Target) -> GridKnobs:
    """Choose the grid whose steps take least for all positions and channels."""

    def cost(knobs: GridKnobs) -> tuple[float, int]:
        return all_cycles(knobs, size, blocks, target), -knobs.height

    return min(grids(size, blocks, words), key=cost)


def all_cycles(knobs: GridKnobs, size: tuple[int, int], blocks: int, target: Target) -> float:
    """Return the cycles of one step of all grids; last ones overlap those before."""
    costs, grid = target.core.costs, knobs.grid
    count = (
        -(-size[0] // knobs.lines)
        * -(-size[1] // (knobs.across * knobs.height))
        * -(-blocks // knobs.vectors)
    )
    multiplying = grid.rows * grid.columns * (
        costs.tile_cycles + costs.tile_row_cycles * knobs.height
    )  # fmt: skip
    loading = (grid.rows + grid.columns) * costs.tile_load_cycles
    return count * max(multiplying, loading)


def grid_space(size: tuple[int, int], blocks: int, steps: int) -> Space:
    """Return the legal knobs."""
    high, wide = size
    return {
        "lines": range(1, min(high, 6) + 1),
        "across": range(1, 7),
        "height": range(1, min(wide, ROWS) + 1),
        "vectors": [v for v in (1, 2, 3) if blocks % v == 0],
        "words": [w for w in range(1, ROWS + 1) if steps % w == 0],
    }


def conv_intrinsic(
    entry: TileInstruction,
    knobs: GridKnobs,
    strides: Sequence[int],
    weight_ones: int,
) -> te.TensorIntrin:
    """Return the intrinsic for sums (n, y, x, o, lane) of data (n, y, x, c).

    The weight is (o, 1.., words, lane, depth), with `weight_ones` axes that do not vary.
    """
    (sy, sx), depth, grid = strides, entry.depth, knobs.grid
    wide = knobs.across * knobs.height
    a_shape = ((knobs.lines - 1) * sy + 1, (wide - 1) * sx + 1, knobs.words * depth)
    a = te.placeholder(a_shape, entry.a_dtype, name="a")
    ones = (1,) * weight_ones
    b = te.placeholder(
        (knobs.vectors, *ones, knobs.words, LANES, depth), entry.b_dtype, name="b"
    )
    word, part = (
        te.reduce_axis((0, n), name=x) for n, x in ((knobs.words, "word"), (depth, "part"))
    )
    zeros = (0,) * weight_ones

    def product(y: PrimExpr, x: PrimExpr, o: PrimExpr, lane: PrimExpr) -> Any:
        left = a(y * sy, x * sx, word * depth + part).astype(entry.c_dtype)
        right = b(o, *zeros, word, lane, part).astype(entry.c_dtype)
        return te.sum(left * right, axis=[word, part])

    meaning = te.compute((knobs.lines, wide, knobs.vectors, LANES), product, name="c")

    def data_first(i: int) -> Sequence[int]:
        line, tile = divmod(i, knobs.across)
        return line * sy, tile * knobs.height * sx, 0

    def sums_first(i: int, j: int) -> Sequence[int]:
        line, tile = divmod(i, knobs.across)
        return line, tile * knobs.height, j, 0

    return tile_intrinsic(
        entry, grid, meaning,
        Operand(data_first, 1, sx),
        Operand(lambda j: (j, *zeros, 0, 0, 0), 1 + weight_ones),
        sums_first, 1,
    )  # fmt: skip


def multiply_tiles(stage: Any, knobs: GridKnobs, chunk: te.IterVar, inner: Sequence[te.IterVar],
                   around: Sequence[te.IterVar], intrinsic: te.TensorIntrin) -> None:  # fmt: skip
    """Order the loops of the sums; `inner` are those of a grid, `chunk` counts words."""
    steps, word = stage.split(chunk, factor=knobs.words)
    *outside, part = around
    stage.reorder(*outside, steps, *inner, word, part)
    stage.tensorize(inner[0], intrinsic)
