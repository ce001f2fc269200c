"""The loops of a product of float data with block-quantised weights, in vectors of outputs.

Weights are dequantised in registers, a vector for each element of the data, and multiplied with the
elements of all rows of a tile, which are packed so that they are contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway import dtypes, te
from slipway.backends.cpu.schedules.matmul.block_kernel import PackedProduct
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir.expr import PrimExpr
from slipway.relay.ops.nn.lanes import Lanes
from slipway.relay.ops.packed.block_dense import WORDS, PackedBlockAttrs
from slipway.relay.ops.packed.block_formats import GROUP
from slipway.relay.types import TensorType


def float_block_kernel(
    attrs: PackedBlockAttrs,
    inputs: Sequence[te.Tensor],
    out: TensorType,
    tile: int,
    kind: str,
    in_flight: int,
) -> list[te.Tensor]:
    """Return the product, `tile` rows at a time; the loop over tiles of outputs is of `kind`.

    The core has so many multiply-adds `in_flight`, none of which may wait for another.
    """

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        return _FloatKernel(attrs, ins, outs[0], tile, kind, in_flight).statement()

    return [te.extern([out.shape], inputs, statements, "T_block_dense", [out.dtype])]


class _FloatKernel(PackedProduct):
    """The data is packed, so that the elements of all rows of a tile are contiguous."""

    def __init__(
        self,
        attrs: PackedBlockAttrs,
        ins: list[Any],
        out: Any,
        tile: int,
        kind: str,
        in_flight: int,
    ) -> None:
        super().__init__(attrs, ins, out, tile, kind)
        self.in_flight = in_flight
        self.wide = dtypes.with_lanes("float32", self.lanes)
        self.v = Lanes(self.ib, self.lanes)

    def prepare(self) -> None:
        ib = self.ib
        blocks = (self.rows + (self.tile - 1)) // self.tile
        shape = (blocks, self.groups, GROUP, self.tile)
        self.packed = ib.allocate("float32", shape, "packed_data")
        with (
            ib.for_range(0, self.rows, "s") as s,
            ib.for_range(0, self.groups, "g") as g,
            ib.for_range(0, GROUP, "k") as k,
        ):
            self.packed[(*self._indices(s, g, k),)] = self.data[s, g * GROUP + k]

    def _indices(self, row: PrimExpr, g: PrimExpr, k: PrimExpr) -> tuple[Any, ...]:
        """Return where an element of the data is packed."""
        return ops.floordiv(row, self.tile), g, k, ops.floormod(row, self.tile)

    def _together(self, size: int) -> int:
        return max(1, min(int(self.vectors), 4 // size))

    def _product(
        self, tile: PrimExpr, first: PrimExpr, together: int, row: PrimExpr, rows: int
    ) -> None:
        ib, v, n = self.ib, self.v, self.lanes
        # Sums that wait for nothing of each other, of the elements of a word at most.
        chains = min(4, max(1, self.in_flight // (rows * together)))
        sums = ib.allocate("float32", (rows, together, chains, n), "sums", scope="local")
        sums_at = [(r, j, c) for r in range(rows) for j in range(together) for c in range(chains)]
        for sum_at in sums_at:
            v.store(sums, sum_at, 0, v.zero("float32", n), n)
        with ib.for_range(0, self.groups, "g") as g:
            for loop in range(self.attrs.parts if self.attrs.bits == 8 else 1):
                parts = self._parts(loop)
                factors = [
                    [self._factors(tile, g, first + j, p) for p in parts] for j in range(together)
                ]
                count = WORDS // self.attrs.parts if self.attrs.bits == 8 else WORDS // 2
                for j in range(together):  # a vector's bytes are one stream
                    with ib.for_range(0, count, "word") as word:
                        m = word + loop * count
                        elements = self._elements(tile, g, first + j, m)
                        for i, (k, value, part) in enumerate(elements):
                            scale, base = factors[j][part]
                            made = ops.cast(value, self.wide) * scale
                            made = ib.let("w", made if base is None else made + base)
                            for r in range(rows):
                                x = v.all(self.packed[self._indices(row + r, g, k)], n)
                                sum_at = (r, j, i % chains)
                                v.store(sums, sum_at, 0, v.load(sums, sum_at, 0, n) + made * x, n)
        for r in range(rows):
            for j in range(together):
                at = ((tile * self.vectors) + first + j) * n
                total = v.load(sums, (r, j, 0), 0, n)
                for chain in range(1, chains):
                    total = total + v.load(sums, (r, j, chain), 0, n)
                v.store(self.out, (row + r,), at, total, n)

    def _parts(self, loop: int) -> Sequence[int]:
        """Return the parts of a group whose elements a loop over words has."""
        return [loop] if self.attrs.bits == 8 else range(self.attrs.parts)

    def _factors(
        self, tile: PrimExpr, g: PrimExpr, vector: PrimExpr, part: int
    ) -> tuple[PrimExpr, PrimExpr | None]:
        """Return what integers are multiplied with, and what is added to the products."""
        ib, v, n = self.ib, self.v, self.lanes
        at = (tile, g * self.attrs.parts + part)

        def loaded(buffer: Any, name: str) -> Any:
            return ib.let(name, ops.cast(v.load(buffer, at, vector * n, n), self.wide))

        scale = loaded(self.scale, "scale")
        base: Any = None
        if self.attrs.offset:  # a power of two, whose product with the scale is not rounded
            base = scale * v.all(ops.const(-float(self.attrs.offset), "float32"), n)
        if self.attrs.minima:
            minimum = loaded(self.minimum, "minimum")
            base = v.zero("float32", n) - minimum if base is None else base - minimum
        return scale, None if base is None else ib.let("base", base)

    def _elements(
        self, tile: PrimExpr, g: PrimExpr, vector: PrimExpr, m: PrimExpr
    ) -> list[tuple[PrimExpr, PrimExpr, int]]:
        """Return (its place in the group, integers of all outputs, its part) of a word's elements.

        A part counts from the first of `_parts`.
        """
        bits = self.attrs.bits
        word = self._load(tile, g, vector, m)
        if bits == 8:
            return [(m * 4 + i, self._byte(word, i), 0) for i in range(4)]
        found = []
        planes = self._planes(tile, g, vector)
        for half in range(2):
            for i in range(4):
                value = self._bits(word, 8 * i + 4 * half, 4)
                if planes:
                    more = bits - 4
                    # The last of two planes has the words of the second half.
                    plane = planes[half if len(planes) > 1 else 0]
                    skipped = WORDS // 2 * half * more if len(planes) == 1 else 0
                    high = self._bits(plane, m * more + (8 * i + skipped), more)
                    value = value + high * self._all(16)
                found.append((m * 4 + (16 * half + i), value, half if self.attrs.parts > 1 else 0))
        return found

    def _load(self, tile: PrimExpr, g: PrimExpr, vector: PrimExpr, at: Any) -> Any:
        """Return vector number `at` of a group's bytes as words of 32 bits, one for each output."""
        size = 4 * self.lanes
        bytes_ = self.v.load(self.weight, (tile, g, vector), at * size, size)
        like = dtypes.with_lanes("int32", self.lanes)
        return self.ib.let("word", E.Call(like, "reinterpret", (bytes_,)))

    def _planes(self, tile: PrimExpr, g: PrimExpr, vector: PrimExpr) -> list[Any]:
        """Return the vectors of bits above the fourth."""
        return [self._load(tile, g, vector, WORDS // 2 + p) for p in range(self.attrs.bits - 4)]

    def _all(self, value: int) -> Any:
        return ops.const(value, dtypes.with_lanes("int32", self.lanes))

    def _bits(self, word: PrimExpr, first: Any, count: int) -> Any:
        """Return some bits of each word."""
        by = self.v.all(ops.as_expr(first, "int32"), self.lanes)
        return ops.bitwise_and(ops.shift_right(word, by), self._all((1 << count) - 1))

    def _byte(self, word: PrimExpr, i: int) -> Any:
        if not self.attrs.signed:
            return self._bits(word, 8 * i, 8)
        return ops.shift_right(ops.shift_left(word, self._all(24 - 8 * i)), self._all(24))
