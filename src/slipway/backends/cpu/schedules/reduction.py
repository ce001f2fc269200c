"""Reductions: parallel outside, vectors inside, and as many independent sums as hide their latency.

Where the data lies along a kept axis, vectors of that axis are the innermost loop, with the
reduction around it; positions are found for several of them at once, as each waits for itself.
Where it lies along the reduction, a row is reduced in vectors, and their lanes at the end::

    row of n  ->  4 vectors of partial results  ->  1 vector  ->  4 lanes  ->  the result

A result alone, or a few, of very many elements have one partial result for each task first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from statistics import fmean
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    SumKnobs,
    sum_cost,
    sum_knobs,
    sum_space,
    vector_lanes,
)
from slipway.backends.cpu.schedules.generic import (
    fused_neighbours,
    reading_of,
    schedule_elementwise_stage,
    vectorize,
)
from slipway.backends.cpu.schedules.short_columns import positions_at_once, reduce_short_columns
from slipway.backends.stages import (
    Loop,
    extent_of,
    fuse,
    inline_injective,
    is_injective,
    producers,
    shape_of,
)
from slipway.backends.strategy import Knobs, Problem, ScheduleFunction, register_pattern
from slipway.ir.expr import ProducerLoad
from slipway.ir.ops import as_int
from slipway.ir.visit import walk
from slipway.relay.dims import is_open, lower_bound, usual
from slipway.relay.op_registry import OpPattern

if TYPE_CHECKING:
    from slipway.target import Target

LANES_IN_THE_END = 4
_CARRIED = 4  # elements are summed in the time of one that carries its position along


def schedule_opaque(
    target: Target, outs: Sequence[te.Tensor], knobs: SumKnobs | None = None
) -> te.Schedule:
    """Each reduction its own loops, each output elementwise; maps between them inlined."""
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs)
    for op in producers(outs):
        if isinstance(op, te.ComputeOp) and op.reduce_axis:
            schedule_reduction_stage(schedule, op.output(0), target, knobs)
    for tensor in {id(t.op): t for t in outs}.values():
        if is_injective(tensor.op):
            schedule_elementwise_stage(schedule, tensor, target, knobs)
    return schedule


def as_they_are(kind: type[Knobs]) -> ScheduleFunction:
    """Return the schedule of a kernel whose statements its compute has scheduled, by such knobs."""

    def schedule(
        problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: Knobs
    ) -> te.Schedule:
        return schedule_opaque(problem.target, outs)

    schedule.__annotations__["knobs"] = kind  # which a strategy is asked for
    return schedule


@register_pattern(
    OpPattern.COMM_REDUCE, OpPattern.OUT_ELEMWISE_FUSABLE, OpPattern.OPAQUE, name="loops.sums",
    default=lambda problem: sum_knobs(problem.target), space=sum_space, cost=sum_cost,
)  # fmt: skip
def schedule_sums(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: SumKnobs
) -> te.Schedule:
    """Each reduction its own loops."""
    return schedule_opaque(problem.target, outs, knobs)


def schedule_reduction_stage(
    schedule: te.Schedule, tensor: te.Tensor, target: Target, knobs: SumKnobs | None = None
) -> None:
    """Schedule one reduction with loops of its own."""
    knobs = knobs or sum_knobs(target)
    stage = schedule[tensor]
    loops, reduced = Loop.of(stage.op.axis), Loop.of(stage.op.reduce_axis)
    total = usual(prod(loop.extent for loop in (*loops, *reduced)))
    carried = _CARRIED if stage.op.num_outputs > 1 else 1
    total = max(total * carried, reading_of(schedule, tensor, target).copied(total))
    lanes = vector_lanes(target, tensor.dtype) if knobs.group else 1
    row = row_axes(tensor.op)
    at_once = 0 if row or not target.is_by_llvm else positions_at_once(tensor.op, lanes)
    if at_once:
        reduce_short_columns(schedule, tensor, at_once, total >= knobs.share_from)
        return
    if not row and any(loop.extent != 1 for loop in loops):
        while loops[-1].extent == 1:
            loops.insert(0, loops.pop())  # what lies along memory is before it
    if not row and loops and loops[-1].extent > 1:
        wide = lanes * knobs.sums
        short = not is_open(loops[-1].extent) and loops[-1].extent < wide
        if short and loops[-1].axis is stage.op.axis[-1]:
            first, _ = fused_neighbours(schedule, tensor)[-1]
            loops[first:] = [fuse(stage, loops[first:])]
        inner = loops.pop()
        tasks = usual(prod(loop.extent for loop in loops) * inner.extent) // wide
        enough = inner.extent % wide == 0 and tasks >= 2 * fmean(target.core_counts)
        fitting = _fitting(lanes, lower_bound(inner.extent))
        suits = fitting == lanes or (1 < fitting <= lanes and usual(inner.extent) <= 2 * lanes)
        if is_open(inner.extent) and lanes > 1 and suits and stage.op.num_outputs == 1:
            _reduce_columns(schedule, tensor, fitting, total >= knobs.share_from)
            return
        own = inner.axis is stage.op.axis[-1] and not is_open(inner.extent)
        if own and stage.op.num_outputs > 1 and inner.extent >= 2 * lanes > 2:
            columns = lanes * min(knobs.sums, inner.extent // lanes)
            _reduce_columns(schedule, tensor, columns, total >= knobs.share_from)
            return
        inner = vectorize(stage, loops, inner, wide if enough else lanes)
        stage.reorder(*(loop.axis for loop in (*loops, *reduced, inner)))
    elif row and stage.op.num_outputs == 1 and (width := _row_lanes(row, lanes)):
        lanes = width
        whole = fuse(stage, Loop.of(row))
        if usual(prod(loop.extent for loop in loops)) < target.num_cores:
            whole, tensor, loops = _cut_among_tasks(
                schedule, tensor, whole, total, target, knobs.share_from
            )
        shared = total >= knobs.share_from
        reduce_row(schedule, tensor, whole, lanes, shared, sums=knobs.sums, steps=knobs.steps)
        return
    if loops and total >= knobs.share_from:
        stage.parallel(fuse(stage, loops).axis)


def _reduce_columns(schedule: te.Schedule, tensor: te.Tensor, lanes: int, shared: bool) -> None:
    """Reduce `lanes` columns at a time, in registers; the last vector overlaps the one before."""
    op = tensor.op
    results = [op.output(number) for number in range(op.num_outputs)]
    cached = schedule.cache_write(results if len(results) > 1 else tensor, "local")
    sums = schedule[cached[0] if len(results) > 1 else cached]
    stage = schedule[tensor]
    *outer, last = stage.op.axis
    vectors, lane = stage.split(last, factor=lanes, tail="shift")
    stage.vectorize(lane)
    task = stage.fuse(*outer, vectors) if outer else vectors
    if shared:
        stage.parallel(task)
    sums.compute_at(stage, task)
    *others, column = sums.op.axis
    sums.reorder(*others, *sums.op.reduce_axis, column)
    sums.vectorize(column)


def _fitting(lanes: int, extent: int) -> int:
    """Return the lanes of a vector, of at most `lanes`, that `extent` elements fill."""
    while lanes > 1 and lanes > extent:
        lanes //= 2
    return lanes


def _row_lanes(row: Sequence[te.IterVar], lanes: int) -> int:
    """Return the lanes, of vectors of at most `lanes`, that a row is worked on in.

    A row is two vectors at least: short ones get short vectors, and the shortest none (0).
    """
    extent = prod(extent_of(axis) for axis in row)
    while lanes > LANES_IN_THE_END and extent < 2 * lanes:
        lanes //= 2
    return lanes if extent >= 2 * lanes else 0


def _cut_among_tasks(
    schedule: te.Schedule, tensor: te.Tensor, row: Loop, total: int, target: Target, share_from: int
) -> tuple[Loop, te.Tensor, list[Loop]]:
    """Reduce parts of a row first, if there are enough: each core then has some of its own."""
    stage = schedule[tensor]
    loops = Loop.of(stage.op.axis)
    if total < 2 * share_from or is_open(row.extent):
        return row, tensor, loops
    parts = [p for p in range(8 * target.num_cores, 1, -1) if row.extent % p == 0]
    if not parts:
        return row, tensor, loops
    part, inner_axis = stage.split(row.axis, nparts=parts[0])
    partial = schedule.rfactor(tensor, part)
    inner = next(axis for axis in schedule[partial].leaf_iter_vars if axis.name == inner_axis.name)
    return Loop(inner, row.extent // parts[0]), partial, Loop.of(partial.op.axis)


def reduce_row(
    schedule: te.Schedule,
    tensor: te.Tensor,
    row: Loop,
    lanes: int,
    parallel: bool = False,
    *,
    sums: int,
    steps: int,
) -> te.IterVar | None:
    """Reduce `row` in `sums` vectors at a time; return the loop that the result's own axes become.

    `row` is a loop of the stage of `tensor`, the only one along memory.
    """
    first = width = _width(row.extent, lanes, sums)
    partials: list[te.Tensor] = []
    _, lane = schedule[tensor].split(row.axis, factor=width, tail="shift")
    partials.append(schedule.rfactor(tensor, lane))
    for fewer in (lanes, LANES_IN_THE_END):
        if fewer < width:
            stage = schedule[tensor]
            (left,) = stage.op.reduce_axis
            _, lane = stage.split(left, factor=fewer)
            partials.append(schedule.rfactor(tensor, lane))
            width = fewer
    stage = schedule[tensor]
    (left,) = stage.op.reduce_axis
    stage.unroll(left)
    loops = Loop.of(stage.op.axis)
    outer = fuse(stage, loops).axis if loops else None
    if outer is not None and parallel:
        stage.parallel(outer)
    for number, partial in enumerate(partials):
        part = schedule[partial]
        if outer is not None:
            part.compute_at(stage, outer)
            part.set_scope("local")
        lane_axis, *axes = part.op.axis
        each = [a for a in part.leaf_iter_vars if a.kind == "reduce"]
        unrolled = each
        if not number:
            unrolled = []
            # Of the steps along memory, the innermost ones; how many is open where the row is.
            count = 0 if is_open(row.extent) else -(-row.extent // first)
            if count >= 4 * steps and count % steps == 0:
                each[-1:] = part.split(each[-1], factor=steps)
                unrolled = each[-1:]
            elif len(each) > 1 and 0 < count <= steps:
                unrolled = each[-1:]
        part.reorder(*axes, *each, lane_axis)
        part.vectorize(lane_axis)
        for step in unrolled:
            part.unroll(step)
    return outer


def _width(extent: int, lanes: int, sums: int) -> int:
    """Return how many partial results a row has: of some vectors, which divide it if any do."""
    if is_open(extent):  # the last step is not longer than the shortest row
        return (
            lanes * sums
            if lower_bound(extent) >= 2 * lanes * sums
            else min(lanes, lower_bound(extent))
        )
    if extent < 2 * lanes * sums:
        return lanes
    vectors, tail = divmod(extent, lanes)
    fitting = [n for n in (sums, 3, 5, 6, 7, 2) if not tail and vectors % n == 0]
    return lanes * (fitting[0] if fitting else sums)


def row_axes(op: te.ComputeOp) -> list[te.IterVar]:
    """Return the reduction axes that run along memory as one: the last of them alone, or several.

    Several where what is read has them as its last dimensions, from end to end.  Empty where an
    axis of the result runs along memory.
    """
    loads = [
        node
        for body in getattr(op, "body", ())
        for node in walk(body)
        if isinstance(node, ProducerLoad) and node.indices
    ]
    axes = {id(axis.var): axis for axis in (*op.axis, *op.reduce_axis)}
    # Of several that are read, the one of which most is read counts.
    best: tuple[int, te.IterVar | None, Any] = (0, None, None)
    for load in loads:
        found = {id(v): axes[id(v)] for i in load.indices for v in walk(i) if id(v) in axes}
        size = prod(usual(extent_of(axis)) for axis in found.values())
        last = [axes[id(v)] for v in walk(load.indices[-1]) if id(v) in axes]
        if last and size > best[0]:
            best = size, max(last, key=lambda axis: usual(extent_of(axis))), load
    _, along, load = best
    reduced = list(op.reduce_axis)
    if along is None or not any(along is axis for axis in reduced):
        return []
    row: list[te.IterVar] = []
    shape = shape_of(load.producer)
    for axis, index, extent in zip(
        reversed(reduced), reversed(load.indices), reversed(shape), strict=False
    ):
        if index is not axis.var or extent_of(axis) != extent or not _begins_at_zero(axis):
            break
        row.insert(0, axis)
    return row if row and row[-1] is along else [along]


def _begins_at_zero(axis: te.IterVar) -> bool:
    return axis.dom is not None and as_int(axis.dom.min) == 0
