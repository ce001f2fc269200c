"""What a memory planner is given, what it answers, and the bound that no answer beats.

A tensor is a `Block`: a size and the interval of steps [first, last] in which it must exist.  Two
blocks may have a byte in common only if their intervals are disjoint, or if a `Share` allows it.

A `Share` says that a kernel's output may take over bytes of an input that dies in that kernel.
With `lead_bytes` = L the output must start at least L bytes below the input::

    offset(output) + L <= offset(input)

An elementwise kernel that walks its elements in order, each read before it is written, has
L = 0 for equal element sizes; a depthwise convolution has the L that
`slipway.backends.in_place.window_lead_bytes` computes.  An `exact` share (a kernel that visits its
elements in an unknown order, but reads an element only to write the same one) needs equality.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import gcd


@dataclass(frozen=True)
class Block:
    """A tensor to place: `size_bytes` bytes, alive from step `first` to step `last` inclusive.

    `pools` names the memories it may lie in, the preferred one first; empty means any, in the
    order in which the pools are given.
    """

    name: str
    size_bytes: int
    first: int
    last: int
    alignment_bytes: int = 64
    pools: tuple[str, ...] = ()

    def meets(self, other: Block) -> bool:
        """Return whether both are alive at some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Share:
    """Block `output` may overlap block `input` (both are indices) when it starts low enough."""

    output: int
    input: int
    lead_bytes: int = 0
    exact: bool = False

    def allows(self, output_offset: int, input_offset: int) -> bool:
        """Return whether these two offsets, in bytes, keep every input byte until it was read."""
        lead = input_offset - output_offset
        return lead == self.lead_bytes if self.exact else lead >= self.lead_bytes


@dataclass(frozen=True)
class Pool:
    """A memory that blocks can lie in; `size_bytes` None means it grows as needed."""

    name: str
    size_bytes: int | None = None


@dataclass(frozen=True)
class Plan:
    """Offsets (bytes) of the blocks in order, the arena's size, and the bound below it.

    With several pools `pool_of` holds each block's index into `pools`, offsets count from the
    start of its pool, and `size_bytes` is the sum over the pools.  `proven` tells that no plan is
    smaller: the size equals the bound, or an exact search has been through all others.
    """

    blocks: tuple[Block, ...]
    offsets: tuple[int, ...]
    size_bytes: int
    lower_bound_bytes: int
    algorithm: str
    shares: tuple[Share, ...] = ()
    pools: tuple[Pool, ...] = (Pool("workspace"),)
    pool_of: tuple[int, ...] = ()
    proven: bool = False

    def pool_index(self, block: int) -> int:
        """Return which pool a block lies in."""
        return self.pool_of[block] if self.pool_of else 0

    def pool_bytes(self, pool: int) -> int:
        """Return the bytes that one pool needs."""
        return max(
            (
                offset + block.size_bytes
                for index, (block, offset) in enumerate(zip(self.blocks, self.offsets, strict=True))
                if self.pool_index(index) == pool
            ),
            default=0,
        )


def align_up(offset: int, alignment: int) -> int:
    """Return the lowest multiple of `alignment` that is at least `offset`."""
    return (offset + alignment - 1) // alignment * alignment


def lower_bound(blocks: Sequence[Block], shares: Sequence[Share] = ()) -> int:
    """Return a size, in bytes, below which no plan in one arena can be.

    It is the largest sum of sizes alive at one step, each rounded up to the alignment that all
    have in common but for the topmost one, less what the shares of that step can save.
    """
    unit = gcd(*(block.alignment_bytes for block in blocks))
    saved: dict[int, int] = {}
    by_output: dict[int, int] = {}
    for share in shares:
        out, into = blocks[share.output], blocks[share.input]
        union = max(out.size_bytes, share.lead_bytes + into.size_bytes)
        apart = align_up(out.size_bytes, unit) + align_up(into.size_bytes, unit)
        by_output[share.output] = by_output.get(share.output, 0) + max(0, apart - union)
    for index, size in by_output.items():
        step = blocks[index].first
        saved[step] = saved.get(step, 0) + min(size, align_up(blocks[index].size_bytes, unit))
    order = sorted(range(len(blocks)), key=lambda i: blocks[i].first)
    ends: list[tuple[int, int]] = []  # (last step, rounded size) of what is alive
    slacks: list[tuple[int, int]] = []  # (less than nothing, last step): the largest first
    sizes: list[tuple[int, int]] = []
    most = total = 0
    for number, index in enumerate(order):
        block = blocks[index]
        rounded = align_up(block.size_bytes, unit)
        heappush(ends, (block.last, rounded))
        heappush(slacks, (block.size_bytes - rounded, block.last))
        heappush(sizes, (-block.size_bytes, block.last))
        total += rounded
        step = block.first
        if number + 1 < len(order) and blocks[order[number + 1]].first == step:
            continue
        while ends[0][0] < step:
            total -= heappop(ends)[1]
        while slacks[0][1] < step:
            heappop(slacks)
        while sizes[0][1] < step:
            heappop(sizes)
        most = max(most, total + slacks[0][0] - saved.get(step, 0), -sizes[0][0])
    return most
