"""The first few of a long row: among the groups of elements whose best is one of the first few.

    smallest[g] = the smallest key of the elements g, g + width, g + 2 width, ...      # in vectors
    limit = the key that as many of `smallest` are not above as elements are wanted
    candidates = what is not above it of those groups
    the first few of the candidates, as of `top_k_limit`

As many groups have an element up to the limit as are wanted, so the first few are among them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.cpu.schedules.sort_ways import (
    GROUPS,
    computed_by,
    cost_by,
    group_steps,
    is_best,
)
from slipway.backends.cpu.schedules.top_k_limit import SUMS, LimitLoops, wanted_ranks
from slipway.backends.cpu.schedules.top_k_ranks import RanksKnobs, ranks_space
from slipway.backends.strategy import register_strategy
from slipway.ir import ops
from slipway.relay.ops.tensor.loops import WORTH_SHARING

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.ir.builder import BufferVar
    from slipway.relay.ops.tensor.sort import TopKAttrs


class _Groups(LimitLoops):
    """Builds the loops of all rows from their buffers."""

    def statements(self) -> Any:
        ib, rows, lanes = self.ib, self.around * self.inside, self.knobs.lanes
        steps, width = group_steps(self.length, self.count, lanes)
        whole = steps * width
        shared = "parallel" if rows * self.length >= WORTH_SHARING else "serial"
        with ib.for_range(0, rows, "row", kind=shared) as row:
            outer = ops.floordiv(row, self.inside)
            inner = ops.floormod(row, self.inside)
            keys = ib.allocate(self.kind, (whole,), "keys")
            positions = ib.allocate("int32", (whole + 1,), "positions")
            found = ib.allocate(self.kind, (whole + SUMS * lanes,), "found")
            on_limit = ib.allocate("int32", (whole + 1,), "on_limit")
            chosen = ib.allocate("int32", (self.padded + 1,), "chosen")
            taken = ib.allocate(self.kind, (self.padded + 1,), "taken")
            ranks = ib.allocate(self.kind, (self.padded,), "ranks")
            self.write_keys(keys, lambda i: self.x[outer, i, inner])
            with ib.for_range(self.whole, whole, "i") as i:
                keys[i] = ops.max_value(self.kind)
            count = self.find_candidates(keys, steps, width, on_limit, positions, found)
            blocks = ib.let("blocks", ops.floordiv(count + (SUMS * lanes - 1), SUMS * lanes) * SUMS)
            with ib.for_range(count, blocks * lanes, "i") as i:
                found[i] = ops.max_value(self.kind)
            limit, room = self.find_limit(found, blocks)
            self.choose(found, count, limit, room, on_limit, chosen, taken)
            with ib.for_range(0, self.ranked, "n") as n:
                chosen[n] = positions[chosen[n]]
            self.put_in_order(outer, inner, chosen, taken, ranks)
        return ib.get()

    def find_candidates(
        self,
        keys: BufferVar,
        steps: int,
        width: int,
        groups: BufferVar,
        positions: BufferVar,
        found: BufferVar,
    ) -> Any:
        """Write where the candidates of a row are, in this order, and their keys; return how many.

        Keys behind the end of the row are above all others, or equal the last of them.
        """
        ib, lanes = self.ib, self.knobs.lanes
        smallest = ib.allocate(self.kind, (width,), "smallest")
        with ib.for_range(0, width // lanes, "block") as block:
            best = ib.allocate(self.kind, (lanes,), "best", scope="local")
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                best[lane] = keys[block * lanes + lane]
            with (
                ib.for_range(1, steps, "step") as step,
                ib.for_range(0, lanes, "lane", kind="vectorize") as lane,
            ):
                at = step * width + block * lanes + lane
                best[lane] = ops.minimum(best[lane], keys[at])
            with ib.for_range(0, lanes, "lane", kind="vectorize") as lane:
                smallest[block * lanes + lane] = best[lane]
        limit, _ = self.find_limit(smallest, width // lanes)
        last = ib.let("last", limit[0])
        number = ib.allocate("int32", (1,), "number", scope="local")
        one, zero = ops.const(1, "int32"), ops.const(0, "int32")
        number[0] = zero
        # What is passed by is written over by the next, or stands behind the last.
        with ib.for_range(0, width, "group") as group:
            groups[number[0]] = group
            number[0] = number[0] + ops.select(smallest[group] <= last, one, zero)
        there = ib.let("there", number[0])
        number[0] = zero
        with (
            ib.for_range(0, steps, "step") as step,
            ib.for_range(0, there, "n") as n,
        ):
            at = ib.let("at", step * width + groups[n])
            key = ib.let("key", keys[at])
            positions[number[0]], found[number[0]] = at, key
            number[0] = number[0] + ops.select(key <= last, one, zero)
        return ib.let("count", number[0])


def _loops(attrs: TopKAttrs, data: Buffer, outs: list[Buffer], knobs: RanksKnobs) -> Any:
    return _Groups(attrs, data, outs, knobs).statements()


register_strategy(
    "topk", name=GROUPS, compute=computed_by(_loops), applies=partial(is_best, GROUPS),
    default=wanted_ranks, space=ranks_space, cost=cost_by(GROUPS),
)(as_they_are(RanksKnobs))  # fmt: skip
