"""The loops of attention to a cache: rows of queries in tiles, keys and values in vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from slipway import dtypes
from slipway.ir import builder, ops
from slipway.ir import expr as E
from slipway.ir.builder import BufferVar
from slipway.ir.expr import PrimExpr
from slipway.ir.node import node
from slipway.relay.op_registry import Attrs
from slipway.relay.ops.nn.lanes import Lanes
from slipway.relay.ops.tensor.tensors import te
from slipway.relay.types import TensorType

LOWEST = -3.0e38  # a score that no finite one lies below
LARGEST_HALF = 65504.0  # an infinite key would make every score of its head NaN


@node
class CachedAttentionAttrs(Attrs):
    """`scale` None is one over the root of the head size.

    With a `window`, a position sees itself and the window - 1 before it; with a `softcap` c,
    scores become c tanh(score / c).
    """

    scale: float | None = None
    window: int = 0
    softcap: float = 0.0

    def factor(self, size: int) -> float:
        """Return the factor of the scores for heads of `size` elements."""
        return 1 / math.sqrt(size) if self.scale is None else self.scale


def cached_attention_kernel(
    attrs: CachedAttentionAttrs,
    inputs: Sequence[Any],
    out: TensorType,
    lanes: int,
    tile: int,
    sums: int,
    kind: str,
) -> list[Any]:
    """Return the attention, in vectors of `lanes`, `tile` rows at a time.

    Of values, at most `sums` vectors of weighted sums are made at a time.
    """

    def statements(ins: list[Any], outs: list[Any]) -> Any:
        return _Kernel(attrs, ins, outs[0], lanes, tile, sums, kind).statement()

    return [te().extern([out.shape], inputs, statements, "T_cached_attention", [out.dtype])]


class _Kernel:
    """Builds the statements: a task for each head of the caches."""

    def __init__(
        self,
        attrs: CachedAttentionAttrs,
        ins: list[Any],
        out: Any,
        lanes: int,
        tile: int,
        sums: int,
        kind: str,
    ) -> None:
        self.ib = ib = builder.create()
        self.attrs, self.kind = attrs, kind
        self.query, self.key, self.value, self.keys, self.values, self.position = map(
            ib.buffer_ptr, ins[:6]
        )
        self.slopes = ib.buffer_ptr(ins[6]) if len(ins) > 6 else None
        self.out = ib.buffer_ptr(out)
        self.rows, heads, size = ins[0].shape
        self.shared, blocks, self.size, self.block = (int(d) for d in ins[3].shape)
        self.slots = blocks * self.block
        self.group = int(heads) // self.shared
        self.lanes = lanes if self.block % lanes == 0 and self.size % lanes == 0 else 1
        self.v = Lanes(ib, self.lanes)
        self.tile, self.sums = tile, sums
        self.factor = attrs.factor(int(size))

    def statement(self) -> Any:
        """Return all loops."""
        ib = self.ib
        with ib.for_range(0, self.shared, "head", kind=self.kind) as head:
            start = ib.let("start", self.position[0])
            self._join(head, start)
            # A row is a position with one of the heads of the group.
            count = self.rows * self.group
            whole = count // self.tile
            with ib.for_range(0, whole, "tile") as tile:
                self._attend(head, start, tile * self.tile, self.tile)
            if not (isinstance(whole, int) and whole * self.tile == count) and self.tile > 1:
                with ib.for_range(whole * self.tile, count, "row") as row:
                    self._attend(head, start, row, 1)
        return ib.get()

    def _join(self, head: PrimExpr, start: PrimExpr) -> None:
        ib, v = self.ib, self.v
        with ib.for_range(0, self.rows, "s") as s:
            with ib.for_range(0, self.size, "d") as d:
                block, lane = self._position(start + s)
                self.keys[head, block, d, lane] = self._kept(self.key[s, head, d], self.keys, 1)

            def join(d: Any, n: int) -> None:
                value = self._kept(v.load(self.value, (s, head), d, n), self.values, n)
                v.store(self.values, (head, start + s), d, value, n)

            v.over(self.size, join)

    def _kept(self, joining: Any, cache: BufferVar, n: int) -> Any:
        """Return `n` keys or values as the cache keeps them."""
        if cache.dtype == "float16":
            most, lowest = (
                self.v.all(ops.const(limit, "float32"), n)
                for limit in (LARGEST_HALF, -LARGEST_HALF)
            )
            joining = ops.maximum(ops.minimum(joining, most), lowest)
        return ops.cast(joining, dtypes.with_lanes(cache.dtype, n))

    def _held(self, cache: BufferVar, at: Any, last: PrimExpr, n: int) -> Any:
        """Return `n` elements of a cache to compute with."""
        return ops.cast(self.v.load(cache, at, last, n), dtypes.with_lanes("float32", n))

    def _position(self, position: PrimExpr) -> tuple[Any, Any]:
        """Return the block of a position, and where it is in it."""
        return ops.floordiv(position, self.block), ops.floormod(position, self.block)

    def _attend(self, head: PrimExpr, start: PrimExpr, first: PrimExpr, rows: int) -> None:
        """Compute `rows` rows from row `first`."""
        ib, n = self.ib, self.lanes
        scores = ib.allocate("float32", (rows, self.slots), "scores")
        positions = [(ops.floordiv(first + r, self.group), ops.floormod(first + r, self.group))
                  for r in range(rows)]  # fmt: skip
        positions = [(ib.let("s", s), ib.let("h", head * self.group + h)) for s, h in positions]
        last = ib.let("last", start + positions[-1][0])  # the last position that any row sees
        begin: Any = 0
        if self.attrs.window:
            seen = start + positions[0][0] - (self.attrs.window - 1)
            begin = ib.let("begin", ops.floordiv(ops.maximum(seen, 0), n))
        vectors = ib.let("vectors", ops.floordiv(last, n) + 1)
        largest = self._scores(head, start, scores, positions, begin, vectors)
        sums = self._exponentials(scores, largest, begin, vectors, rows)
        self._mix(head, scores, sums, positions, begin, last)

    def _scores(
        self,
        head: PrimExpr,
        start: PrimExpr,
        scores: BufferVar,
        positions: Any,
        begin: PrimExpr,
        vectors: PrimExpr,
    ) -> Any:
        ib, v, n, rows = self.ib, self.v, self.lanes, len(positions)
        largest = ib.allocate("float32", (rows, n), "largest", scope="local")
        for r in range(rows):
            v.store(largest, (r,), 0, v.all(ops.const(LOWEST, "float32"), n), n)
        with ib.for_range(begin, vectors, "t") as block:
            sums = ib.allocate("float32", (rows, n), "sums", scope="local")
            for r in range(rows):
                v.store(sums, (r,), 0, v.zero("float32", n), n)
            at, lane = self._position(block * n)
            with ib.for_range(0, self.size, "d") as d:
                key = ib.let("key", self._held(self.keys, (head, at, d), lane, n))
                for r, (s, h) in enumerate(positions):
                    more = v.all(self.query[s, h, d], n) * key
                    v.store(sums, (r,), 0, v.load(sums, (r,), 0, n) + more, n)
            for r, (s, h) in enumerate(positions):
                score = v.load(sums, (r,), 0, n) * v.all(ops.const(self.factor, "float32"), n)
                if self.attrs.softcap:
                    cap = v.all(ops.const(self.attrs.softcap, "float32"), n)
                    score = cap * te().tanh(score / cap)
                at = v.ramp(block * n, n)
                if self.slopes is not None:
                    away = ops.cast(at - v.all(start + s, n), dtypes.with_lanes("float32", n))
                    score = score + v.all(self.slopes[h], n) * away
                sees = at <= v.all(start + s, n)
                if self.attrs.window:
                    before = v.all(start + s - self.attrs.window, n)
                    sees = ops.logical_and(sees, at > before)
                score = E.Select(sees, score, v.all(ops.const(LOWEST, "float32"), n))
                score = ib.let("score", score)
                v.store(scores, (r,), block * n, score, n)
                v.store(largest, (r,), 0, ops.maximum(v.load(largest, (r,), 0, n), score), n)
        return largest

    def _exponentials(
        self, scores: BufferVar, largest: BufferVar, begin: PrimExpr, vectors: PrimExpr, rows: int
    ) -> Any:
        """Turn scores into exponentials; return one over their sum, by row."""
        ib, v, n = self.ib, self.v, self.lanes
        over = ib.allocate("float32", (rows,), "over", scope="local")
        for r in range(rows):
            top = largest[r, 0]
            for lane in range(1, n):
                top = ops.maximum(top, largest[r, lane])
            top = ib.let("top", top)
            total = ib.allocate("float32", (n,), "total", scope="local")
            v.store(total, (), 0, v.zero("float32", n), n)
            with ib.for_range(begin, vectors, "t") as block:
                exponential = te().exp(v.load(scores, (r,), block * n, n) - v.all(top, n))
                exponential = ib.let("exponential", exponential)
                v.store(scores, (r,), block * n, exponential, n)
                v.store(total, (), 0, v.load(total, (), 0, n) + exponential, n)
            whole = total[0]
            for lane in range(1, n):
                whole = whole + total[lane]
            over[r] = ops.const(1.0, "float32") / whole
        return over

    def _mix(
        self,
        head: PrimExpr,
        scores: BufferVar,
        over: BufferVar,
        positions: Any,
        begin: PrimExpr,
        last: PrimExpr,
    ) -> None:
        """Write the sums of values, each by its exponential."""
        ib, v, n, rows = self.ib, self.v, self.lanes, len(positions)
        together = max(1, min(self.size // n, self.sums // rows))
        while self.size // n % together:
            together -= 1
        with ib.for_range(0, self.size // n // together, "part") as part:
            sums = ib.allocate("float32", (rows, together, n), "mixed", scope="local")
            for r in range(rows):
                for j in range(together):
                    v.store(sums, (r, j), 0, v.zero("float32", n), n)
            with ib.for_range(begin * n, last + 1, "t") as t:
                for j in range(together):
                    at = (part * together + j) * n
                    value = ib.let("value", self._held(self.values, (head, t), at, n))
                    for r in range(rows):
                        more = v.all(scores[r, t], n) * value
                        v.store(sums, (r, j), 0, v.load(sums, (r, j), 0, n) + more, n)
            for r, (s, h) in enumerate(positions):
                for j in range(together):
                    mixed = v.load(sums, (r, j), 0, n) * v.all(over[r], n)
                    v.store(self.out, (s, h), (part * together + j) * n, mixed, n)
