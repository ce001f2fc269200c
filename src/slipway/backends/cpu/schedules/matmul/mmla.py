"""Products by an instruction that multiplies small matrices: ARM's smmla and bfmmla.

    c[i, j] += sum over k of a[i, k] * b[j, k]        2 rows of data, 2 columns, 8 bytes of each

takes half as many instructions as one that multiplies a vector by words (sdot, bfdot), but its sums
lie in MMLA tiles of 2 by 2, and so must its data.  With R.. for the axes of the sum but the last,
P rows (of a matrix, or positions of images) padded to whole tiles, and O columns::

    packed  (N, R.., P/2, 2, k)     of a tile, in registers: two rows packed
    sums    (N, P/2, O/2, 2, 2)
    joined  (N, P, O)               the tiles' rows, as the result has them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd, prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.backends.cpu.parts import positions_per_part
from slipway.backends.cpu.schedules.register_tile import image_tiles, register_tile
from slipway.backends.cpu.tile import PAIR, SIDE, Tile, choose_tile, mmla
from slipway.backends.stages import extent_of, shape_of, tagged
from slipway.backends.strategy import Space
from slipway.te.hardware import hardware_intrinsic

if TYPE_CHECKING:
    from slipway.ir.expr import IterVar, PrimExpr
    from slipway.ir.hardware import HardwareIntrinsic
    from slipway.target import Target
    from slipway.te.stage import Stage
    from slipway.te.tensor import Tensor

LANES = 4  # of the vectors of results


def choose_mmla_tile(rows: int, pairs: int, block: int, target: Target) -> Tile:
    """Return the tile, in rows and pairs of columns, that takes the fewest instructions.

    Pairs of columns are split evenly, and so are `block` of them that are contiguous; two of
    them are a vector of results.  Of tiles that take as long the lower, which pads fewer rows.
    """
    kernel, vectors, even = mmla(target), pairs // SIDE, _columns(pairs, block)
    tile = choose_tile(
        kernel, rows, vectors,
        legal=lambda tile: tile.vectors * SIDE in even,
        cost=lambda tile: (kernel.all_cycles(tile, rows, vectors), tile.rows),
    )  # fmt: skip
    return Tile(tile.rows, tile.vectors * SIDE)


def _columns(pairs: int, block: int) -> list[int]:
    """Return the legal widths of a tile, in pairs of columns."""
    even = [v for v in range(2, pairs + 1, 2) if pairs % v == 0]
    return [v for v in even if block % v == 0 or v % block == 0]


def mmla_space(pairs: int, block: int) -> Space:
    """Return the legal tiles for so many pairs of columns, `block` of them contiguous."""
    return {"rows": range(SIDE, 18, SIDE), "vectors": [v for v in _columns(pairs, block) if v < 18]}


def joined_tiles(
    size: tuple[int, int, int],
    datum: Callable[..., Any],
    weight: Callable[..., Any],
    reduced: Sequence[te.IterVar],
    tile: Tile,
    out_dtype: str,
) -> te.Tensor:
    """Return the stage `joined` of (images, rows, columns), rows padded to whole tiles.

    ``datum(image, *r, row, k)`` and ``weight(*r, column, k)`` are multiplied, r and k the axes
    `reduced`.  Padding rows read the last row.
    """
    images, rows, columns = size
    whole = -(-rows // tile.rows) * tile.rows
    *outer, part = reduced

    def packed_element(b: PrimExpr, *rest: PrimExpr) -> Any:
        *at, p, r, k = rest
        row = p * SIDE + r
        return datum(b, *at, row if whole == rows else te.min(row, rows - 1), k)

    extents = [extent_of(axis) for axis in outer]
    packed = te.compute(
        (images, *extents, whole // SIDE, SIDE, extent_of(part)), packed_element, name="packed",
        tag="mmla_packed",
    )  # fmt: skip

    def tile_sums(b: PrimExpr, p: PrimExpr, o: PrimExpr, r: PrimExpr, lane: Tensor) -> Any:
        left = packed(b, *outer, p, r, part).astype(out_dtype)
        right = weight(*outer, o, lane, part).astype(out_dtype)
        return te.sum(left * right, axis=list(reduced))

    sums = te.compute(
        (images, whole // SIDE, columns // SIDE, SIDE, SIDE), tile_sums, name="sums",
        tag="mmla_sums",
    )  # fmt: skip

    def row_of(b: Any, p: PrimExpr, c: PrimExpr) -> Any:
        half, side = te.floordiv(p, SIDE), te.floormod(p, SIDE)
        return sums(b, half, te.floordiv(c, SIDE), side, te.floormod(c, SIDE))

    made: te.Tensor = te.compute((images, whole, columns), row_of, name="joined", tag="mmla_joined")
    return made


class MmlaStages:
    """The stages of products in MMLA tiles, found again among what a kernel computes."""

    def __init__(self, outs: Sequence[te.Tensor]) -> None:
        found = tagged(outs)
        self.packed, self.sums, self.joined = (
            found[f"mmla_{name}"] for name in ("packed", "sums", "joined")
        )
        (self.data,) = self.packed.op.input_tensors
        self.weight = self.sums.op.input_tensors[1]

    def schedule_images(
        self,
        schedule: te.Schedule,
        stage: Stage,
        loops: tuple[tuple[IterVar, IterVar], Sequence[IterVar], IterVar, IterVar],
        tile: Tile,
        entry: HardwareIntrinsic,
        parallel: bool,
        target: Target,
    ) -> None:
        """Compute images in tiles, each in registers; `loops` are those of `image_tiles`."""
        images, _, columns = shape_of(self.joined)
        data_bytes, weight_bytes = (
            prod(shape_of(t)) * dtypes.bytes_of(t.dtype) for t in (self.data, self.weight)
        )
        positions = prod(extent_of(axis) for axis in loops[1])
        panels = columns // SIDE // tile.vectors
        part = positions_per_part(
            positions, data_bytes // images, weight_bytes, panels, tile, target
        )
        each = image_tiles(
            stage, *loops, rows=tile.rows, part=-(-part // tile.rows) * tile.rows, shared=parallel,
            tail="guard",
        )  # fmt: skip
        self.compute_at(schedule, stage, each, entry, target)

    def compute_at(
        self,
        schedule: te.Schedule,
        stage: Stage,
        axis: IterVar,
        entry: HardwareIntrinsic,
        target: Target,
    ) -> None:
        """Compute a tile of `joined` in each step of `axis` of `stage`, in registers."""
        rejoined: Any = schedule[self.joined]
        rejoined.set_scope("local")
        rejoined.compute_at(stage, axis)
        _, p, c = rejoined.op.axis
        c_vector, c_lane = rejoined.split(c, factor=LANES)
        register_tile(rejoined, [], [p, c_vector], c_lane)

        inner: Any = schedule[self.sums]
        inner.set_scope("local")
        inner.compute_at(stage, axis)
        b, p, o, row, lane = inner.op.axis
        *outer, element = inner.op.reduce_axis
        longest = max(i for i, x in enumerate(outer) if i == 0 or extent_of(x) > 1)
        steps, step = inner.split(outer[longest], factor=gcd(PAIR, extent_of(outer[longest])))
        around = [*outer[:longest], *outer[longest + 1 :], steps]
        multiply = hardware_intrinsic(entry.name, target)
        register_tile(inner, [b, *around], [step, p, o], row, multiply, [lane, element])

        copy: Any = schedule[self.packed]
        copy.set_scope("local")
        copy.compute_at(inner, steps)
        *others, element = copy.op.axis
        for loop in others[1:]:
            copy.unroll(loop)
        copy.vectorize(element)
