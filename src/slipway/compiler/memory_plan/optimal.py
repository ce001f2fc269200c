"""The smallest arena, found by an exact search and proven, or an honest "not proven".

Law.  Take any valid plan and slide its blocks down, lowest first, until each rests on 0 or on a
neighbour in time: it stays valid and grows nowhere.  So it is enough to look at plans built by
placing blocks in the order of their offsets, each at the lowest offset that is not below the last
one.  At every node of that search tree each step t has a floor: what the placed blocks alive at t
reach up to, and at least the last offset.  If the floor plus the sizes still to come at t exceeds
the target at some t, nothing below that node helps.

At a node the lowest place is tried first, of equals the block that fills most bytes and steps.
Blocks of equal life, size and alignment that share with none are interchangeable, so only the
first of them is tried.

The search counts its work (blocks looked at, and their neighbours), not time, so that it gives the
same plan on every machine; a time budget can be added for people who wait.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from slipway.compiler.memory_plan.block import Block, Share, align_up

WORK = 500_000
MOST_BLOCKS = 350  # the search recurses twice per block
FEW = 16  # neighbours of a block that are looked at as one piece of work


@dataclass(frozen=True)
class Search:
    """What the search found: offsets (None when not below the target), whether it is exhausted."""

    offsets: list[int] | None
    complete: bool
    work: int


class _Searcher:
    def __init__(
        self,
        blocks: Sequence[Block],
        shares: Sequence[Share],
        limit: int,
        work: int,
        deadline: float | None,
    ) -> None:
        self.blocks = blocks
        self.limit = limit
        self.work_left = work
        self.deadline = deadline
        self.complete = True
        self.lead = {(s.output, s.input): s.lead_bytes for s in shares if not s.exact}
        self.sharing = {index for pair in self.lead for index in pair}
        self.steps = sorted({b.first for b in blocks})
        self.alive = [
            [t for t, step in enumerate(self.steps) if b.first <= step <= b.last] for b in blocks
        ]
        self.neighbours = [
            [j for j in range(len(blocks)) if j != i and blocks[i].meets(blocks[j])]
            for i in range(len(blocks))
        ]
        self.weight = [-(-len(others) // FEW) or 1 for others in self.neighbours]
        # What a share can save at its step; the bound must not count those bytes twice.
        self.slack = [0] * len(self.steps)
        for (out, into), lead in self.lead.items():
            union = max(blocks[out].size_bytes, lead + blocks[into].size_bytes)
            saving = max(0, blocks[out].size_bytes + blocks[into].size_bytes - union)
            self.slack[self.steps.index(blocks[out].first)] += saving
        self.sizes = [block.size_bytes for block in blocks]
        self.offsets = [-1] * len(blocks)
        # Where placed blocks end, and twice no block, so that each getter gives a tuple.
        self.ends = [-1] * (len(blocks) + 2)
        none = (len(blocks), len(blocks) + 1)
        self.ends_of = [itemgetter(*others, *none) for others in self.neighbours]
        self.floor = [0] * len(self.steps)
        # By step: bytes still to be placed, less what shares save there.
        self.ahead = [-saved for saved in self.slack]
        for index, block in enumerate(blocks):
            for t in self.alive[index]:
                self.ahead[t] += block.size_bytes

    def lowest(self, index: int, last: int) -> int:
        """Return the lowest offset, not below `last`, above every placed neighbour."""
        if index not in self.sharing:  # most blocks
            offset = max(last, *self.ends_of[index](self.ends))
        else:
            offset = last
            for other in self.neighbours[index]:
                if (start := self.offsets[other]) >= 0:
                    lead = self.lead.get((other, index))
                    end = self.ends[other] if lead is None else min(self.ends[other], start + lead)
                    offset = max(offset, end)
        return align_up(offset, self.blocks[index].alignment_bytes)

    def hopeless(self, index: int, last: int) -> bool:
        """Return whether some step cannot take what is still to come within the limit.

        `index` was placed last, so that only where it is alive a step's floor has changed.
        """
        floor, ahead, limit = self.floor, self.ahead, self.limit
        if last + max(ahead) > limit:
            return True
        return any(floor[t] + ahead[t] > limit for t in self.alive[index])

    def run(self, unplaced: list[int], last: int) -> bool:
        """Place the rest; True when all lie within the limit."""
        if not unplaced:
            return True
        self.work_left -= sum(self.weight[index] for index in unplaced)
        if self.work_left < 0 or (self.deadline is not None and time.monotonic() > self.deadline):
            self.complete = False
            return False
        options = []
        sizes, alive, limit = self.sizes, self.alive, self.limit
        for index in unplaced:
            offset = self.lowest(index, last)
            if offset + sizes[index] > limit:
                return False  # offsets only grow: this block can never be placed in time
            options.append((offset, -sizes[index] * len(alive[index]), index))
        options.sort()
        seen: set[tuple[int, int, int, int]] = set()
        for offset, _, index in options:
            if index not in self.sharing:
                block = self.blocks[index]
                kind = (block.size_bytes, block.first, block.last, block.alignment_bytes)
                if kind in seen:
                    continue
                seen.add(kind)
            if self._descend(index, offset, [i for i in unplaced if i != index]):
                return True
            if not self.complete:
                return False
        return False

    def _descend(self, index: int, offset: int, rest: list[int]) -> bool:
        alive, floor, ahead, size = self.alive[index], self.floor, self.ahead, self.sizes[index]
        saved, end = [floor[t] for t in alive], offset + size
        self.offsets[index], self.ends[index] = offset, end
        for t in alive:
            if floor[t] < end:
                floor[t] = end
            ahead[t] -= size
        if not self.hopeless(index, offset) and self.run(rest, offset):
            return True
        self.offsets[index] = self.ends[index] = -1
        for t, before in zip(alive, saved, strict=True):
            floor[t] = before
            ahead[t] += size
        return False


def search_below(
    blocks: Sequence[Block],
    shares: Sequence[Share],
    limit: int,
    work: int = WORK,
    time_budget_s: float | None = None,
) -> Search:
    """Look for a plan of at most `limit` bytes in one arena.

    Exact shares are not used: a caller merges such blocks, or accepts that the result holds
    for plans without them.
    """
    if len(blocks) > MOST_BLOCKS:
        return Search(None, False, 0)
    deadline = None if time_budget_s is None else time.monotonic() + time_budget_s
    searcher = _Searcher(blocks, shares, limit, work, deadline)
    found = searcher.run(list(range(len(blocks))), 0)
    return Search(searcher.offsets if found else None, searcher.complete, work - searcher.work_left)
