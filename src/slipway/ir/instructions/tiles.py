"""Instructions of matrix units that work on tile registers: x86's AMX.

A unit has a few registers of `ROWS` rows of `ROW_BYTES`, fewer of both where a configuration says
so, and one instruction that multiplies two of them into a third, 32 bits an element::

    c[i, j] += sum over w, k of a[i, w, k] * b[w, j, k]        k of the elements in 32 bits

Loops name the instructions by calls that are statements.  Tiles are numbers, addresses pointers to
elements, and strides the elements from one row to the next::

    tile_config(rows of tile 0, bytes of its rows, rows of tile 1, ...)    all tiles become zero
    tile_zero(t)
    tile_load(t, address, stride)
    tile_dot(StringImm(name), c, a, b)
    tile_store(t, address, stride)

A function has one configuration, with which its code begins on each thread; the interpreter
(`ir/interpreter/tiles.py`) checks every use against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slipway import dtypes
from slipway.ir.expr import BufferLoad, Call, PrimExpr, StringImm
from slipway.ir.ops import as_expr, const

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.ir.expr import PrimExprLike
    from slipway.target import Target

TILES = 8
ROWS = 16
ROW_BYTES = 64
WORD = 4  # bytes of an element of c, and of the elements of a and b that are added to it at once


@dataclass(frozen=True)
class TileInstruction:
    """One instruction on tiles: its name in LLVM, the types of a, b and c, features it needs."""

    name: str
    llvm: str
    a_dtype: str
    b_dtype: str
    c_dtype: str
    features: tuple[str, ...]

    @property
    def depth(self) -> int:
        """Elements of a word: those whose products one step adds to a sum."""
        return WORD * 8 // dtypes.bits_of(self.a_dtype)

    @property
    def rows(self) -> int:
        """0: it takes any number of rows of data, as instructions on vectors do."""
        return 0

    @property
    def c_size(self) -> int:
        """Columns of a tile of sums."""
        return ROW_BYTES // WORD

    def missing(self, target: Target) -> list[str]:
        """Return what `target` lacks: a kind of processor, or features."""
        if target.parsed_triple.arch != "x86_64":
            return ["a processor of kind x86_64"]
        return [f for f in self.features if not target.has_feature(f)]


def has_tiles(target: Target) -> bool:
    """Return whether `target` has registers of tiles, which every instruction here needs."""
    return target.has_feature("amx-tile")


INSTRUCTIONS: dict[str, TileInstruction] = {
    entry.name: entry
    for entry in (
        TileInstruction(
            "x86.amx.u8s8", "llvm.x86.tdpbusd", "uint8", "int8", "int32", ("amx-tile", "amx-int8")
        ),
        TileInstruction(
            "x86.amx.s8s8", "llvm.x86.tdpbssd", "int8", "int8", "int32", ("amx-tile", "amx-int8")
        ),
        TileInstruction(
            "x86.amx.bf16", "llvm.x86.tdpbf16ps", "bfloat16", "bfloat16", "float32",
            ("amx-tile", "amx-bf16"),
        ),
    )
}  # fmt: skip


def config(shapes: Sequence[tuple[int, int]]) -> PrimExpr:
    """Return the configuration of tiles by their (rows, bytes of a row); others stay unused."""
    padded = [*shapes, *[(0, 0)] * (TILES - len(shapes))]
    return Call("int32", "tile_config", tuple(const(n, "int32") for pair in padded for n in pair))


def zero(tile: int) -> PrimExpr:
    """Return the call that sets a tile to zero."""
    return Call("int32", "tile_zero", (const(tile, "int32"),))


def load(tile: int, buffer: Buffer, at: Sequence[PrimExprLike], stride: PrimExprLike) -> PrimExpr:
    """Return the call that loads a tile from rows of `buffer`, `stride` elements apart."""
    return Call("int32", "tile_load", (const(tile, "int32"), *_memory(buffer, at, stride)))


def store(tile: int, buffer: Buffer, at: Sequence[PrimExprLike], stride: PrimExprLike) -> PrimExpr:
    """Return the call that stores a tile to rows of `buffer`, `stride` elements apart."""
    return Call("int32", "tile_store", (const(tile, "int32"), *_memory(buffer, at, stride)))


def dot(name: str, c: int, a: int, b: int) -> PrimExpr:
    """Return the call that adds the products of two tiles to a third."""
    return Call("int32", "tile_dot", (StringImm(name), *(const(t, "int32") for t in (c, a, b))))


def _memory(
    buffer: Buffer, at: Sequence[PrimExprLike], stride: PrimExprLike
) -> tuple[PrimExpr, PrimExpr]:
    first = BufferLoad(buffer, tuple(as_expr(i) for i in at))
    return Call("handle", "address_of", (first,)), as_expr(stride)
