"""Orders in which to place blocks, each lowest first: four heuristics.

- ``greedy_by_size``: largest first (Pisarchyk and Lee, "Efficient Memory Management for Deep
  Neural Net Inference", 2020, section 5.2).
- ``greedy_by_conflicts``: most neighbours in time first, then largest.
- ``linear_scan``: in the order of birth, as register allocators walk a program.
- ``hill_climb``: begins with the best of the orders above, moves blocks that stand at the peak
  ahead of the ones below them, and keeps what is not worse.  Its random choices come from a fixed
  seed, and it counts moves, not time, so the same blocks always give the same order.

Blocks are put down from offset 0 up, so an output that wants to lie below its input (a share with a
lead) must come first: each order is also tried with such outputs moved ahead of their inputs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from slipway.compiler.memory_plan.place import Placement

_MOST_MOVES = 600
_WORK = 40_000  # moves times blocks: large graphs get fewer moves


def greedy_by_size(layout: Placement) -> list[int]:
    """Order by size, largest first."""
    blocks = layout.blocks
    return sorted(range(len(blocks)), key=lambda i: (-blocks[i].size_bytes, blocks[i].first, i))


def greedy_by_conflicts(layout: Placement) -> list[int]:
    """Order by the number of blocks alive at the same time, most first."""
    blocks = layout.blocks
    return sorted(
        range(len(blocks)),
        key=lambda i: (-layout.conflicts[i], -blocks[i].size_bytes, i),
    )


def linear_scan(layout: Placement) -> list[int]:
    """Order by the first step, blocks born together largest first."""
    blocks = layout.blocks
    return sorted(range(len(blocks)), key=lambda i: (blocks[i].first, -blocks[i].size_bytes, i))


def outputs_first(layout: Placement, order: list[int]) -> list[int]:
    """Return the order with each output that wants to lie below its input ahead of it."""
    below = {into: out for (out, into), share in layout.share_of.items() if not share.exact}
    if not below:
        return order
    result: dict[int, None] = {}  # a set that keeps its order
    for index in order:
        chain = {index: None}
        output = below.get(index)
        while output is not None and output not in chain and output not in result:
            chain[output] = None
            output = below.get(output)
        result |= dict.fromkeys(reversed(chain))
    return list(result)


START_ORDERS: tuple[Callable[[Placement], list[int]], ...] = (
    greedy_by_size,
    greedy_by_conflicts,
    linear_scan,
)


def hill_climb(layout: Placement, enough: int) -> list[int]:
    """Improve an order by local moves; stops early when the total is `enough` bytes."""
    rng = random.Random(0x51199)

    def cost(order: list[int]) -> tuple[float, list[int], list[int]]:
        placed = layout.place(order)
        if placed is None:
            return math.inf, [], []
        offsets, pool_of = placed
        return sum(layout.peak(offsets, pool_of)), offsets, pool_of

    starts = [start(layout) for start in START_ORDERS]
    starts += [outputs_first(layout, order) for order in starts]
    best = min(starts, key=lambda order: cost(order)[0])
    best_cost, offsets, pool_of = cost(best)
    if not best:
        return best
    current, current_cost = best, best_cost
    for _ in range(min(_MOST_MOVES, _WORK // len(best) + 20)):
        if best_cost <= enough:
            break
        changed = _moved(layout, current, offsets, pool_of, rng)
        new_cost, new_offsets, new_pools = cost(changed)
        if new_cost <= current_cost or rng.random() < 0.05:
            current, current_cost = changed, new_cost
            offsets, pool_of = new_offsets, new_pools
            if new_cost < best_cost:
                best, best_cost = changed, new_cost
    return best


def _moved(
    layout: Placement, order: list[int], offsets: list[int], pool_of: list[int], rng: random.Random
) -> list[int]:
    """Return the order with a block of the peak, or one of its neighbours, moved forward."""
    count = len(order)
    chosen = rng.randrange(count)
    if offsets and rng.random() < 0.8:
        peaks = layout.peak(offsets, pool_of)
        top = [
            i
            for i, block in enumerate(layout.blocks)
            if offsets[i] + block.size_bytes == peaks[pool_of[i]]
        ]
        chosen = rng.choice(top)
        if layout.conflicts[chosen] and rng.random() < 0.5:
            chosen = rng.choice(layout.neighbours(chosen))
    position = order.index(chosen)
    target = rng.randrange(position) if position and rng.random() < 0.8 else rng.randrange(count)
    changed = order[:position] + order[position + 1 :]
    changed.insert(target, chosen)
    return changed
