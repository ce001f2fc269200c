"""Put blocks down one after the other, each as low as it can lie: what all heuristics share."""

from __future__ import annotations

from collections.abc import Sequence

from slipway.compiler.memory_plan.block import Block, Pool, Share, align_up


class Layout:
    """The blocks of one problem with their neighbours in time, and the pools to place them in."""

    def __init__(
        self, blocks: Sequence[Block], shares: Sequence[Share], pools: Sequence[Pool]
    ) -> None:
        self.blocks = blocks
        self.pools = pools
        self.share_of = {(s.output, s.input): s for s in shares}
        count = len(blocks)
        self.neighbours: list[list[int]] = [[] for _ in range(count)]
        by_start = sorted(range(count), key=lambda i: blocks[i].first)
        alive: list[int] = []
        for index in by_start:
            alive = [other for other in alive if blocks[other].last >= blocks[index].first]
            for other in alive:
                self.neighbours[index].append(other)
                self.neighbours[other].append(index)
            alive.append(index)
        names = [pool.name for pool in pools]
        self.choices = [
            [names.index(name) for name in block.pools] if block.pools else list(range(len(pools)))
            for block in blocks
        ]

    def place(self, order: Sequence[int]) -> tuple[list[int], list[int]] | None:
        """Return (offset, pool) of each block, or None when one fits into none of its pools."""
        offsets: list[int] = [-1] * len(self.blocks)
        pool_of: list[int] = [0] * len(self.blocks)
        for index in order:
            size = self.blocks[index].size_bytes
            for pool in self.choices[index]:
                offset = self._lowest(index, pool, offsets, pool_of)
                limit = self.pools[pool].size_bytes
                if limit is None or offset + size <= limit:
                    offsets[index], pool_of[index] = offset, pool
                    break
            else:
                return None
        return offsets, pool_of

    def _lowest(self, index: int, pool: int, offsets: list[int], pool_of: list[int]) -> int:
        """Return the lowest offset that collides with no placed neighbour.

        Each neighbour forbids an interval of offsets.  Without a share the interval is open:
        (start - size, end).  A share takes the allowed offsets out of it.
        """
        block = self.blocks[index]
        forbidden: list[tuple[int, int]] = []  # offsets o with low < o < high are taken
        for other in self.neighbours[index]:
            if offsets[other] < 0 or pool_of[other] != pool:
                continue
            start = offsets[other]
            low, high = start - block.size_bytes, start + self.blocks[other].size_bytes
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
        offset = 0
        for low, high in sorted(forbidden):  # what is not beyond `low` is in no later one either
            if low < offset < high:
                offset = align_up(high, block.alignment_bytes)
        return offset

    def peak(self, offsets: Sequence[int], pool_of: Sequence[int]) -> list[int]:
        """Return the bytes that each pool needs."""
        peaks = [0] * len(self.pools)
        for index, block in enumerate(self.blocks):
            pool = pool_of[index]
            peaks[pool] = max(peaks[pool], offsets[index] + block.size_bytes)
        return peaks
