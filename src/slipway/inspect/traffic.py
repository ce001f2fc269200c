"""How far away the bytes of each operator are: what a run touches between two uses of them.

A cache that keeps what was used last holds a tensor when the model has touched fewer other bytes
since its last use than the cache has.  That follows from the order of the graph alone, run after
run.  Weights are as far away as everything else in the model; what the operator before wrote is
near.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from slipway.runtime.graph.graph_format import NO_OPERATION, GraphEntry, GraphTables

PIECE = 16 << 10  # bytes that count as used together


@dataclass(frozen=True)
class Traffic:
    """Bytes that an operator reads and writes, by distance.

    Element 0 is nearer than the first of the sizes, element i at least as far as size i - 1.
    """

    reads: tuple[float, ...]
    writes: tuple[float, ...]

    def at_most(self, size: float) -> Traffic:
        """Return the traffic of an operator that reads parts only: of `size` bytes in all."""
        written = sum(self.writes)
        whole = sum(self.reads)
        share = min(1.0, max(0.0, size - written) / whole) if whole else 0.0
        return Traffic(tuple(share * count for count in self.reads), self.writes)


def traffic_of(tables: GraphTables, sizes: Sequence[int]) -> dict[str, Traffic]:
    """Return the traffic of each node's operator in a run that follows another, by node name."""
    uses = _Uses(tables)
    found: dict[str, Traffic] = {}
    for _ in range(2):  # the first run fills the caches
        for number, node in enumerate(tables.nodes):
            if node.function not in (None, NO_OPERATION):
                read = [tables.entry(*source) for source in node.inputs]
                written = [tables.entry(number, i) for i in range(node.num_outputs)]
                found[node.name] = Traffic(uses.far(read, sizes), uses.far(written, sizes))
                uses.touch([*read, *written])
    return found


class _Uses:
    """When each piece of the model's memory was last used, and how much was used since."""

    def __init__(self, tables: GraphTables) -> None:
        self.storages = tables.storages
        self.last = [-1] * (tables.arena_bytes // PIECE + 1)
        self.now = 0
        read = (tables.entry(*source) for node in tables.nodes for source in node.inputs)
        most = sum(entry.size_bytes // PIECE + 2 for entry in (*read, *tables.entries))
        self.sums = [0] * (2 * most + 1)  # a Fenwick tree over the uses that are still the last

    def _pieces(self, entry: GraphEntry) -> range:
        offset = self.storages[entry.storage].offset
        return range(offset // PIECE, (offset + entry.size_bytes - 1) // PIECE + 1)

    def far(self, entries: Sequence[GraphEntry], sizes: Sequence[int]) -> tuple[float, ...]:
        """Return how many bytes of tensors are at each distance; what was never used is nearest."""
        counts = [0.0] * (len(sizes) + 1)
        for entry in dict.fromkeys(e for e in entries if e.size_bytes):
            pieces = self._pieces(entry)
            for piece in pieces:
                at = self.last[piece]
                distance = PIECE * (self._used(self.now) - self._used(at + 1)) if at >= 0 else 0
                counts[bisect_right(sizes, distance)] += entry.size_bytes / len(pieces)
        return tuple(counts)

    def touch(self, entries: Sequence[GraphEntry]) -> None:
        """Use tensors."""
        for entry in entries:
            for piece in self._pieces(entry) if entry.size_bytes else ():
                if self.last[piece] >= 0:
                    self._add(self.last[piece], -1)
                self._add(self.now, 1)
                self.last[piece] = self.now
                self.now += 1

    def _add(self, at: int, change: int) -> None:
        at += 1
        while at < len(self.sums):
            self.sums[at] += change
            at += at & -at

    def _used(self, before: int) -> int:
        """Return how many pieces were last used before that time."""
        total = 0
        while before > 0:
            total += self.sums[before]
            before -= before & -before
        return total
