"""Rows that are reduced, in one kernel: softmax, norms, sums and maxima.

A row is what one result of the reduction is made of, and perhaps what that result changes: softmax
reads its rows for their maximum, for the sum of their exponentials, and the quotients.  A block has
some rows, and each row some threads (`lanes`)::

    each lane's part of the maximum, a tree over lanes; the same of the sum; each lane's quotients

With one lane a thread has its row for itself, which serves devices whose threads do not run in
step: three kernels become one there too, and what they hand to each other stays in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import log2, prod
from typing import Any

from slipway import te
from slipway.backends.gpu.limits import most_blocks, most_threads
from slipway.backends.gpu.schedules.generic import (
    Readers,
    ThreadKnobs,
    bind_blocks,
    readers_of,
    schedule_elements,
)
from slipway.backends.gpu.schedules.partial_sums import add_up, lane_sums
from slipway.backends.gpu.warps import (
    busy_threads,
    exchanging_threads,
    runs_in_lanes,
    runs_in_step,
)
from slipway.backends.stages import (
    extent_of,
    inline_injective,
    is_injective,
    producers,
    shape_of,
)
from slipway.backends.strategy import Knobs, Problem, register_strategy
from slipway.ir.expr import Call
from slipway.ir.visit import walk
from slipway.relay.layout import parse_layout
from slipway.relay.ops.tensor.reduce import reduced_axes
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU

_LANES = (1, 8, 16, 32, 64, 128, 256)
_ROWS = (1, 2, 4, 8, 16, 32, 64)

Axes = Callable[[Any, int], Sequence[int]]  # that an operator reduces, of its attributes and rank


@dataclass(frozen=True)
class RowOfThreadsKnobs(Knobs):
    """`lanes` threads share a row; a block has `rows`."""

    lanes: int
    rows: int


@dataclass(frozen=True)
class Rows:
    """How many rows of which length there are, and whether a row lies together in memory."""

    count: int
    length: int
    together: bool

    @staticmethod
    def of(shape: Sequence[Any], axes: Sequence[int]) -> Rows | None:
        """Return those of a tensor reduced over some axes; None where a size is open."""
        if not axes or not all(isinstance(n, int) and n > 0 for n in shape):
            return None
        length = prod(shape[axis] for axis in axes)
        return Rows(prod(shape) // length, length, len(shape) - 1 in axes)


def combining_cost(lanes: int, warp: int) -> float:
    """Return the multiply-adds that it is worth to sum the parts of `lanes` threads.

    `warp` threads hand each other their parts; 1: all is in shared memory.
    """
    if warp == 1 or lanes == 1:
        return ANY_GPU.tree_cost * log2(lanes)
    inside = ANY_GPU.shuffle_cost * (log2(min(lanes, warp)) + 1)  # and the sum to all
    if lanes <= warp:
        return inside
    return inside + ANY_GPU.barrier_cost + ANY_GPU.shared_cost * (1 + lanes / warp)


def row_cost(rows: Rows, knobs: RowOfThreadsKnobs, warp: int = 1) -> float:
    """Return the elements that the work of all threads is worth, where enough of them run.

    `warp` threads hand each other their parts, where blocks are of whole warps.
    """
    blocks, threads = -(-rows.count // knobs.rows), knobs.rows * knobs.lanes
    coalesced = knobs.lanes / 32 if rows.together else (1.0 if knobs.lanes == 1 else 0.0)
    each = min(ANY_GPU.apart_cost, 1 / coalesced) if coalesced else ANY_GPU.apart_cost
    steps = -(-rows.length // knobs.lanes) * max(1.0, each)
    steps += combining_cost(knobs.lanes, warp if threads % warp == 0 else 1)
    running = blocks * threads
    return (
        running
        * steps
        / (min(1.0, running / ANY_GPU.busy_threads) * min(1.0, threads / ANY_GPU.full_block))
    )


def legal_knobs(target: Target) -> list[RowOfThreadsKnobs]:
    """Return the knobs whose blocks a device of the target runs."""
    most = most_threads(target)
    lanes = _LANES if runs_in_step(target) else (1,)
    return [RowOfThreadsKnobs(n, r) for n, r in product(lanes, _ROWS) if n * r <= most]


def row_space(problem: Problem) -> dict[str, Sequence[Any]]:
    """Return the legal knobs."""
    legal = legal_knobs(problem.target)
    lanes = sorted({knobs.lanes for knobs in legal})
    most = most_threads(problem.target) // lanes[-1]
    return {"lanes": lanes, "rows": [n for n in _ROWS if n <= max(1, most)]}


def schedule_rows(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: RowOfThreadsKnobs
) -> te.Schedule:
    """Rows of a block each; a thread for each element where the kernel does more than that."""
    sums = [op for op in producers(outs) if isinstance(op, te.ComputeOp) and op.reduce_axis]
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs)
    out = outs[0]
    single = len({id(t.op) for t in outs}) == 1 and len(out.op.outputs) == 1
    axes = _row_axes(readers_of(schedule, outs), sums, out) if single else None
    if axes is None:
        return schedule_elements(problem, outs, anchor, ThreadKnobs(ANY_GPU.full_block))
    stage = schedule[out]
    if not axes:
        return _one_row(schedule, sums, out, knobs)
    columns = [axis for axis in stage.op.axis if all(axis is not a for a in axes)]
    beside = lane_sums(schedule, outs, problem.target) if knobs.lanes == 1 else {}
    stage.reorder(*axes, *columns, *stage.op.reduce_axis)
    total = prod(shape_of(out)[k] for k, a in enumerate(stage.op.axis) if any(a is b for b in axes))
    block, row = stage.split(stage.fuse(*axes), factor=knobs.rows, tail="guard")
    bind_blocks(stage, block, -(-total // knobs.rows), most_blocks(problem.target))
    if knobs.lanes == 1:
        stage.bind(row, te.thread_axis("threadIdx.x"))
        _expand(stage, [*columns, *stage.op.reduce_axis], problem.target)
    else:
        stage.bind(row, te.thread_axis("threadIdx.y"))
        if prod(extent_of(axis) for axis in columns) > 1:
            _share(stage, columns, knobs.lanes)
        elif stage.op.reduce_axis:
            _share(stage, stage.op.reduce_axis, knobs.lanes)
    for op in sums:
        if op is out.op:
            continue
        part = schedule[op.output(0)]
        part.compute_at(stage, row)
        if knobs.lanes == 1:
            part.set_scope("local")
            _expand(part, op.reduce_axis, problem.target)
        else:
            _share(part, op.reduce_axis, knobs.lanes)
    for sums_of_lanes in beside.values():
        add_up(schedule, sums_of_lanes, out, row)
    if knobs.lanes == 1 and runs_in_lanes(problem.target):
        for op in _computed_again(outs, total):
            part = schedule[op.output(0)]
            part.compute_at(stage, row)
            part.set_scope("local")
            if any(axis is stage.op.axis[-1] for axis in columns):
                _expand(part, op.axis, problem.target)
    return schedule


def _computed_again(outs: Sequence[te.Tensor], rows: int) -> list[te.ComputeOp]:
    """Return what a thread computes by functions for each of several readers: exponentials.

    Where a driver runs threads in lanes, a row of them is kept sooner than computed again.
    """
    order = producers(outs)
    results = {id(t.op) for t in outs}
    found = []
    for op in order:
        if not isinstance(op, te.ComputeOp) or not is_injective(op) or id(op) in results:
            continue
        readers = [r for r in order if any(t.op is op for t in r.input_tensors)]
        calls = any(isinstance(node, Call) for body in op.body for node in walk(body))
        is_short = prod(shape_of(op.output(0))) <= ANY_GPU.processor_row * rows
        if len(readers) > 1 and calls and is_short:
            found.append(op)
    return found


def _expand(stage: te.Stage, axes: Sequence[te.IterVar], target: Target) -> None:
    """Have several elements of a thread's own row in an iteration.

    Where a driver runs threads in lanes an iteration costs as much as reading an element: each asks
    which lanes are still in the loop.
    """
    if not axes or not runs_in_lanes(target):
        return
    most = min(ANY_GPU.processor_steps, extent_of(axes[-1]))
    steps = max(n for n in range(1, most + 1) if extent_of(axes[-1]) % n == 0)
    if steps > 1:
        stage.unroll(stage.split(axes[-1], factor=steps)[1])


def _one_row(
    schedule: te.Schedule, sums: Sequence[te.ComputeOp], out: te.Tensor, knobs: RowOfThreadsKnobs
) -> te.Schedule:
    """One number: each reduction is a block's, and what is computed of it one thread's."""
    for op in sums:
        if knobs.lanes > 1:
            _share(schedule[op.output(0)], op.reduce_axis, knobs.lanes)
    return schedule


def _share(stage: te.Stage, axes: Sequence[te.IterVar], lanes: int) -> None:
    """Give each lane of a row every `lanes`-th step of some loops."""
    fused = axes[0] if len(axes) == 1 else stage.fuse(*axes)
    _, lane = stage.split(fused, factor=lanes, tail="guard")
    stage.bind(lane, te.thread_axis("threadIdx.x"))


def _row_axes(
    readers: Readers, sums: Sequence[te.ComputeOp], out: te.Tensor
) -> list[te.IterVar] | None:
    """Return the axes of `out` along which there are rows; None where stages are of another form.

    Every reduction must be read at the axes of its own row alone, by `out` or by one that is.
    """
    known: dict[int, list[te.IterVar | None]] = {id(out.op): list(out.op.axis)}
    found: list[te.IterVar] | None = list(out.op.axis) if out.op.reduce_axis else None
    for op in reversed(sums):
        if op is out.op:
            continue
        if len(op.outputs) != 1:
            return None
        axes_of_load: list[te.IterVar | None] | None = None
        for reader, positions in readers.get(id(op), []):
            if positions is None or id(reader) not in known:
                return None
            own = {id(a.var): at for a, at in zip(reader.axis, known[id(reader)], strict=True)}
            for position in positions:
                here = [own.get(id(index)) for index in position]
                if axes_of_load is not None and any(
                    a is not b for a, b in zip(here, axes_of_load, strict=True)
                ):
                    return None
                axes_of_load = here
        if axes_of_load is None:
            return None
        shape = shape_of(op.output(0))
        if any(at is None and n != 1 for at, n in zip(axes_of_load, shape, strict=True)):
            return None
        axes = [at for at, n in zip(axes_of_load, shape, strict=True) if at is not None and n != 1]
        if found is None:
            found = axes
        wide = [a for a in found if extent_of(a) != 1]
        if sorted(map(id, wide)) != sorted(map(id, axes)):
            return None
        known[id(op)] = axes_of_load
    return (found or list(out.op.axis[:1])) if sums else None


def _is_short(length: int, busy: int = ANY_GPU.busy_threads) -> bool:
    """Return whether a thread changes a row sooner than two more kernels of elements start."""
    steps = length * (1 + ANY_GPU.exponential_cost)
    return steps <= 2 * ANY_GPU.launch_cost / busy


def _softmax_axes(attrs: Any, rank: int) -> Sequence[int]:
    return (attrs.axis % rank,)


def _instance_axes(attrs: Any, rank: int) -> Sequence[int]:
    return tuple(axis for axis in range(1, rank) if axis != attrs.axis % rank)


def _position_axes(attrs: Any, rank: int) -> Sequence[int]:
    axes = range(rank) if attrs.axis is None else attrs.axis
    return tuple(axis % rank for axis in ((axes,) if isinstance(axes, int) else axes))


def _image_axes(attrs: Any, rank: int) -> Sequence[int]:
    axes = parse_layout(attrs.layout).axes
    return tuple(k for k, axis in enumerate(axes) if axis.letter not in "NC")


def _register(names: Sequence[str], axes: Axes, reads: int) -> None:
    """Register the strategy for operators that reduce `axes`; they read a row `reads` times."""

    def rows_of(attrs: Any, in_types: Sequence[Any]) -> Rows | None:
        shape = tuple(in_types[0].shape)
        return Rows.of(shape, axes(attrs, len(shape)))

    def applies(attrs: Any, in_types: Sequence[Any], target: Target) -> bool:
        rows = rows_of(attrs, in_types)
        if rows is None or rows.length < 2:
            return False
        if runs_in_step(target):
            coalesced = rows.together or rows.count < ANY_GPU.busy_rows
            return coalesced and rows.length >= ANY_GPU.row_length
        if rows.length > ANY_GPU.longest_sum:
            return False
        is_short = _is_short(rows.length, busy_threads(target))
        return reads > 1 and (rows.count >= ANY_GPU.row_count or is_short)

    def cost(problem: Problem, knobs: RowOfThreadsKnobs) -> float:
        rows = rows_of(problem.attrs, problem.in_types)
        assert rows is not None
        return row_cost(rows, knobs, exchanging_threads(problem.target))

    def default(problem: Problem) -> RowOfThreadsKnobs:
        return min(legal_knobs(problem.target), key=lambda knobs: cost(problem, knobs))

    register_strategy(
        *names, name="threads.rows", priority=15, applies=applies, default=default,
        space=row_space, cost=cost,
    )(schedule_rows)  # fmt: skip


_register(("nn.softmax", "nn.log_softmax", "nn.layer_norm"), _softmax_axes, 3)
_register(("nn.instance_norm",), _instance_axes, 3)
_register(("argmax", "argmin"), _position_axes, 2)
_register(("sum", "mean", "max", "min"), reduced_axes, 1)
_register(
    [f"nn.global_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)], _image_axes, 1
)
