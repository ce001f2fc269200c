"""Tensor intrinsics of matrix units: a grid of tiles of sums, in registers through a reduction.

A step of a reduction multiplies `rows` tiles of data by `columns` tiles of weights.  The sums stay
in the unit's registers until the last step, and are then stored::

    reset    configuration; all sums zero
    update   load a tile of each column of weights; for each tile of data: load it, multiply
    finish   store the sums
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import decl_buffer
from slipway.ir.calls import prefetch
from slipway.ir.expr import Var
from slipway.ir.instructions import tiles
from slipway.te.tensor_intrin import TensorIntrin, decl_tensor_intrin

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.te.tensor import Tensor

TileIndices = Callable[[int], Sequence[int]]


@dataclass(frozen=True)
class Operand:
    """Where the tiles of an operand are: indices of the first element of one, the axis of its rows.

    `step` indices of `axis` lie between two rows.
    """

    first: TileIndices
    axis: int
    step: int = 1

    def stride(self, buffer: Buffer) -> Any:
        """Return the elements from one row to the next."""
        return buffer.strides[self.axis] * self.step


@dataclass(frozen=True)
class TileGrid:
    """`rows` x `columns` tiles of sums, `height` rows each; a step multiplies `words` of depth."""

    rows: int
    columns: int
    height: int
    words: int

    @property
    def fits(self) -> bool:
        """Whether there are registers for the sums, the weights of a step and a tile of data."""
        return self.rows * self.columns + self.columns + 1 <= tiles.TILES


def tile_intrinsic(
    entry: tiles.TileInstruction,
    grid: TileGrid,
    meaning: Tensor,
    data: Operand,
    weight: Operand,
    sums: Callable[[int, int], Sequence[int]],
    sums_axis: int,
    ahead: int = 0,
    known: Mapping[Tensor, Sequence[int]] | None = None,
) -> TensorIntrin:
    """Return the intrinsic of a step whose meaning is the compute `meaning`, of data and weight.

    `data` and `weight` give the places of tile number i, ``sums(i, j)`` that of row i, column j.
    With `ahead`, a step asks for the weights so many rows behind its own.  `known` are strides of
    last axes that an operand must have.
    """
    if not grid.fits:
        raise ScheduleError(f"{grid} needs more than the {tiles.TILES} tiles of {entry.name}")
    count = grid.rows * grid.columns
    shapes = [(grid.height, tiles.ROW_BYTES)] * count
    shapes += [(grid.words, tiles.ROW_BYTES)] * grid.columns
    spare = min(tiles.TILES - len(shapes), grid.rows)
    shapes += [(grid.height, grid.words * tiles.WORD)] * spare

    def statements(ins: list[Buffer], outs: list[Buffer]) -> tuple[Any, ...]:
        (a, b), c = ins, outs[0]
        reset = [S.Evaluate(tiles.config(shapes))]
        reset += [S.Evaluate(tiles.zero(t)) for t in range(count)]
        update = [
            S.Evaluate(tiles.load(count + j, b, weight.first(j), weight.stride(b)))
            for j in range(grid.columns)
        ]
        for j in range(grid.columns if ahead else 0):
            for row in range(ahead, ahead + grid.words):
                at = [ops.as_expr(i) for i in weight.first(j)]
                at[weight.axis] = ops.as_expr(row * weight.step)
                update.append(prefetch(b, tuple(at)))
        finish = []
        for i in range(grid.rows):
            left = count + grid.columns + i % spare
            update.append(S.Evaluate(tiles.load(left, a, data.first(i), data.stride(a))))
            for j in range(grid.columns):
                own = i * grid.columns + j
                update.append(S.Evaluate(tiles.dot(entry.name, own, left, count + j)))
                finish.append(S.Evaluate(tiles.store(own, c, sums(i, j), c.strides[sums_axis])))
        whole = S.seq([*reset, *update, *finish])
        return whole, S.seq(reset), S.seq(update), S.seq(finish)

    fixed = known or {}
    binds = {t: _anywhere(t, fixed.get(t, (1,))) for t in (*meaning.op.input_tensors, meaning)}
    return decl_tensor_intrin(meaning.op, statements, entry.name, binds)


def _anywhere(tensor: Tensor, known: Sequence[int]) -> Buffer:
    """Return a buffer of the tensor's shape with any strides but the `known` ones, the last."""
    free = len(tensor.shape) - len(known)
    strides = [Var(f"{tensor.name}.stride{axis}") for axis in range(free)]
    return decl_buffer(
        tensor.shape, tensor.dtype, tensor.name, strides=(*strides, *known),
        elem_offset=Var(f"{tensor.name}.offset"),
    )  # fmt: skip
