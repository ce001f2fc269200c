"""Where each tensor of a graph lies in one arena, planned before the program runs.

A tensor is a `Block`: a size and the interval of steps [first, last] in which it must exist.  Two
blocks may share bytes only if their intervals are disjoint.  Finding the least arena is dynamic
storage allocation, which is NP-hard; `plan` runs a heuristic and reports beside its result the
lower bound that no plan can beat, the largest sum of sizes alive at one step.

Two heuristics, both "put the next block at the lowest offset where it does not collide with a
block alive at the same time", in a different order:

- ``greedy_by_size``: largest first (Pisarchyk and Lee, "Efficient Memory Management for Deep
  Neural Net Inference", 2020, section 5.2).
- ``greedy_by_conflicts``: most neighbours in time first, then largest.

``best`` runs all of them and keeps the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slipway.errors import did_you_mean


@dataclass(frozen=True)
class Block:
    """A tensor to place: `size_bytes` bytes, alive from step `first` to step `last` inclusive."""

    name: str
    size_bytes: int
    first: int
    last: int
    alignment_bytes: int = 64

    def meets(self, other: Block) -> bool:
        """Tell whether both are alive at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Plan:
    """Offsets (bytes) of the blocks in order, the arena's size, and the bound below it."""

    blocks: tuple[Block, ...]
    offsets: tuple[int, ...]
    size_bytes: int
    lower_bound_bytes: int
    algorithm: str


def lower_bound(blocks: Sequence[Block]) -> int:
    """Return the largest sum of block sizes alive at one step: no plan is smaller."""
    changes: dict[int, int] = {}
    for block in blocks:
        changes[block.first] = changes.get(block.first, 0) + block.size_bytes
        changes[block.last + 1] = changes.get(block.last + 1, 0) - block.size_bytes
    alive = most = 0
    for step in sorted(changes):
        alive += changes[step]
        most = max(most, alive)
    return most


def _align(offset: int, alignment: int) -> int:
    return (offset + alignment - 1) // alignment * alignment


def _place_in_order(blocks: Sequence[Block], order: Sequence[int]) -> list[int]:
    """Put each block at its lowest free offset, in the given order."""
    offsets = [0] * len(blocks)
    placed: list[int] = []
    for index in order:
        block = blocks[index]
        busy = sorted(
            (offsets[other], offsets[other] + blocks[other].size_bytes)
            for other in placed
            if block.meets(blocks[other])
        )
        offset = 0
        for start, end in busy:
            if offset + block.size_bytes <= start:
                break
            offset = max(offset, _align(end, block.alignment_bytes))
        offsets[index] = offset
        placed.append(index)
    return offsets


def _greedy_by_size(blocks: Sequence[Block]) -> list[int]:
    order = sorted(range(len(blocks)), key=lambda i: (-blocks[i].size_bytes, blocks[i].first, i))
    return _place_in_order(blocks, order)


def _greedy_by_conflicts(blocks: Sequence[Block]) -> list[int]:
    conflicts = [sum(block.meets(other) for other in blocks) for block in blocks]
    order = sorted(range(len(blocks)), key=lambda i: (-conflicts[i], -blocks[i].size_bytes, i))
    return _place_in_order(blocks, order)


ALGORITHMS: dict[str, Callable[[Sequence[Block]], list[int]]] = {
    "greedy_by_size": _greedy_by_size,
    "greedy_by_conflicts": _greedy_by_conflicts,
}


def plan(blocks: Sequence[Block], algorithm: str = "best") -> Plan:
    """Place `blocks` in one arena.

    `algorithm` is a key of `ALGORITHMS`, or "best" for the smallest of all; ties go to the
    first.  The same blocks always give the same plan.  Raises ValueError for an unknown algorithm.
    """
    if algorithm != "best" and algorithm not in ALGORITHMS:
        known = ["best", *ALGORITHMS]
        raise ValueError(
            f"no memory planner is called {algorithm!r}; there are {', '.join(known)}."
            + did_you_mean(algorithm, known)
        )
    names = list(ALGORITHMS) if algorithm == "best" else [algorithm]
    best: Plan | None = None
    bound = lower_bound(blocks)
    for name in names:
        offsets = ALGORITHMS[name](blocks)
        size = max((o + b.size_bytes for o, b in zip(offsets, blocks, strict=True)), default=0)
        if best is None or size < best.size_bytes:
            best = Plan(tuple(blocks), tuple(offsets), size, bound, name)
        if size == bound:
            break
    assert best is not None
    return best


def check_plan(result: Plan) -> None:
    """Verify a plan independently of how it was made.

    Raises AssertionError, naming both blocks, when two that are alive together share a byte, when
    an offset is not aligned, or when a block reaches past the arena.
    """
    placed = list(zip(result.blocks, result.offsets, strict=True))
    for index, (block, offset) in enumerate(placed):
        if offset % block.alignment_bytes:
            raise AssertionError(f"{block.name} at {offset} is not {block.alignment_bytes}-aligned")
        if offset < 0 or offset + block.size_bytes > result.size_bytes:
            raise AssertionError(f"{block.name} lies outside the arena")
        for other, start in placed[:index]:
            apart = offset + block.size_bytes <= start or start + other.size_bytes <= offset
            if block.meets(other) and not apart:
                raise AssertionError(f"{block.name} and {other.name} share bytes while both live")
