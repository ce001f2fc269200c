"""The loops of a product with block-quantised weights, in vectors of an instruction.

The data is quantised first.  Then a task computes a tile of outputs for all rows: where there are
many, some at a time, so that a vector of weights is unpacked once for them; for the last few and
for one, all vectors of the tile at once, whose weights are one stream from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from slipway import dtypes, te
from slipway.ir import builder, ops
from slipway.ir import expr as E
from slipway.ir.builder import BufferVar
from slipway.ir.expr import PrimExpr
from slipway.ir.hardware import HardwareIntrinsic
from slipway.relay.dims import size_of
from slipway.relay.ops.nn.lanes import Lanes
from slipway.relay.ops.packed.block_dense import WORDS, PackedBlockAttrs, planes_of
from slipway.relay.ops.packed.block_formats import GROUP
from slipway.relay.types import TensorType


def block_dense_kernel(
    attrs: PackedBlockAttrs,
    inputs: Sequence[te.Tensor],
    out: TensorType,
    entry: HardwareIntrinsic,
    tile: int,
    kind: str,
    lanes: int,
) -> list[te.Tensor]:
    """Return the product, `tile` rows at a time; `lanes` are those of a vector of floats."""

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        return BlockKernel(attrs, ins, outs[0], tile, kind, lanes, entry).statement()

    return [te.extern([out.shape], inputs, statements, "T_block_dense", [out.dtype])]


class PackedProduct:
    """A product with packed weights: the data is prepared, then a task for each tile of outputs."""

    def __init__(
        self, attrs: PackedBlockAttrs, ins: list[Any], out: Any, tile: int, kind: str
    ) -> None:
        self.ib = ib = builder.create()
        self.attrs, self.kind, self.tile = attrs, kind, tile
        self.data, self.weight, self.scale, self.minimum = map(ib.buffer_ptr, ins)
        self.out = ib.buffer_ptr(out)
        self.rows = ins[0].shape[0]
        self.tiles, self.groups, self.vectors, width = (size_of(d) for d in ins[1].shape)
        self.lanes = width // (4 * attrs.bits)

    def statement(self) -> Any:
        """Return all loops."""
        ib = self.ib
        self.prepare()
        with ib.for_range(0, self.tiles, "tile", kind=self.kind) as tile:
            self.rows_of(tile)
        return ib.get()

    def prepare(self) -> None:
        """Bring the data into the order and the type that a tile reads."""
        raise NotImplementedError

    def rows_of(self, tile: PrimExpr) -> None:
        """Compute all rows of a tile of outputs."""
        self.some_rows(tile, 0, self.rows)

    def some_rows(self, tile: PrimExpr, begin: Any, count: Any) -> None:
        """Compute `count` rows of a tile: whole tiles of rows, four at a time, one."""
        for part, together, row, size in row_tiles(
            self.ib, count, self.tile, self.vectors, self._together
        ):
            self._product(tile, part, together, begin + row, size)

    def _together(self, size: int) -> int:
        """Return how many vectors of outputs are computed at once for so many rows."""
        raise NotImplementedError

    def _product(
        self, tile: PrimExpr, first: PrimExpr, together: int, row: PrimExpr, rows: int
    ) -> None:
        """Write the sums of `rows` rows and `together` vectors of outputs."""
        raise NotImplementedError


class BlockKernel(PackedProduct):
    """The data is quantised; few rows take all vectors at once, many take them one by one."""

    def __init__(
        self,
        attrs: PackedBlockAttrs,
        ins: list[Any],
        out: Any,
        tile: int,
        kind: str,
        lanes: int,
        entry: HardwareIntrinsic,
    ) -> None:
        super().__init__(attrs, ins, out, tile, kind)
        self.entry, self.v = entry, Lanes(self.ib, lanes)

    def prepare(self) -> None:
        """Make int8 of the data, in tiles of rows."""
        ib = self.ib
        # The rows of a tile lie together, group by group: one stream as they are read.
        blocks = (self.rows + (self.tile - 1)) // self.tile
        self.integers = ib.allocate("int8", (blocks, self.groups, self.tile, GROUP), "integers")
        self.factors = ib.allocate("float32", (blocks, self.groups, self.tile), "factors")
        self.sums = None
        if self.attrs.offset or self.attrs.minima:
            groups = self.groups * self.attrs.parts
            self.sums = ib.allocate("int32", (blocks, groups, self.tile), "group_sums")
        with ib.for_range(0, self.rows, "s") as s, ib.for_range(0, self.groups, "g") as g:
            self._quantise(s, g)

    def stored(self, tile: PrimExpr) -> PrimExpr:
        """Return the tile of weights of a tile of outputs."""
        return tile

    def read_at(self, row: PrimExpr) -> tuple[Any, ...]:
        """Return where the data has a row."""
        return (row,)

    def written_at(self, row: PrimExpr) -> tuple[Any, ...]:
        """Return where the output has a row."""
        return (row,)

    def _quantise(self, s: PrimExpr, g: PrimExpr) -> None:
        """Make int8 of a group of the data."""
        ib, v = self.ib, self.v
        block, r = self._position(s)
        at = self.read_at(s)
        n = min(v.lanes, GROUP // self.attrs.parts)
        parts = range(0, GROUP, n)
        loaded = [ib.let("x", v.load(self.data, at, g * GROUP + i, n)) for i in parts]
        top = [te.abs(x) for x in loaded]
        while len(top) > 1:
            top = [ops.maximum(a, b) for a, b in zip(top[::2], top[1::2], strict=True)]
        largest = ib.let("largest", self._reduced(top[0], n, ops.maximum))
        one = ops.const(127.0, "float32")
        zero = ops.const(0.0, "float32")
        over = ib.let("over", E.Select(largest > 0, one / largest, zero))
        self.factors[block, g, r] = largest * ops.const(1 / 127, "float32")
        whole = [te.nearbyint(x * v.all(over, n)) for x in loaded]
        whole = [ib.let("q", ops.cast(x, dtypes.with_lanes("int32", n))) for x in whole]
        for i, x in zip(parts, whole, strict=True):
            small = ops.cast(x, dtypes.with_lanes("int8", n))
            v.store(self.integers, (block, g, r), i, small, n)
        if self.sums is not None:
            each = len(whole) // self.attrs.parts
            for part in range(self.attrs.parts):
                total = whole[part * each]
                for x in whole[part * each + 1 : (part + 1) * each]:
                    total = total + x
                value = self._reduced(total, n, ops.add)
                value = value if self.attrs.minima else value * -self.attrs.offset
                self.sums[block, g * self.attrs.parts + part, r] = value

    def _position(self, row: PrimExpr) -> tuple[Any, Any]:
        """Return the tile of a row, and where it is in it."""
        return ops.floordiv(row, self.tile), ops.floormod(row, self.tile)

    def _reduced(self, value: PrimExpr, n: int, join: Any) -> Any:
        """Return the lanes of a vector joined, half by half."""
        ib = self.ib
        kind = dtypes.scalar_of(value.dtype)
        while n > 1:
            held = ib.allocate(kind, (n,), "held", scope="local")
            self.v.store(held, (), 0, value, n)
            n //= 2
            value = join(self.v.load(held, (), 0, n), self.v.load(held, (), n, n))
        return value

    def _together(self, size: int) -> int:
        return int(self.vectors) if size == 1 else max(1, min(int(self.vectors), 8 // size))

    def _product(
        self, tile: PrimExpr, first: PrimExpr, together: int, row: PrimExpr, rows: int
    ) -> None:
        ib, v, n = self.ib, self.v, self.lanes
        sums = ib.allocate("float32", (rows, together, n), "sums", scope="local")
        for r in range(rows):
            for j in range(together):
                v.store(sums, (r, j), 0, v.zero("float32", n), n)
        stored = self.stored(tile)
        with ib.for_range(0, self.groups, "g") as g:
            for j in range(together):
                self._group(stored, first + j, g, row, [(r, j) for r in range(rows)], sums)
        for r in range(rows):
            out_row = self.written_at(row + r)
            for j in range(together):
                at = ((tile * self.vectors) + first + j) * n
                v.store(self.out, out_row, at, v.load(sums, (r, j), 0, n), n)

    def _group(
        self,
        tile: PrimExpr,
        vector: PrimExpr,
        g: PrimExpr,
        row: PrimExpr,
        positions: Any,
        sums: BufferVar,
    ) -> None:
        ib, v, n = self.ib, self.v, self.lanes
        words = self._words(tile, g, vector)
        wide = dtypes.with_lanes("float32", n)
        parts = self.attrs.parts
        each = len(words) // parts
        for part in range(parts):
            at_scale = g * parts + part
            scale = ib.let(
                "scale", ops.cast(v.load(self.scale, (tile, at_scale), vector * n, n), wide)
            )
            minimum = None
            if self.attrs.minima:
                minimum = v.load(self.minimum, (tile, at_scale), vector * n, n)
                minimum = ib.let("minimum", ops.cast(minimum, wide))
            for r, j in positions:
                block, inner = self._position(row + r)
                total: Any = v.zero("int32", n)
                if self.attrs.offset:
                    assert self.sums is not None
                    total = v.all(self.sums[block, at_scale, inner], n)
                for m in range(part * each, (part + 1) * each):
                    total = self._added(total, words[m], (block, g, inner), 4 * m)
                value = ops.cast(total, wide) * scale
                if minimum is not None:
                    assert self.sums is not None
                    count = ops.cast(self.sums[block, at_scale, inner], "float32")
                    value = value - v.all(count, n) * minimum
                factor = v.all(self.factors[block, g, inner], n)
                v.store(sums, (r, j), 0, v.load(sums, (r, j), 0, n) + value * factor, n)

    def _words(self, tile: PrimExpr, g: PrimExpr, vector: PrimExpr) -> list[Any]:
        """Return the vectors of weights, each four elements of all its outputs."""
        ib, v = self.ib, self.v
        size = 4 * self.lanes
        bytes_ = [
            ib.let("w", v.load(self.weight, (tile, g, vector), m * size, size))
            for m in range(WORDS * self.attrs.bits // 8)
        ]
        if self.attrs.bits == 8:
            return bytes_
        wide = dtypes.with_lanes("uint8", size)
        four, planes = bytes_[: WORDS // 2], bytes_[WORDS // 2 :]
        words = [ops.bitwise_and(b, ops.const(15, wide)) for b in four]
        words += [ops.shift_right(b, ops.const(4, wide)) for b in four]
        for plane, (first, count, more) in zip(planes, planes_of(self.attrs.bits), strict=True):
            mask = ops.const(((1 << more) - 1) << 4, wide)
            for m in range(count):
                by = 4 - m * more  # to the left
                shift = ops.shift_left if by > 0 else ops.shift_right
                above = shift(plane, ops.const(abs(by), wide)) if by else plane
                words[first + m] = ops.bitwise_or(words[first + m], ops.bitwise_and(above, mask))
        return [ib.let("word", word) for word in words]

    def _added(self, total: Any, word: PrimExpr, at: tuple[Any, ...], k: Any) -> Any:
        """Return the sums with the products of four elements added."""
        data = self.v.load(self.integers, at, k, 4)
        if self.entry.b_dtype != dtypes.scalar_of(word.dtype):
            like = dtypes.with_lanes(self.entry.b_dtype, 4 * self.lanes)
            word = E.Call(like, "reinterpret", (word,))
        return self.entry.call(data, word, total)


def row_tiles(
    ib: builder.IRBuilder, rows: Any, tile: int, vectors: int, together: Callable[[int], int]
) -> Iterator[tuple[Any, int, Any, int]]:
    """Open the loops over whole tiles of rows, the rest four at a time, and one by one.

    Yields within each a first vector of outputs, how many, a first row, and how many; `together`
    says the vectors for so many rows.
    """
    done: Any = 0
    left = rows
    for at, size in enumerate(dict.fromkeys(t for t in (tile, 4, 1) if t <= tile)):
        if at and isinstance(left, int) and left == 0:
            break
        count, width = left // size, together(size)
        first = done
        with (
            ib.for_range(0, vectors // width, "part") as part,
            ib.for_range(0, count, "rows") as block,
        ):
            yield part * width, width, first + block * size, size
        done, left = done + count * size, left - count * size
