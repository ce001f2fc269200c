"""A product and the reduction of its results in one kernel: a convolution and its image's mean.

A thread computes a tile of the product in registers, what follows is done to it, and its elements
are added up there, so that the product itself is never in memory::

    mean(relu(conv2d(x, w)))  ->  sums of relu(tile) over the steps of a lane, sums over lanes

Some threads (`lanes`) share a result, so that no fewer work than without it.  Where threads run in
step, their sums are combined as a tree, in the same kernel; elsewhere barriers may cost more than
the memory that they save (PoCL's do), and the sums, fewer than the results, are another kernel's.
A lane that has a result for itself needs neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.gpu.limits import most_blocks, most_threads, shared_bytes
from slipway.backends.gpu.schedules.generic import (
    bind_blocks,
    bind_elements,
    bind_tiles,
    only_reader,
    readers_of,
)
from slipway.backends.gpu.warps import runs_in_lanes, runs_in_step
from slipway.backends.stages import extent_of, inline_injective, producers, shape_of
from slipway.target.gpu_costs import ANY_GPU

if TYPE_CHECKING:
    from slipway.backends.strategy import Problem
    from slipway.target import Target

_SUM_BYTES = 8  # of the widest sums


@dataclass(frozen=True)
class JoinedThreads:
    """How a product of which some axes are reduced is shared out.

    A thread's tile has `sides`, rows and columns; `groups` of results each have `steps` tiles,
    which some lanes take in turns.  Of a tile `kept` sums are of different results.
    """

    sides: tuple[int, int]
    groups: int
    steps: int
    kept: int
    most: int  # threads of a block
    tree: bool

    @staticmethod
    def of(
        shape: Sequence[int], reduced: Sequence[int], tiled: tuple[int, int],
        sides: tuple[int, int], target: Target,
    ) -> JoinedThreads:  # fmt: skip
        """Return the threads for a product of `shape`, with tiles, that is reduced over axes.

        Tiles that do not divide it are taken for those of one element.
        """
        side = dict(zip(tiled, sides, strict=True))
        if any(shape[axis] % n for axis, n in side.items()):
            side, sides = {}, (1, 1)
        tiles = [n // side.get(axis, 1) for axis, n in enumerate(shape)]
        steps = prod(n for axis, n in enumerate(tiles) if axis in reduced)
        kept = prod(n for axis, n in side.items() if axis not in reduced)
        tree, most = runs_in_step(target), min(most_threads(target), ANY_GPU.most_threads)
        if tree:  # which has all sums of a block in shared memory, beside their results
            most = max(1, min(most, shared_bytes(target) // (_SUM_BYTES * (kept + 2))))
        return JoinedThreads(sides, prod(tiles) // steps, steps, kept, most, tree)

    def lanes(self, depth: int) -> int:
        """Return how many threads best share a result, for sums of `depth` products."""
        most = self.most if self.tree else self.steps
        dividing = [n for n in range(1, min(most, self.steps) + 1) if self.steps % n == 0]
        legal = [n for n in dividing if self._taken(n, depth) <= ANY_GPU.thread_steps]
        return min(legal or dividing[-1:], key=lambda lanes: self.cost(lanes, depth))

    def is_legal(self, depth: int) -> bool:
        """Return whether a thread takes no more steps than it may have."""
        return self._taken(self.lanes(depth), depth) <= ANY_GPU.thread_steps

    def _taken(self, lanes: int, depth: int) -> int:
        return self.steps // lanes * depth

    def together(self, lanes: int) -> int:
        """Return how many groups of results a block has; it has no part of one."""
        most = max(1, min(ANY_GPU.full_block, self.most) // lanes)
        return max(n for n in range(1, most + 1) if self.groups % n == 0)

    def cost(self, lanes: int, depth: int) -> float:
        """Return the multiply-adds that the product and the reduction are worth."""
        threads = self.groups * lanes
        if lanes == 1:
            return self._work(threads, depth)
        if self.tree:
            sums = ANY_GPU.tree_cost * log2(lanes) * threads * self.kept
            return self._work(threads, depth) + sums / _busy(threads)
        moved = 2 * ANY_GPU.global_cost * threads * self.kept
        return self._work(threads, depth) + moved + ANY_GPU.launch_cost

    def is_cheaper(self, depth: int) -> bool:
        """Return whether that is less than a kernel for each, whose product is all in memory."""
        tiles, (rows, columns) = self.groups * self.steps, self.sides
        if self.sides == (1, 1) or not self.is_legal(depth):
            return False
        moved = 2 * ANY_GPU.global_cost * tiles * rows * columns
        apart = self._work(tiles, depth) + moved + ANY_GPU.launch_cost
        return self.cost(self.lanes(depth), depth) < apart

    def _work(self, threads: int, depth: int) -> float:
        rows, columns = self.sides
        products = self.groups * self.steps * rows * columns * depth
        return products * (1 + ANY_GPU.global_cost * (1 / rows + 1 / columns)) / _busy(threads)


def _busy(threads: int) -> float:
    return min(1.0, threads / ANY_GPU.busy_threads)


def schedule_joined(
    outs: Sequence[te.Tensor], product: te.Tensor, padded: Sequence[te.Tensor],
    tiled: tuple[int, int], sides: tuple[int, int], problem: Problem,
) -> te.Schedule | None:  # fmt: skip
    """Return the schedule of a product whose elements one reduction reads; None of another kernel.

    `padded` are operands that a thread puts into registers first.
    """
    sums = [op for op in producers(outs) if isinstance(op, te.ComputeOp) and op.reduce_axis]
    if len(outs) != 1 or len(sums) != 2 or sums[0] is not product.op:
        return None
    total = sums[1].output(0)
    if len(sums[1].outputs) != 1 or not sums[1].axis:
        return None
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs, keep=padded)
    readers = readers_of(schedule, outs)
    read = _axes_read(readers.get(id(product.op), []), sums[1], product)
    out = total if total.op is outs[0].op else only_reader(readers, total.op, outs)
    if read is None or out is None:
        return None
    reduced = [d for d, axis in enumerate(read) if any(axis is a for a in sums[1].reduce_axis)]
    threads = JoinedThreads.of(shape_of(product), reduced, tiled, sides, problem.target)
    depth = prod(extent_of(axis) for axis in product.op.reduce_axis)
    if not threads.is_legal(depth):
        return None
    lanes = threads.lanes(depth)
    side = {id(read[d]): n for d, n in zip(tiled, threads.sides, strict=True)}
    kept, summed = (
        [side.get(id(axis), 1) for axis in axes] for axes in (sums[1].axis, sums[1].reduce_axis)
    )
    if lanes == 1:
        part, step = _whole(schedule, total, out, kept, summed, problem)
    else:
        stage = schedule[total]
        steps, inside = _cut(stage, stage.op.reduce_axis, summed)
        fused = steps[0] if len(steps) == 1 else stage.fuse(*steps)
        step, lane = stage.split(fused, factor=lanes)
        stage.reorder(lane, step, *inside)
        part = schedule.rfactor(total, lane, -1)
        if threads.tree:
            step = _as_tree(schedule, part, total, out, kept, threads.together(lanes), problem)
        else:
            part, step = _as_kernel(schedule, part, total, out, kept, threads.most, problem)
    tile = schedule[product]
    tile.compute_at(schedule[part], step)
    tile.set_scope("local")
    schedule_tile(schedule, product, tiled, padded, problem.target)
    return schedule


def _cut(
    stage: te.Stage, axes: Sequence[te.IterVar], sides: Sequence[int]
) -> tuple[list[te.IterVar], list[te.IterVar]]:
    """Return the loops over tiles along some axes of a stage, and those inside of a tile."""
    outer, inner = [], []
    for axis, side in zip(axes, sides, strict=True):
        if side > 1:
            axis, one = stage.split(axis, factor=side)
            inner.append(one)
        outer.append(axis)
    return outer, inner


def _whole(
    schedule: te.Schedule, total: te.Tensor, out: te.Tensor,
    kept: Sequence[int], summed: Sequence[int], problem: Problem,
) -> tuple[te.Tensor, te.IterVar]:  # fmt: skip
    """A thread has all of its results; return their sums, and the loop that has a tile inside."""
    part = schedule.cache_write(total, "local") if out is total else total
    results, stage = schedule[out], schedule[part]
    outer, inner = _cut(results, results.op.axis, kept)
    groups = prod(extent_of(a) // n for a, n in zip(results.op.axis, kept, strict=True))
    thread = bind_tiles(results, outer, inner, groups, problem, ANY_GPU.full_block)
    stage.compute_at(results, thread)
    stage.set_scope("local")
    steps, inside = _cut(stage, stage.op.reduce_axis, summed)
    _order(stage, stage.op.axis, kept, steps, inside)
    return part, steps[-1]


def _as_kernel(
    schedule: te.Schedule, part: te.Tensor, total: te.Tensor, out: te.Tensor,
    kept: Sequence[int], most: int, problem: Problem,
) -> tuple[te.Tensor, te.IterVar]:  # fmt: skip
    """The lanes' sums are in memory, and another kernel's; return what `_whole` does."""
    own = schedule.cache_write(part, "local")
    stage = schedule[part]
    *axes, lane = stage.op.axis
    outer, inner = _cut(stage, axes, kept)
    lanes = extent_of(lane) * prod(extent_of(a) // n for a, n in zip(axes, kept, strict=True))
    most = min(ANY_GPU.full_block, most)
    thread = bind_tiles(stage, [*outer, lane], inner, lanes, problem, most)
    end = bind_elements(schedule, out, most, most_blocks(problem.target))
    if out is not total:
        assert end is not None  # it has axes
        schedule[total].compute_at(schedule[out], end)
        schedule[total].set_scope("local")
    inside = schedule[own]
    inside.compute_at(stage, thread)
    step, *taps = inside.op.reduce_axis
    _order(inside, inside.op.axis, [*kept, 1], [step], taps)
    return own, step


def _order(
    stage: te.Stage, axes: Sequence[te.IterVar], kept: Sequence[int],
    steps: Sequence[te.IterVar], taps: Sequence[te.IterVar],
) -> None:  # fmt: skip
    """Put the loops inside of a tile inside of the steps, unrolled."""
    wide = [axis for axis, side in zip(axes, kept, strict=True) if side > 1]
    stage.reorder(*(a for a in axes if a not in wide), *steps, *taps, *wide)
    for axis in wide:
        stage.unroll(axis)


def _as_tree(
    schedule: te.Schedule, part: te.Tensor, total: te.Tensor, out: te.Tensor,
    kept: Sequence[int], together: int, problem: Problem,
) -> te.IterVar:  # fmt: skip
    """The lanes of a block combine their sums; return the loop that has a tile inside."""
    results = schedule[out]
    outer, inner = _cut(results, results.op.axis, kept)
    groups = prod(extent_of(a) // n for a, n in zip(results.op.axis, kept, strict=True))
    results.reorder(*outer, *inner)
    fused = outer[0] if len(outer) == 1 else results.fuse(*outer)
    block, row = results.split(fused, factor=together)
    bind_blocks(results, block, groups // together, most_blocks(problem.target))
    results.bind(row, te.thread_axis("threadIdx.y"))
    last = schedule[total]
    if out is not total:
        last.compute_at(results, row)
    last.bind(last.op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    for axis in inner if out is total else last.op.axis:
        last.unroll(axis)
    stage = schedule[part]
    stage.compute_at(results, row)
    stage.set_scope("shared")
    lane = stage.op.axis[0]
    step, *inside = stage.op.reduce_axis
    stage.bind(lane, te.thread_axis("threadIdx.x"))
    _order(stage, stage.op.axis, [1, *kept], [step], inside)
    return step


def _axes_read(
    readers: Sequence[tuple[te.Operation, list[tuple[Any, ...]] | None]],
    reader: te.ComputeOp,
    product: te.Tensor,
) -> list[te.IterVar | None] | None:
    """Return which axis of its only reader each dimension of a product is read at.

    None where it is read elsewhere too, at other places, or not at each axis once; a dimension of
    one element may be read at none.
    """
    if len(readers) != 1 or readers[0][0] is not reader or readers[0][1] is None:
        return None
    positions = readers[0][1]
    axes = {id(axis.var): axis for axis in (*reader.axis, *reader.reduce_axis)}
    if any(any(i is not j for i, j in zip(positions[0], p, strict=True)) for p in positions):
        return None
    found = [axes.get(id(index)) for index in positions[0]]
    if any(a is None and n != 1 for a, n in zip(found, shape_of(product), strict=True)):
        return None
    known = {id(axis) for axis in found if axis is not None}
    unread = [axis for axis in axes.values() if id(axis) not in known and extent_of(axis) != 1]
    return found if not unread and len(known) + found.count(None) == len(found) else None


def schedule_tile(
    schedule: te.Schedule, tile: te.Tensor, tiled: Sequence[int], padded: Sequence[te.Tensor],
    target: Target,
) -> None:  # fmt: skip
    """Order the loops of a tile in registers: the sum's outside, what it is of inside, unrolled.

    Where a driver runs threads in lanes, taps beside each other are unrolled too: what is asked of
    a row of them, and what two of them read, is known to the next.
    """
    stage = schedule[tile]
    inner = [stage.op.axis[axis] for axis in tiled]
    rest = [axis for axis in stage.op.axis if axis not in inner]
    stage.reorder(*rest, *stage.op.reduce_axis, *inner)
    for axis in inner:
        stage.unroll(axis)
    *around, taps = stage.op.reduce_axis
    if around and runs_in_lanes(target) and extent_of(taps) <= ANY_GPU.processor_taps:
        stage.unroll(taps)
    for operand in padded:  # whether an element is inside is asked once for all rows
        part = schedule[operand]
        part.compute_at(stage, stage.op.reduce_axis[-1])
        part.set_scope("local")
        for axis in part.op.axis:
            part.unroll(axis)
