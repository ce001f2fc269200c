"""The loops of products with the matrices of experts: rows are taken expert by expert.

A count of the rows of each expert says where its rows lie in an order that is made first.  A task
then computes a tile of outputs for all experts in turn, with tiles of an expert's rows, so that a
vector of weights is loaded (and unpacked) once for them; experts without rows are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from slipway import te
from slipway.backends.cpu.schedules.matmul.block_kernel import BlockKernel, row_tiles
from slipway.ir import builder, ops
from slipway.ir.builder import BufferVar
from slipway.ir.expr import PrimExpr
from slipway.ir.hardware import HardwareIntrinsic
from slipway.relay.dims import size_of
from slipway.relay.ops.nn.lanes import Lanes
from slipway.relay.ops.packed.expert_dense import PackedExpertAttrs
from slipway.relay.types import TensorType


class _Order:
    """The rows expert by expert: those of expert e lie from `begins[e]` to `begins[e + 1]`."""

    def __init__(self, ib: builder.IRBuilder, experts: BufferVar, shape: Any, count: int) -> None:
        self.ib, self.experts, self.count = ib, experts, count
        self.each = size_of(shape[1])
        self.rows = shape[0] * self.each
        self.begins = ib.allocate("int32", (count + 1,), "begins")
        self.row = ib.allocate("int32", (self.rows,), "order")
        self._make()

    def _make(self) -> None:
        ib, begins = self.ib, self.begins
        one = ops.const(1, "int32")
        ends = ib.allocate("int32", (self.count,), "ends")
        with ib.for_range(0, self.count + 1, "e") as e:
            begins[e] = ops.const(0, "int32")
        with ib.for_range(0, self.rows, "p") as p:
            expert = self._expert(p)
            begins[expert + 1] = begins[expert + 1] + one
        with ib.for_range(0, self.count, "e") as e:
            begins[e + 1] = begins[e] + begins[e + 1]
            ends[e] = begins[e]
        with ib.for_range(0, self.rows, "p") as p:
            expert = self._expert(p)
            self.row[ends[expert]] = ops.cast(p, "int32")
            ends[expert] = ends[expert] + one

    def _expert(self, p: PrimExpr) -> PrimExpr:
        s, j = self.pair(p)
        most = ops.const(self.count - 1, "int32")
        found = ops.minimum(self.experts[s, j], most)
        return self.ib.let("expert", ops.maximum(found, ops.const(0, "int32")))

    def pair(self, p: PrimExpr) -> tuple[Any, Any]:
        """Return the token and the place among its experts of a row."""
        return ops.floordiv(p, self.each), ops.floormod(p, self.each)

    @contextmanager
    def experts_in_use(self) -> Iterator[tuple[Any, Any, Any]]:
        """Open the loop over experts that have rows: yield one, its first row, and how many."""
        with self.ib.for_range(0, self.count, "e") as e:
            begin = self.ib.let("begin", self.begins[e])
            count = self.ib.let("count", self.begins[e + 1] - begin)
            with self.ib.if_scope(count > 0):
                yield e, begin, count

    def of(self, position: PrimExpr) -> tuple[Any, Any]:
        """Return token and place of the row at a position of the order."""
        return self.pair(self.row[position])


def expert_block_kernel(
    attrs: PackedExpertAttrs,
    inputs: Sequence[te.Tensor],
    out: TensorType,
    entry: HardwareIntrinsic,
    tile: int,
    kind: str,
    lanes: int,
) -> list[te.Tensor]:
    """Return products with packed weights, `tile` rows of an expert at a time."""

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        return _BlockExperts(attrs, ins, outs[0], tile, kind, lanes, entry).statement()

    return [te.extern([out.shape], inputs, statements, "T_expert_dense", [out.dtype])]


class _BlockExperts(BlockKernel):
    """The data is quantised in the order of the experts."""

    def __init__(
        self,
        attrs: PackedExpertAttrs,
        ins: list[Any],
        out: Any,
        tile: int,
        kind: str,
        lanes: int,
        entry: HardwareIntrinsic,
    ) -> None:
        super().__init__(attrs, ins[:4], out, tile, kind, lanes, entry)
        self.shape, self.shared = ins[4].shape, size_of(ins[0].shape[1]) == 1
        self.experts = self.ib.buffer_ptr(ins[4])
        self.matrices = attrs.matrices
        self.tiles //= attrs.matrices
        self.expert: PrimExpr = ops.const(0, "int32")

    def prepare(self) -> None:
        """Order the rows, then make int8 of them."""
        self.order = _Order(self.ib, self.experts, self.shape, self.matrices)
        self.rows = self.order.rows
        super().prepare()

    def stored(self, tile: PrimExpr) -> PrimExpr:
        found: PrimExpr = self.expert * self.tiles + tile
        return found

    def read_at(self, row: PrimExpr) -> tuple[Any, ...]:
        s, j = self.order.of(row)
        return (s, 0 if self.shared else j)

    def written_at(self, row: PrimExpr) -> tuple[Any, ...]:
        return self.order.of(row)

    def rows_of(self, tile: PrimExpr) -> None:
        with self.order.experts_in_use() as (self.expert, begin, count):
            self.some_rows(tile, begin, count)


def expert_float_kernel(
    inputs: Sequence[te.Tensor], out: TensorType, rows: int, kind: str, lanes: int
) -> list[te.Tensor]:
    """Return products with weights of float32, `rows` rows of an expert at a time."""

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        return _FloatExperts(ins, outs[0], rows, kind, lanes).statement()

    return [te.extern([out.shape], inputs, statements, "T_expert_dense", [out.dtype])]


class _FloatExperts:
    """Dot products along rows of the weight: some outputs of some rows at a time."""

    TOGETHER = 4  # outputs

    def __init__(self, ins: list[Any], out: Any, rows: int, kind: str, lanes: int) -> None:
        self.ib = ib = builder.create()
        self.kind, self.most = kind, rows
        self.data, self.weight, experts = map(ib.buffer_ptr, ins)
        self.out = ib.buffer_ptr(out)
        self.matrices, self.units, self.depth = (size_of(d) for d in ins[1].shape)
        self.shared = size_of(ins[0].shape[1]) == 1
        self.lanes = min(lanes, 1 << (self.depth.bit_length() - 1))
        self.v = Lanes(ib, self.lanes)
        self.order = _Order(ib, experts, ins[2].shape, self.matrices)

    def statement(self) -> Any:
        """Return all loops."""
        ib, together = self.ib, self.TOGETHER
        whole = self.units // together
        if whole:
            with ib.for_range(0, whole, "tile", kind=self.kind) as tile:
                self._experts(tile * together, together)
        if self.units % together:
            with ib.for_range(whole * together, self.units, "unit") as unit:
                self._experts(unit, 1)
        return ib.get()

    def _experts(self, unit: PrimExpr, together: int) -> None:
        with self.order.experts_in_use() as (e, begin, count):
            for _, _, row, size in row_tiles(self.ib, count, self.most, 1, lambda _: 1):
                self._product(e, unit, together, begin + row, size)

    def _product(
        self, e: PrimExpr, unit: PrimExpr, together: int, row: PrimExpr, rows: int
    ) -> None:
        ib, v, n = self.ib, self.v, self.lanes
        pairs = [self.order.of(row + r) for r in range(rows)]
        pairs = [(ib.let("s", s), ib.let("j", j)) for s, j in pairs]
        sums = ib.allocate("float32", (rows, together, n), "sums", scope="local")
        for r in range(rows):
            for u in range(together):
                v.store(sums, (r, u), 0, v.zero("float32", n), n)
        with ib.for_range(0, self.depth // n, "k") as k:
            weights = [
                ib.let("w", v.load(self.weight, (e, unit + u), k * n, n)) for u in range(together)
            ]
            for r, pair in enumerate(pairs):
                x = ib.let("x", v.load(self.data, self._read_at(pair), k * n, n))
                for u, w in enumerate(weights):
                    v.store(sums, (r, u), 0, v.load(sums, (r, u), 0, n) + x * w, n)
        for r, (s, j) in enumerate(pairs):
            for u in range(together):
                self.out[s, j, unit + u] = self._reduced(sums, (r, u))
        with ib.for_range(self.depth // n * n, self.depth, "k") as k:
            for s, j in pairs:
                for u in range(together):
                    more = self.data[(*self._read_at((s, j)), k)] * self.weight[e, unit + u, k]
                    self.out[s, j, unit + u] = self.out[s, j, unit + u] + more

    def _read_at(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        return pair[0], 0 if self.shared else pair[1]

    def _reduced(self, sums: BufferVar, at: tuple[int, int]) -> PrimExpr:
        """Return the sum of the lanes, half by half."""
        v, n = self.v, self.lanes
        while n > 1:
            n //= 2
            v.store(sums, at, 0, v.load(sums, at, 0, n) + v.load(sums, at, n, n), n)
        return sums[(*at, 0)]
