"""Schedules by fusion pattern, for operators that have none of their own.

Every one starts with `inline_injective`, keeps the loops of the outputs contiguous in memory,
vectorises the innermost and spreads the outermost over threads where there is enough work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.backends.cpu.knobs import (
    LoopKnobs,
    group_lanes,
    loop_cost,
    loop_knobs,
    loop_space,
    vector_lanes,
)
from slipway.backends.cpu.schedules.load_offset import row_axis
from slipway.backends.cpu.schedules.short_rows import rows_are_one, short_row_lanes
from slipway.backends.cpu.schedules.transpose import schedule_transposed
from slipway.backends.cpu.tile import vector_registers
from slipway.backends.stages import Loop, fuse, inline_injective, shape_of, split
from slipway.backends.strategy import Problem, register_pattern
from slipway.codegen.math.table import constants_of
from slipway.ir.expr import Call, ProducerLoad
from slipway.ir.visit import children, walk
from slipway.relay.dims import is_open, largest_divisor, usual
from slipway.relay.op_registry import OpPattern

if TYPE_CHECKING:
    from slipway.target import Target

_SLOW = 6  # streams: a function, or a read whose place is looked up
_FEWEST_OWN = 4  # elements of a row that are vectors of their own
_OPEN_TASKS = 16  # of loops whose number of steps is open, before more of them are fused


def schedule_elementwise_stage(
    schedule: te.Schedule, tensor: te.Tensor, target: Target, knobs: LoopKnobs | None = None
) -> None:
    """Schedule a stage without reduction: parallel outside, vectorised inside.

    What reads across memory is done in square tiles (see `transposition`).
    All axes are one loop where every element is made of those at the same place, and so are
    neighbours that nothing tells apart (`fused_neighbours`).  The innermost is cut into vectors; if
    it is shorter than one, the loops around it are fused with it first, or it gets shorter vectors
    (see `short_rows`).
    """
    knobs = knobs or loop_knobs(target)
    stage = schedule[tensor]
    loops = Loop.of(stage.op.axis)
    if not loops:
        return
    total = usual(prod(loop.extent for loop in loops))
    if schedule_transposed(schedule, tensor, target, vector_lanes(target, tensor.dtype)):
        return
    lanes = group_lanes(target, tensor.dtype, knobs.group)
    reading = reading_of(schedule, tensor, target)
    along, runs = row_axis([loop.extent for loop in loops]), [(0, len(loops))]
    if lanes < 2 or not reading.flat:
        runs = fused_neighbours(schedule, tensor)
        while len(runs) > 1 and runs[-1][0] > along:
            runs[-2:] = [(runs[-2][0], runs[-1][1])]  # axes of one lie within the row
    is_row = runs[-1][0] == along
    loops = [
        fuse(stage, loops[first:end]) if end - first > 1 else loops[first] for first, end in runs
    ]
    inner = loops.pop()
    row = inner.extent
    steady = reading.flat or (reading.along and row % lanes == 0 and row > lanes)
    short = short_row_lanes(schedule, tensor, target, lanes, runs[-1][0])
    if not short and is_row and not (reading.flat or reading.along):
        short = own_lanes(schedule, tensor, row, lanes)
    if short:
        steps, inner = split(stage, inner, short)
        stage.unroll(steps.axis)
        stage.vectorize(inner.axis)
    else:
        while loops and usual(inner.extent) < lanes:
            inner = fuse(stage, [loops.pop(), inner])
        vectorize(stage, loops, inner, lanes)
    if loops and reading.copied(total) >= knobs.share_from:
        loops = parallel_outer(stage, loops, total, knobs.share_from // max(4, reading.streams))
    if lanes > 1 and steady and loops:
        _unroll_steps(stage, loops[-1], knobs.unrolled // reading.size)


def own_lanes(schedule: te.Schedule, tensor: te.Tensor, row: Any, lanes: int) -> int:
    """Return the lanes of vectors for a row shorter than `lanes` that is read across memory.

    The row is one vector, of which each lane knows its place: of longer ones each would divide to
    find it.  0 where rows lie after one another.
    """
    if is_open(row) or not _FEWEST_OWN <= row < lanes or rows_are_one(schedule, tensor, lanes):
        return 0
    return int(row)


@dataclass(frozen=True)
class Reading:
    """What an element is made of: `size` in nodes; where it is read.

    `flat`: all at its own place.  `along`: along the last axis if at all, step by step.  `streams`:
    what is read and written, where a function or a place that is looked up takes as long as six.
    """

    size: int
    flat: bool
    along: bool
    streams: int

    def copied(self, elements: int) -> int:
        """Return how many elements are copied in the time that so many of these take."""
        return elements * self.streams // 2


def reading_of(schedule: te.Schedule, tensor: te.Tensor, target: Target) -> Reading:
    """Return how an element of a tensor is made, with what is inlined expanded.

    What several parts share is looked into once, and counts in each of them.
    """
    flat, along, streams = True, True, 1
    whole = schedule[tensor].op
    sizes: dict[tuple[int, int], int] = {}
    below: dict[tuple[int, int], list[tuple[Any, te.Operation]]] = {}
    roots = [(b, whole) for b in getattr(whole, "body", ())]
    todo = [(node, op, False) for node, op in roots]
    while todo:
        node, op, is_done = todo.pop()
        key = (id(node), id(op))
        if is_done:
            parts = sum(sizes[id(part), id(its)] for part, its in below[key])
            sizes[key] = _weight(node, target) + parts
            continue
        if key in below:
            continue
        if not isinstance(node, ProducerLoad):
            below[key] = [(child, op) for child in children(node)]
            if isinstance(node, Call) and constants_of(node.op):
                streams += _SLOW
        else:
            producer = node.producer
            own = [axis.var for axis in op.axis]
            if usual(prod(shape_of(producer))) > 1:
                shape = shape_of(producer)
                positions = zip(node.indices, own, shape, strict=False)
                elsewhere = any(i is not v and usual(extent) > 1 for i, v, extent in positions)
                flat = flat and not elsewhere and shape == shape_of(tensor)
                *outer, last = node.indices
                if own:  # what is inlined may be a single element, wherever it is read
                    follows = last is own[-1] or not _contains(last, own[-1])
                    along = along and follows and not any(_contains(i, own[-1]) for i in outer)
            is_inlined = schedule[producer].attach_type == "inline"
            if not is_inlined and usual(prod(shape_of(producer))) > 1:
                looked_up = any(isinstance(i, ProducerLoad) for x in node.indices for i in walk(x))
                streams += _SLOW if looked_up else 1
            bodies = _bodies(producer) if is_inlined else ()
            below[key] = [(body, producer.op) for body in bodies]
        todo.append((node, op, True))
        todo.extend((part, its, False) for part, its in below[key])
    return Reading(sum(sizes[id(b), id(op)] for b, op in roots), flat, along, streams)


def fused_neighbours(schedule: te.Schedule, tensor: te.Tensor) -> list[tuple[int, int]]:
    """Return runs of axes that are one loop without taking it apart, as first and end.

    Each read has all axes of a run one after the other, of the same extents, or none of them, and
    nothing else asks for one: channels of blocks are a run of their own, lines and columns another.
    """
    own, shape = list(schedule[tensor].op.axis), shape_of(tensor)
    apart = [is_open(a) or is_open(b) for a, b in pairwise(shape)]
    todo: list[tuple[Any, Any]] = [(b, schedule[tensor].op) for b in _bodies(tensor)]
    seen: set[tuple[int, int]] = set()
    while todo and not all(apart):
        node, op = todo.pop()
        if (id(node), id(op)) in seen:
            continue
        seen.add((id(node), id(op)))
        numbers = {id(axis.var): number for number, axis in enumerate(op.axis)}
        if id(node) in numbers:
            _tell_apart(apart, numbers[id(node)])
        elif isinstance(node, ProducerLoad):
            given = shape_of(node.producer)
            here = _positions(node.indices, numbers, apart)
            for axis in range(len(apart)):
                at, after = here.get(axis), here.get(axis + 1)
                if at is None and after is None:
                    continue
                if at is None or after != at + 1 or given[at + 1] != shape[axis + 1]:
                    apart[axis] = True
            if schedule[node.producer].attach_type == "inline":
                same = len(given) == len(shape) and all(
                    here.get(a) == a or given[a] == shape[a] == 1 for a in range(len(own))
                )
                if not same:
                    return [(a, a + 1) for a in range(len(own))]  # of other axes than these
                todo += [(body, node.producer.op) for body in _bodies(node.producer)]
        else:
            todo += [(child, op) for child in children(node)]
    ends = [axis + 1 for axis, split_here in enumerate(apart) if split_here]
    return list(zip([0, *ends], [*ends, len(own)], strict=True))


def _positions(
    indices: Sequence[Any], numbers: dict[int, int], apart: list[bool]
) -> dict[int, int]:
    """Return which index each axis is; one that is a part of an index is told apart."""
    found: dict[int, int] = {}
    for position, index in enumerate(indices):
        if id(index) in numbers and numbers[id(index)] not in found:
            found[numbers[id(index)]] = position
            continue
        for node in walk(index):
            if id(node) in numbers:
                _tell_apart(apart, numbers[id(node)])
    return found


def _tell_apart(apart: list[bool], axis: int) -> None:
    for pair in (axis - 1, axis):
        if 0 <= pair < len(apart):
            apart[pair] = True


def _weight(node: Any, target: Target) -> int:
    """Return how many nodes one counts as: a function, whose constants fill registers, as many.

    Constants that no registers hold are loaded each time, by one copy as by several; on x86
    arithmetic takes them from memory.
    """
    if not isinstance(node, Call) or target.arch.startswith("x86"):
        return 1
    constants = constants_of(node.op)
    return max(1, 4 * constants // 3) if constants <= vector_registers(target) else 1


def _contains(index: Any, variable: Any) -> bool:
    return any(node is variable for node in walk(index))


def _bodies(tensor: te.Tensor) -> Sequence[Any]:
    """Return the expressions that a tensor is computed from; none for other operations."""
    return getattr(tensor.op, "body", ())


def vectorize(stage: te.Stage, outer: list[Loop], inner: Loop, lanes: int) -> Loop:
    """Make vectors of the innermost loop; what is left of it joins `outer`."""
    if is_open(inner.extent):
        if lanes > 1:
            vectors, inner = split(stage, inner, lanes)
            outer.append(vectors)
            stage.vectorize(inner.axis)
        return inner
    if inner.extent > lanes and (inner.extent % lanes == 0 or inner.extent > 4 * lanes):
        vectors, inner = split(stage, inner, lanes)
        outer.append(vectors)
    if 1 < inner.extent <= 4 * lanes:
        stage.vectorize(inner.axis)
    return inner


def _unroll_steps(stage: Any, loop: Loop, most: int) -> None:
    """Unroll some steps of a loop, as many as divide it: counting them takes instructions too."""
    factor = largest_divisor(loop.extent, min(most, 4))
    if factor > 1:
        stage.unroll(split(stage, loop, factor)[1].axis)


def parallel_outer(stage: te.Stage, loops: Sequence[Loop], total: int, each: int) -> list[Loop]:
    """Run the outer loops in parallel, in tasks of `each` elements; return those inside.

    As few loops are fused as make enough tasks: taking indices apart takes divisions.  Those by an
    open size are no multiplications, so that tasks several times as long are enough there; and
    where there would be some, parts of the longest loop are the tasks, with the others inside.
    """
    wanted = max(1, total // each)
    if any(is_open(loop.extent) for loop in loops[1:]):
        wanted = min(wanted, max(_OPEN_TASKS, wanted // 4))
    count = 1
    while count < len(loops) and usual(prod(loop.extent for loop in loops[:count])) < wanted:
        count += 1
    if any(is_open(loop.extent) for loop in loops[1:count]):
        return _parallel_parts(stage, loops[:count], loops[count:], wanted)
    fused = fuse(stage, loops[:count])
    steps = usual(fused.extent)
    per_step = max(1, total // steps)
    factor = largest_divisor(fused.extent, min(each // per_step, steps))
    inside = list(loops[count:])
    if factor > 1:
        fused, step = split(stage, fused, factor)
        inside.insert(0, step)
    stage.parallel(fused.axis)
    return inside


def _parallel_parts(
    stage: te.Stage, outer: Sequence[Loop], inner: Sequence[Loop], wanted: int
) -> list[Loop]:
    """Run parts of the longest of the `outer` loops in parallel; return the loops inside."""
    at = max(range(len(outer)), key=lambda i: usual(outer[i].extent))
    longest = outer[at]
    factor = largest_divisor(longest.extent, max(1, usual(longest.extent) // wanted))
    part, inside = longest, [*outer[:at], *outer[at + 1 :], *inner]
    if factor > 1:
        part, step = split(stage, longest, factor)
        inside = [*outer[:at], step, *outer[at + 1 :], *inner]
    stage.reorder(part.axis, *(loop.axis for loop in inside[: len(inside) - len(inner)]))
    stage.parallel(part.axis)
    return inside


def schedule_injective(
    target: Target, outs: Sequence[te.Tensor], knobs: LoopKnobs | None = None
) -> te.Schedule:
    """Everything inlined into the outputs, each one nest of loops."""
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs)
    for tensor in {id(t.op): t for t in outs}.values():
        schedule_elementwise_stage(schedule, tensor, target, knobs)
    return schedule


@register_pattern(
    OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE, name="loops.elementwise",
    default=lambda problem: loop_knobs(problem.target), space=loop_space, cost=loop_cost,
)  # fmt: skip
def schedule_loops(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: LoopKnobs
) -> te.Schedule:
    """Everything inlined into the outputs."""
    return schedule_injective(problem.target, outs, knobs)
