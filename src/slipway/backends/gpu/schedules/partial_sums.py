"""Long reductions of few results, in two kernels: sums of parts, and the sums of those.

A thread that reduces an image alone leaves a device without work, and adds its last elements to a
sum that is so much larger that their bits are lost::

    y = sum(x)   ->   part[p] = sum over k of x[k * parts + p]        a thread for each part
                      y       = sum over p of part[p]

Neighbouring threads read elements beside each other, where there are any.  It needs neither
barriers nor threads that run in step.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from slipway import te
from slipway.backends.gpu.warps import busy_threads, runs_in_turns
from slipway.backends.stages import extent_of, producers, shape_of
from slipway.ir.expr import ProducerLoad
from slipway.ir.visit import walk
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU


def parts_of(results: int, length: int, target: Target, keeps_bits: bool = False) -> int:
    """Return into how many parts each of some reductions is best cut; 1: it is one thread's.

    With `keeps_bits` the last elements of a long one are not added to a sum that is much larger.
    """
    if length <= ANY_GPU.part_length:
        return 1
    longest = ANY_GPU.thread_steps if keeps_bits else ANY_GPU.longest_sum
    legal = [1] if length <= longest else []
    parts = 2
    while 2 * parts <= length:
        if length <= parts * ANY_GPU.thread_steps:
            legal.append(parts)
        parts *= 2
    return min(legal, key=lambda parts: _cost(results, length, parts, target))


def reduction_cost(results: int, length: int, target: Target) -> float:
    """Return the multiply-adds that reductions are worth, in the parts that are best."""
    return _cost(results, length, parts_of(results, length, target), target)


def _cost(results: int, length: int, parts: int, target: Target) -> float:
    busy, threads = busy_threads(target), results * parts
    each = results * length / min(1.0, threads / busy)
    if parts == 1:
        return each
    handed_on = 2 * ANY_GPU.global_cost * threads
    return each + handed_on + threads / min(1.0, results / busy) + ANY_GPU.launch_cost


def cut_reductions(
    schedule: te.Schedule, outs: Sequence[te.Tensor], target: Target
) -> list[te.Tensor]:
    """Cut the reductions of a schedule that are long; return their parts, which nothing binds."""
    return [
        _cut(schedule, op, parts)
        for op in _known_reductions(outs)
        if (parts := _parts_of_op(op, target)) > 1
    ]


def lane_sums(
    schedule: te.Schedule, outs: Sequence[te.Tensor], target: Target
) -> dict[int, te.Tensor]:
    """Return sums of parts that one thread has beside each other, by the id of what adds them up.

    A processor that runs a thread after the other adds up a vector of elements that lie beside each
    other as soon as one of them, and a sum of several keeps more bits.
    """
    return {
        id(op): _cut(schedule, op, lanes)
        for op in _known_reductions(outs)
        if _parts_of_op(op, target) == 1 and (lanes := _lanes(op, target)) > 1
    }


def _known_reductions(outs: Sequence[te.Tensor]) -> list[te.ComputeOp]:
    """Return the reductions whose sizes are known."""
    found = []
    for op in producers(outs):
        if not isinstance(op, te.ComputeOp) or not op.reduce_axis:
            continue
        sizes = [*shape_of(op.output(0)), *(extent_of(axis) for axis in op.reduce_axis)]
        if all(isinstance(n, int) for n in sizes):
            found.append(op)
    return found


def _parts_of_op(op: te.ComputeOp, target: Target) -> int:
    several = runs_in_turns(target) and len(op.outputs) > 1  # positions, of which no bits are lost
    keeps_bits = several or _lanes(op, target) >= ANY_GPU.exact_lanes
    return parts_of(prod(shape_of(op.output(0))), _length(op), target, keeps_bits)


def _length(op: te.ComputeOp) -> int:
    return prod(extent_of(axis) for axis in op.reduce_axis)


def _lanes(op: te.ComputeOp, target: Target) -> int:
    """Return how many sums of a reduction a thread has beside each other."""
    length = _length(op)
    if not runs_in_turns(target) or len(op.outputs) > 1 or not is_together(op):
        return 1
    if length < 2 * ANY_GPU.processor_lanes or not op.axis:
        return 1
    return max(n for n in range(1, ANY_GPU.processor_lanes + 1) if length % n == 0)


def add_up(schedule: te.Schedule, part: te.Tensor, reader: te.Tensor, axis: te.IterVar) -> None:
    """Have a thread of `reader` add up its parts in registers, all of them at each step."""
    stage = schedule[part]
    stage.compute_at(schedule[reader], axis)
    stage.set_scope("local")
    *_, lane = stage.op.axis
    stage.reorder(*stage.op.axis[:-1], *stage.op.reduce_axis, lane)
    stage.vectorize(lane)


def _cut(schedule: te.Schedule, op: te.ComputeOp, parts: int) -> te.Tensor:
    """Return the sums of every `parts`-th element, of which the operation becomes the sum.

    Neighbouring threads have neighbouring parts where a reduction runs along memory, and else
    neighbouring results.
    """
    total = op.output(0)
    stage = schedule[total]
    axes = op.reduce_axis
    fused = axes[0] if len(axes) == 1 else stage.fuse(*axes)
    _, part = stage.split(fused, factor=parts, tail="guard")
    made = schedule.rfactor(total, part, -1 if is_together(op) else 0)
    first: te.Tensor = made[0] if isinstance(made, list) else made
    return first


def is_together(op: te.Operation) -> bool:
    """Return whether neighbours in memory are reduced: the last index of what is read says so."""
    assert isinstance(op, te.ComputeOp)
    axes = {id(axis.var) for axis in op.reduce_axis}
    return any(
        id(var) in axes
        for body in op.body
        for load in walk(body)
        if isinstance(load, ProducerLoad)
        for var in walk(load.indices[-1])
    )


def product_parts(op: te.Operation) -> int:
    """Return into how many parts the sum of a product is cut for threads that have tiles of it."""
    assert isinstance(op, te.ComputeOp)
    extents = [extent_of(axis) for axis in op.reduce_axis]
    if not all(isinstance(n, int) for n in extents):
        return 1
    needed: int = -(-prod(extents) // ANY_GPU.thread_steps)
    longest = max(extents)
    dividing = (n for n in range(needed, min(4 * needed, longest) + 1) if longest % n == 0)
    return next(dividing, needed)


def cut_product(schedule: te.Schedule, product: te.Tensor, parts: int) -> te.Tensor:
    """Return the sums of `parts` parts of a product's depth, of which it becomes the sum.

    A part is one stretch of the longest axis, so that a tile reads what lies together; its number
    is the first index.
    """
    stage = schedule[product]
    axes = stage.op.reduce_axis
    longest = max(axes, key=extent_of)
    if extent_of(longest) < parts:
        longest = stage.fuse(*axes)
    part, _ = stage.split(longest, nparts=parts, tail="guard")
    first: te.Tensor = schedule.rfactor(product, part, 0)
    return first
