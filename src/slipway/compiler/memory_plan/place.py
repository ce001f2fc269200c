"""Put blocks down one after the other, each as low as it can lie: what all heuristics share.

Who lives together is a list for each block as long as these lists are short.  Where many blocks
live all the time, a stack of a thousand steps say, the lists would grow with the square of the
model: then NumPy compares a block with all others at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from operator import add

import numpy as np

from slipway.compiler.memory_plan.block import Block, Pool, Share, align_up

_LONG = 64  # neighbours of a block on average, from which on they are not listed


class Placement:
    """The blocks of one problem with their neighbours in time, and the pools to place them in."""

    def __init__(
        self,
        blocks: Sequence[Block],
        shares: Sequence[Share],
        pools: Sequence[Pool],
        neighbours: list[list[int]] | None = None,
    ) -> None:
        """Find the neighbours of each block by its steps, unless they are given."""
        self.blocks = blocks
        self.pools = pools
        self.share_of = {(s.output, s.input): s for s in shares}
        self._sharing: dict[int, list[int]] = {}
        for share in shares:
            self._sharing.setdefault(share.output, []).append(share.input)
            self._sharing.setdefault(share.input, []).append(share.output)
        self._by_start = sorted(range(len(blocks)), key=lambda i: blocks[i].first)
        firsts = [blocks[i].first for i in self._by_start]
        lasts = sorted(block.last for block in blocks)
        self.conflicts = [
            bisect_right(firsts, block.last) - bisect_left(lasts, block.first) - 1
            for block in blocks
        ]
        self._is_dense = sum(self.conflicts) > _LONG * len(blocks)
        if neighbours is not None:
            self._neighbours = neighbours
            self.conflicts = [len(others) for others in neighbours]
            self._is_dense = False
        self._first = np.array([block.first for block in blocks])
        self._last = np.array([block.last for block in blocks])
        self._sizes = [block.size_bytes for block in blocks]
        self._size = np.array(self._sizes)
        names = [pool.name for pool in pools]
        self.choices = [
            [names.index(name) for name in block.pools] if block.pools else list(range(len(pools)))
            for block in blocks
        ]

    @cached_property
    def _neighbours(self) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in self.blocks]
        alive: list[int] = []
        for index in self._by_start:
            first = self.blocks[index].first
            alive = [other for other in alive if self.blocks[other].last >= first]
            for other in alive:
                found[index].append(other)
                found[other].append(index)
            alive.append(index)
        return found

    def neighbours(self, index: int) -> list[int]:
        """Return the blocks that are alive at some step of a block, by their first steps."""
        if not self._is_dense:
            return self._neighbours[index]
        block = self.blocks[index]
        return [i for i in self._by_start if i != index and self.blocks[i].meets(block)]

    def place(self, order: Sequence[int]) -> tuple[list[int], list[int]] | None:
        """Return (offset, pool) of each block, or None when one fits into none of its pools."""
        offsets: list[int] = [-1] * len(self.blocks)
        pool_of: list[int] = [0] * len(self.blocks)
        placed = _Placed(len(self.blocks)) if self._is_dense else None
        for index in order:
            size = self._sizes[index]
            for pool in self.choices[index]:
                if placed is None:
                    taken = self._taken(index, pool, offsets, pool_of, self._neighbours[index])
                    offset = _lowest(taken, self.blocks[index].alignment_bytes)
                else:
                    offset = self._lowest_of_many(index, pool, offsets, pool_of, placed)
                limit = self.pools[pool].size_bytes
                if limit is None or offset + size <= limit:
                    offsets[index], pool_of[index] = offset, pool
                    if placed is not None:
                        placed.offset[index], placed.pool[index] = offset, pool
                    break
            else:
                return None
        return offsets, pool_of

    def _taken(
        self,
        index: int,
        pool: int,
        offsets: list[int],
        pool_of: list[int],
        others: Sequence[int],
    ) -> list[tuple[int, int]]:
        """Return the intervals of offsets that placed neighbours forbid.

        Each is open: (start - size, end).  A share takes the allowed offsets out of it.
        """
        size, sizes = self._sizes[index], self._sizes
        if index not in self._sharing:  # most blocks
            return [
                (start - size, start + sizes[other])
                for other in others
                if (start := offsets[other]) >= 0 and pool_of[other] == pool
            ]
        forbidden: list[tuple[int, int]] = []  # offsets o with low < o < high are taken
        for other in others:
            if offsets[other] < 0 or pool_of[other] != pool:
                continue
            start = offsets[other]
            low, high = start - size, start + sizes[other]
            as_output = self.share_of.get((index, other))
            as_input = self.share_of.get((other, index))
            if as_output is not None:
                allowed = start - as_output.lead_bytes
                if as_output.exact:
                    forbidden.append((low, min(allowed, high)))
                forbidden.append((max(low, allowed), high))
            elif as_input is not None:
                allowed = start + as_input.lead_bytes
                if as_input.exact:
                    forbidden.append((max(low, allowed), high))
                forbidden.append((low, min(allowed, high)))
            else:
                forbidden.append((low, high))
        return [(low, high) for low, high in forbidden if low < high]

    def _lowest_of_many(
        self, index: int, pool: int, offsets: list[int], pool_of: list[int], placed: _Placed
    ) -> int:
        """Return what `_lowest` does; the blocks without a share with this one in one go."""
        block = self.blocks[index]
        others = (placed.offset >= 0) & (placed.pool == pool)
        others &= (self._first <= block.last) & (self._last >= block.first)
        sharing = [other for other in self._sharing.get(index, ()) if others[other]]
        others[sharing] = False
        start = placed.offset[others]
        low, high = start - block.size_bytes, start + self._size[others]
        if apart := self._taken(index, pool, offsets, pool_of, sharing):
            low = np.concatenate([low, [interval[0] for interval in apart]])
            high = np.concatenate([high, [interval[1] for interval in apart]])
        order = np.argsort(low, kind="stable")
        low, high = low[order], high[order]
        # Above the first k intervals, in the order of their lower ends, is a place for each k.
        above = np.maximum.accumulate(np.concatenate([[0], high]))
        above = -(-above // block.alignment_bytes) * block.alignment_bytes
        is_free = above[:-1] <= low
        return int(above[int(np.argmax(is_free))] if is_free.any() else above[-1])

    def peak(self, offsets: Sequence[int], pool_of: Sequence[int]) -> list[int]:
        """Return the bytes that each pool needs."""
        if len(self.pools) == 1:
            return [max(map(add, offsets, self._sizes), default=0)]
        peaks = [0] * len(self.pools)
        for offset, size, pool in zip(offsets, self._sizes, pool_of, strict=True):
            peaks[pool] = max(peaks[pool], offset + size)
        return peaks


class _Placed:
    """Where blocks lie, as arrays; an offset of -1 is no place yet."""

    def __init__(self, count: int) -> None:
        self.offset = np.full(count, -1, "int64")
        self.pool = np.zeros(count, "int64")


def _lowest(forbidden: list[tuple[int, int]], alignment: int) -> int:
    """Return the lowest aligned offset that lies in none of the open intervals."""
    offset = 0
    forbidden.sort()
    for low, high in forbidden:
        if offset < high and low < offset:
            offset = align_up(high, alignment)
    return offset
