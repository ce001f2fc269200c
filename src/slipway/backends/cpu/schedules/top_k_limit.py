"""The first few of a row by the key of the last of them, which is found bit by bit.

    limit = the least key
    for bit in bits of a key, the highest first:
        if fewer than k of the keys are below limit + bit:      # counted in vectors
            limit += bit
    for i in range(length):
        if keys[i] <= limit: on_limit[n++] = i
    chosen = on_limit, without the last of those on the limit
    the ranks of the chosen ones, as of `top_k_ranks`

No step depends on how the elements lie: a heap refuses most of them at its root, but waits for each
that it takes, and for all of them at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.cpu.schedules.sort_ways import (
    LIMIT,
    computed_by,
    cost_by,
    is_best,
    limit_bits,
)
from slipway.backends.cpu.schedules.top_k_ranks import RankLoops, RanksKnobs, ranks_of, ranks_space
from slipway.backends.strategy import Problem, register_strategy
from slipway.ir import ops
from slipway.relay.ops.tensor.loops import WORTH_SHARING

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.ir.builder import BufferVar
    from slipway.ir.expr import PrimExpr
    from slipway.relay.ops.tensor.sort import TopKAttrs


SUMS = 4  # vectors of counts


def wanted_ranks(problem: Problem) -> RanksKnobs:
    """Return the default knobs: what is wanted of a row is put in order."""
    return ranks_of(problem, problem.attrs.k)


class LimitLoops(RankLoops):
    """Builds the loops of all rows from their buffers."""

    def __init__(
        self, attrs: TopKAttrs, data: Buffer, outs: Sequence[Buffer], knobs: RanksKnobs
    ) -> None:
        super().__init__(attrs, data, outs, knobs)
        self.whole, self.bits = self.padded, limit_bits(data.dtype)
        self.ranked = self.count
        self.padded = -(-self.ranked // knobs.lanes) * knobs.lanes

    def statements(self) -> Any:
        """Return the loops over all rows."""
        ib, rows = self.ib, self.around * self.inside
        shared = "parallel" if rows * self.length >= WORTH_SHARING else "serial"
        with ib.for_range(0, rows, "row", kind=shared) as row:
            outer = ops.floordiv(row, self.inside)
            inner = ops.floormod(row, self.inside)
            keys = ib.allocate(self.kind, (self.whole,), "keys")
            on_limit = ib.allocate("int32", (self.length + 1,), "on_limit")
            chosen = ib.allocate("int32", (self.padded + 1,), "chosen")
            taken = ib.allocate(self.kind, (self.padded + 1,), "taken")
            ranks = ib.allocate(self.kind, (self.padded,), "ranks")
            self.write_keys(keys, lambda i: self.x[outer, i, inner])
            limit, room = self.find_limit(keys, self.whole // self.knobs.lanes)
            self.choose(keys, self.length, limit, room, on_limit, chosen, taken)
            self.put_in_order(outer, inner, chosen, taken, ranks)
        return ib.get()

    def put_in_order(self, outer: Any, inner: Any, chosen: Any, taken: Any, ranks: Any) -> None:
        """Store the chosen elements of a row by the ranks of their keys."""
        ib = self.ib
        with ib.for_range(self.ranked, self.padded, "i") as i:
            taken[i] = ops.const(0, self.kind)
        self.count_all(taken, ranks)
        with ib.for_range(0, self.ranked, "n") as n:
            rank = ib.let("rank", ranks[n].astype("int32"))
            self.place(outer, inner, ib.let("i", chosen[n]), rank)

    def find_limit(self, keys: BufferVar, blocks: PrimExpr | int) -> tuple[Any, Any]:
        """Return the key of the last element that is wanted, and how many with it are.

        `blocks` vectors of keys are looked at; where their number is computed, it is a multiple of
        those that are counted at once.
        The search ends early where as many as are wanted are below a key.
        """
        ib, bits, kind = self.ib, self.bits, self.kind
        limit = ib.allocate(kind, (1,), "limit", scope="local")
        bit = ib.allocate(kind, (1,), "bit", scope="local")
        below = ib.allocate("int32", (1,), "below", scope="local")
        found = ib.allocate("int32", (1,), "found", scope="local")
        one, zero = ops.const(1, kind), ops.const(0, kind)
        limit[0], bit[0] = ops.const(-(1 << bits), kind), ops.const(1 << bits - 1, kind)
        below[0] = ops.const(0, "int32")
        self.count_below(keys, blocks, zero, found)  # the first step is to zero, which has no bit
        middle = zero
        for first in (True, False):
            with (
                ib.new_scope()
                if first
                else ib.while_loop(
                    ops.logical_and(bit[0] > zero, ops.not_equal(found[0], self.count))
                )
            ):
                if not first:
                    middle = ib.let("middle", limit[0] + bit[0])
                    self.count_below(keys, blocks, middle, found)
                    bit[0] = ops.shift_right(bit[0], one)
                is_below = ib.let("is_below", found[0] < self.count)
                limit[0] = ops.select(is_below, middle, limit[0])
                below[0] = ops.select(is_below, found[0], below[0])
                with ib.if_scope(ops.equal(found[0], self.count)):
                    # All below it are wanted, and none that equal it.
                    limit[0], below[0] = middle - one, ops.const(0, "int32")
        room = ops.select(ops.equal(found[0], self.count), self.count, self.count - below[0])
        return limit, room

    def count_below(
        self, keys: BufferVar, blocks: PrimExpr | int, limit: PrimExpr, found: BufferVar
    ) -> None:
        """Count the keys below `limit`, in several vectors that do not wait for each other."""
        ib, lanes, kind = self.ib, self.knobs.lanes, self.kind
        one, zero = ops.const(1, kind), ops.const(0, kind)
        sums = min(SUMS, blocks) if isinstance(blocks, int) else SUMS
        counts = [ib.allocate(kind, (lanes,), f"counts{n}", scope="local") for n in range(sums)]

        def count(block: Any, number: int) -> None:
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                is_below = keys[block * lanes + lane] < limit
                own = counts[number]
                own[lane] = own[lane] + ops.select(is_below, one, zero)

        for own in counts:
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                own[lane] = zero
        steps = blocks // sums if isinstance(blocks, int) else ops.floordiv(blocks, sums)
        with ib.for_range(0, steps, "block") as block:
            for number in range(sums):
                count(block * sums + number, number)
        for number in range(blocks % sums if isinstance(blocks, int) else 0):
            count(ops.const(blocks // sums * sums + number, "int32"), number)
        for number in range(1, sums):
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                counts[0][lane] = counts[0][lane] + counts[number][lane]
        found[0] = ops.const(0, "int32")
        with ib.for_range(0, lanes, "lane", kind="unroll") as lane:
            found[0] = found[0] + counts[0][lane].astype("int32")

    def choose(
        self,
        keys: BufferVar,
        length: PrimExpr | int,
        limit: BufferVar,
        room: PrimExpr,
        on_limit: BufferVar,
        chosen: BufferVar,
        taken: BufferVar,
    ) -> None:
        """Note the elements up to the limit; of those on it as many as there is room for."""
        ib = self.ib
        last = ib.let("last", limit[0])
        left = ib.allocate("int32", (1,), "left", scope="local")
        count = ib.allocate("int32", (1,), "count", scope="local")
        one, zero = ops.const(1, "int32"), ops.const(0, "int32")
        left[0], count[0] = room, zero
        # What is passed by is written over by the next, or stands behind the last.
        with ib.for_range(0, length, "i") as i:
            on_limit[count[0]] = i
            count[0] = count[0] + ops.select(keys[i] <= last, one, zero)
        there = ib.let("there", count[0])
        count[0] = zero
        with ib.for_range(0, there, "n") as n:
            i = ib.let("i", on_limit[n])
            key = ib.let("key", keys[i])
            chosen[count[0]], taken[count[0]] = i, key
            is_last = ops.equal(key, last)
            wanted = ib.let("wanted", ops.bitwise_or(ops.logical_not(is_last), left[0] > 0))
            left[0] = left[0] - ops.select(is_last, one, zero)
            count[0] = count[0] + ops.select(wanted, one, zero)


def _loops(attrs: TopKAttrs, data: Buffer, outs: list[Buffer], knobs: RanksKnobs) -> Any:
    return LimitLoops(attrs, data, outs, knobs).statements()


register_strategy(
    "topk", name=LIMIT, compute=computed_by(_loops), applies=partial(is_best, LIMIT),
    default=wanted_ranks, space=ranks_space, cost=cost_by(LIMIT),
)(as_they_are(RanksKnobs))  # fmt: skip
