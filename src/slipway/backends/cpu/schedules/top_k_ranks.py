"""Rows in order by ranks: how many elements come before each one, counted in vectors.

    for i in steps of tile:                  # `tile` ranks in registers
        for j in range(length):
            ranks[i : i + tile] += keys[j] < keys[i : i + tile]     # or <=, of what stands in front
    for i in range(length):
        values[ranks[i]], positions[ranks[i]] = x[i], i                # where ranks[i] < k

That is a square of steps, and not one of them is a branch: up to some hundred elements it is faster
than whatever compares fewer of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.cpu.schedules.sort_ways import (
    RANKS,
    RowLoops,
    computed_by,
    cost_by,
    is_best,
    key_lanes,
    key_of,
)
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.ir import ops
from slipway.relay.ops.tensor.loops import WORTH_SHARING
from slipway.relay.types import TensorType

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.ir.builder import BufferVar
    from slipway.ir.expr import PrimExpr
    from slipway.relay.ops.tensor.sort import TopKAttrs


@dataclass(frozen=True)
class RanksKnobs(Knobs):
    """The `lanes` of a vector, and how many `vectors` of ranks are counted together."""

    lanes: int
    vectors: int


def ranks_of(problem: Problem, count: int) -> RanksKnobs:
    """Return the default knobs where `count` elements of a row are put in order."""
    (data,) = problem.in_types
    assert isinstance(data, TensorType)
    lanes = key_lanes(problem.target, data.dtype)
    return RanksKnobs(lanes, min(4, -(-count // lanes)))


def _default(problem: Problem) -> RanksKnobs:
    return ranks_of(problem, problem.in_types[0].shape[problem.attrs.axis])


def ranks_space(problem: Problem) -> Space:
    """Return the legal knobs: vectors have the lanes of the keys' type."""
    return {"lanes": [ranks_of(problem, 1).lanes], "vectors": [1, 2, 3, 4, 6, 8]}


class RankLoops(RowLoops):
    """Builds the loops of all rows from their buffers: `ranked` keys of each are put in order."""

    def __init__(
        self, attrs: TopKAttrs, data: Buffer, outs: Sequence[Buffer], knobs: RanksKnobs
    ) -> None:
        super().__init__(attrs, data, outs)
        self.knobs = knobs
        self.ranked = self.length
        self.padded = -(-self.ranked // knobs.lanes) * knobs.lanes

    def statements(self) -> Any:
        """Return the loops over all rows."""
        ib = self.ib
        rows = self.around * self.inside
        shared = "parallel" if rows * self.length >= WORTH_SHARING else "serial"
        with ib.for_range(0, rows, "row", kind=shared) as row:
            outer = ops.floordiv(row, self.inside)
            inner = ops.floormod(row, self.inside)
            keys = ib.allocate(self.kind, (self.padded,), "keys")
            ranks = ib.allocate(self.kind, (self.padded,), "ranks")
            self.write_keys(keys, lambda i: self.x[outer, i, inner])
            self.count_all(keys, ranks)
            with ib.for_range(0, self.length, "i") as i:
                rank = ib.let("rank", ranks[i].astype("int32"))
                if self.count < self.length:
                    with ib.if_scope(rank < self.count):
                        self.place(outer, inner, i, rank)
                else:
                    self.place(outer, inner, i, rank)
        return ib.get()

    def place(self, outer: PrimExpr, inner: PrimExpr, i: PrimExpr, rank: PrimExpr) -> None:
        """Store element `i` of a row in the place of its rank."""
        values, positions = self.results
        values[outer, rank, inner] = self.x[outer, i, inner]
        positions[outer, rank, inner] = ops.cast(i, positions.dtype)

    def write_keys(self, keys: BufferVar, element: Callable[[PrimExpr], Any]) -> None:
        """Write the keys of a row; what fills the last vector comes after all of them."""
        ib, lanes = self.ib, self.knobs.lanes
        whole, tail = divmod(self.length, lanes)
        if whole:
            with (
                ib.for_range(0, whole, "block") as block,
                ib.for_range(0, lanes, "lane", kind="vectorize") as lane,
            ):
                at = block * lanes + lane
                keys[at] = key_of(element(at), self.rises)
        with ib.for_range(whole * lanes, self.length, "i") as i:
            keys[i] = key_of(element(i), self.rises)
        with ib.for_range(self.length, whole * lanes + lanes if tail else self.length, "i") as i:
            keys[i] = ops.max_value(self.kind)

    def count_all(self, keys: BufferVar, ranks: BufferVar) -> None:
        """Count the ranks of a row, `vectors` of them at a time and then what is left."""
        ib, (lanes, vectors) = self.ib, (self.knobs.lanes, self.knobs.vectors)
        blocks = self.padded // lanes
        whole, remainder = divmod(blocks, vectors)
        if whole:
            with ib.for_range(0, whole, "tile") as tile:
                self.count_tile(keys, ranks, ops.as_expr(tile * (vectors * lanes)), vectors)
        if remainder:
            with ib.new_scope():
                first = ops.const(whole * vectors * lanes, "int32")
                self.count_tile(keys, ranks, first, remainder)

    def count_tile(self, keys: BufferVar, ranks: BufferVar, first: PrimExpr, vectors: int) -> None:
        """Count the ranks of `vectors` vectors from `first` on."""
        ib, lanes, one = self.ib, self.knobs.lanes, ops.const(1, self.kind)
        own = [ib.allocate(self.kind, (lanes,), f"own{v}", scope="local") for v in range(vectors)]
        sums = [ib.allocate(self.kind, (lanes,), f"sum{v}", scope="local") for v in range(vectors)]

        def step(j: Any, here: int) -> None:
            """Count key j, of vector `here` of the tile, or of what is before it or after."""
            key = ib.let("key", keys[j])
            for v in range(vectors):
                with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                    mine = own[v][lane]
                    before = key < mine if here > v else key <= mine
                    if here == v:
                        first_of_equal = ops.bitwise_and(
                            ops.equal(key, mine), j < first + (v * lanes) + lane
                        )
                        before = ops.bitwise_or(key < mine, first_of_equal)
                    count = sums[v][lane]
                    sums[v][lane] = ops.select(before, count + one, count)

        for v in range(vectors):
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                own[v][lane] = keys[first + (v * lanes) + lane]
                sums[v][lane] = ops.const(0, self.kind)
        with ib.for_range(0, first, "j") as j:
            step(j, -1)
        for v in range(vectors):
            with ib.for_range(0, lanes, "j") as j:
                at = ops.as_expr(first + (v * lanes) + j)
                with ib.if_scope(at < self.ranked) if self.padded > self.ranked else ib.new_scope():
                    step(at, v)
        after = ops.minimum(first + vectors * lanes, self.ranked)
        with ib.for_range(after, self.ranked, "j") as j:
            step(j, vectors)
        for v in range(vectors):
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                ranks[first + (v * lanes) + lane] = sums[v][lane]


def _loops(attrs: TopKAttrs, data: Buffer, outs: list[Buffer], knobs: RanksKnobs) -> Any:
    return RankLoops(attrs, data, outs, knobs).statements()


register_strategy(
    "topk", name=RANKS, compute=computed_by(_loops), applies=partial(is_best, RANKS),
    default=_default, space=ranks_space, cost=cost_by(RANKS),
)(as_they_are(RanksKnobs))  # fmt: skip
