"""A model of x86's matrix unit: what each instruction on tiles does, and what it refuses.

It holds what the processor holds: a configuration and the bytes of eight tiles.  Where the
processor would raise an exception (no configuration, a tile that is not in it, shapes that do not
go together), an ExecutionError says so.  Arithmetic is that of the instructions: integers wrap;
products of bfloat16 are summed in float32, whose denormal numbers count as zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.errors import ExecutionError
from slipway.ir import expr as E
from slipway.ir.instructions.tiles import (
    INSTRUCTIONS,
    ROW_BYTES,
    ROWS,
    TILES,
    WORD,
    TileInstruction,
)

if TYPE_CHECKING:
    from slipway.ir.interpreter.interpret import Machine

Bytes = np.ndarray[Any, Any]
_MIN_NORMAL = np.finfo(np.float32).tiny


class TileUnit:
    """The state of one thread's unit: `shapes` are (rows, bytes) by tile, none unconfigured."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []
        self.data: list[Bytes] = []

    def config(self, *numbers: int) -> None:
        """Take a configuration: rows and bytes of a row of each tile.  All become zero."""
        shapes = list(zip(numbers[::2], numbers[1::2], strict=True))
        if len(shapes) != TILES:
            raise ExecutionError(f"a tile configuration has {TILES} tiles, not {len(shapes)}")
        for tile, (rows, width) in enumerate(shapes):
            if not (0 <= rows <= ROWS and 0 <= width <= ROW_BYTES and bool(rows) == bool(width)):
                raise ExecutionError(
                    f"tile {tile} cannot be configured with {rows} rows of {width} bytes: it has "
                    f"up to {ROWS} of {ROW_BYTES}"
                )
        self.shapes = shapes
        self.data = [np.zeros(shape, np.uint8) for shape in shapes]

    def zero(self, tile: int) -> None:
        """Set a tile to zero."""
        self._tile(tile)[:] = 0

    def load(self, tile: int, memory: Bytes, stride: int) -> None:
        """Load the rows of a tile, `stride` elements of `memory` apart."""
        for row, part in enumerate(self._rows(tile, memory, stride)):
            self.data[tile][row] = np.asarray(part, order="C").view(np.uint8)

    def store(self, tile: int, memory: Bytes, stride: int) -> None:
        """Store the rows of a tile, `stride` elements of `memory` apart."""
        for row, part in enumerate(self._rows(tile, memory, stride)):
            part[:] = self.data[tile][row].view(memory.dtype)

    def dot(self, entry: TileInstruction, c: int, a: int, b: int) -> None:
        """Add the products of tiles a and b to tile c."""
        if len({c, a, b}) < 3:
            raise ExecutionError(f"{entry.name} takes three different tiles, not {c}, {a} and {b}")
        sums, left, right = (self._tile(t) for t in (c, a, b))
        (rows, columns), words = (sums.shape[0], sums.shape[1]), right.shape[0]
        if left.shape != (rows, words * WORD) or right.shape[1] != columns or columns % WORD:
            raise ExecutionError(
                f"{entry.name}: tiles of rows x bytes {left.shape} and {right.shape} do not "
                f"multiply to {sums.shape}"
            )
        columns //= WORD
        a_words = _elements(left, entry.a_dtype).reshape(rows, words, entry.depth)
        b_words = _elements(right, entry.b_dtype).reshape(words, columns, entry.depth)
        if entry.c_dtype == "float32":
            result = _pairs(sums.view(np.float32), a_words, b_words)
        else:
            products = np.einsum("iwk,wjk->ij", a_words, b_words)
            result = (sums.view(np.int32) + products).astype(np.int32)
        sums[:] = result.view(np.uint8)

    def _tile(self, tile: int) -> Bytes:
        if not self.shapes:
            raise ExecutionError(f"tile {tile} is used before any tile_config")
        if not 0 <= tile < TILES or self.shapes[tile] == (0, 0):
            raise ExecutionError(f"tile {tile} is used, but the configuration has no rows for it")
        return self.data[tile]

    def _rows(self, tile: int, memory: Bytes, stride: int) -> list[Bytes]:
        """Return the part of `memory` for each row of a tile."""
        rows, width = self._tile(tile).shape
        count, remainder = divmod(width, memory.itemsize)
        last = (rows - 1) * stride + count
        if remainder or stride < 0 or last > memory.size:
            raise ExecutionError(
                f"tile {tile} of {rows} rows of {width} bytes, {stride} elements of "
                f"{memory.dtype} apart, is not in the {memory.size} elements at its address"
            )
        return [memory[row * stride : row * stride + count] for row in range(rows)]


def _elements(tile: Bytes, dtype: str) -> Bytes:
    """Return the elements of a tile, wide enough for exact sums; bfloat16 as float32."""
    if dtype != "bfloat16":
        return tile.view(dtype).astype(np.int64)
    return (tile.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def _pairs(sums: Bytes, a: Bytes, b: Bytes) -> Bytes:
    """Add products of pairs to `sums` as the processor does: first and second ones apart.

    Each product is added in one rounding, then both sums to each other, and the result to `sums`.
    """
    apart = np.zeros((2, *sums.shape), np.float32)
    a, b = _flushed(a).astype(np.float64), _flushed(b).astype(np.float64)
    for word in range(a.shape[1]):
        for k in range(2):
            exact = a[:, word, k, None] * b[None, word, :, k]
            apart[k] = _flushed((apart[k] + exact).astype(np.float32))
    both = _flushed(apart[0] + apart[1])
    return _flushed(_flushed(sums) + both)


def _flushed(value: Bytes) -> Bytes:
    """Return float32 values with zeros, of the same sign, for denormal numbers."""
    return np.where(np.abs(value) < _MIN_NORMAL, np.copysign(np.float32(0), value), value)


def tile_call(m: Machine, node: E.Call) -> Callable[[], Any]:
    """Return the closure that runs a call of ``tile_...``."""
    first = node.args[0] if node.args else None
    word = node.op.removeprefix("tile_")
    if isinstance(first, E.StringImm):
        entry, numbers = INSTRUCTIONS[first.value], [m.compile(x) for x in node.args[1:]]
        return lambda: m.tiles.dot(entry, *(int(x()) for x in numbers))
    operands = [m.compile(x) for x in node.args]
    method = getattr(m.tiles, word)

    def run_tile_call() -> None:
        values = (x() for x in operands)
        method(*(v if isinstance(v, np.ndarray) and v.ndim else int(v) for v in values))

    return run_tile_call
