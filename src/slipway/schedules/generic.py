"""Schedules by fusion pattern, for operators that have none of their own.

Every one starts with `inline_injective`, keeps the loops of the outputs contiguous in memory,
vectorises the innermost and spreads the outermost over threads where there is enough work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te

if TYPE_CHECKING:
    from slipway.target import Target

# Below this many elements a launch of the thread pool costs more than it saves.
PARALLEL_ELEMENTS = 16384


def vector_lanes(target: Target, dtype: str) -> int:
    """Return the lanes of one vector register of `target` for elements of `dtype`."""
    return max(1, target.vector_bits // max(8, dtypes.bits_of(dtype)))


def extent_of(axis: te.IterVar) -> int:
    """Return the constant extent of an axis."""
    return int(axis.dom.extent)


def shape_of(tensor: te.Tensor) -> tuple[int, ...]:
    """Return a constant shape as Python ints."""
    return tuple(int(d) for d in tensor.shape)


def producers(outs: Iterable[te.Tensor]) -> list[te.Operation]:
    """Return the operations under `outs`, inputs first, each once."""
    order: list[te.Operation] = []
    seen: set[int] = set()
    stack = [(t.op, False) for t in outs]
    while stack:
        op, ready = stack.pop()
        if ready:
            order.append(op)
        elif id(op) not in seen:
            seen.add(id(op))
            stack.append((op, True))
            stack.extend((t.op, False) for t in op.input_tensors)
    return order


def is_injective(op: te.Operation) -> bool:
    """Tell whether an operation is a compute without reduction, which can be inlined."""
    return isinstance(op, te.ComputeOp) and not op.reduce_axis


def inline_injective(
    schedule: te.Schedule, outs: Sequence[te.Tensor], keep: Sequence[te.Tensor] = ()
) -> None:
    """Inline every computed tensor that is no reduction, no output and not in `keep`."""
    kept = {id(t.op) for t in (*outs, *keep)}
    for op in producers(outs):
        if is_injective(op) and id(op) not in kept:
            schedule[op].compute_inline()


def schedule_elementwise_stage(schedule: te.Schedule, tensor: te.Tensor, target: Target) -> None:
    """Schedule a stage without reduction: parallel outside, vectorised inside.

    The innermost axis is cut into vectors; if it is shorter than one, the loops around it are fused
    with it first, where their lengths make whole vectors.
    """
    stage = schedule[tensor]
    axes = list(stage.op.axis)
    if not axes:
        return
    total = _work(axes)
    lanes = vector_lanes(target, tensor.dtype)
    inner = axes.pop()
    extent = extent_of(inner)
    while axes and extent < lanes:
        extent *= extent_of(axes[-1])
        inner = stage.fuse(axes.pop(), inner)
    if extent % lanes == 0 and extent > lanes:
        rest, inner = stage.split(inner, factor=lanes)
        axes.append(rest)
    elif extent > 4 * lanes:
        rest, inner = stage.split(inner, factor=lanes)
        axes.append(rest)
    if 1 < extent:
        stage.vectorize(inner)
    if axes and total >= PARALLEL_ELEMENTS:
        _parallel_outer(stage, axes, total)


def _work(axes: Iterable[te.IterVar]) -> int:
    total = 1
    for axis in axes:
        total *= extent_of(axis)
    return total


def _parallel_outer(stage: Any, axes: list[te.IterVar], total: int) -> None:
    """Run the outer loops in parallel, in tasks that are worth a launch."""
    fused = stage.fuse(*axes) if len(axes) > 1 else axes[0]
    steps = _work(axes)
    per_step = max(1, total // steps)
    factor = max(1, min(PARALLEL_ELEMENTS // 4 // per_step, steps))
    while steps % factor:
        factor -= 1
    if factor > 1:
        fused, _ = stage.split(fused, factor=factor)
    stage.parallel(fused)


def schedule_injective(target: Target, outs: Sequence[te.Tensor]) -> te.Schedule:
    """Everything inlined into the outputs, each one nest of loops."""
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs)
    for tensor in {id(t.op): t for t in outs}.values():
        schedule_elementwise_stage(schedule, tensor, target)
    return schedule


def schedule_opaque(target: Target, outs: Sequence[te.Tensor]) -> te.Schedule:
    """Each reduction its own loops, each output elementwise; maps between them inlined."""
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs)
    for op in producers(outs):
        if isinstance(op, te.ComputeOp) and op.reduce_axis:
            schedule_reduction_stage(schedule, op.output(0), target)
    for tensor in {id(t.op): t for t in outs}.values():
        if is_injective(tensor.op):
            schedule_elementwise_stage(schedule, tensor, target)
    return schedule


schedule_reduce = schedule_opaque


def schedule_reduction_stage(schedule: te.Schedule, tensor: te.Tensor, target: Target) -> None:
    """Schedule one reduction: parallel over what is kept, and vectors of the innermost axis.

    A kept innermost axis is the vector, with the reduction loops around it.  Where the reduction
    itself runs along the innermost axis, it is cut into partial results, one a lane (rfactor).
    """
    stage = schedule[tensor]
    axes, reduced = list(stage.op.axis), list(stage.op.reduce_axis)
    total = _work([*axes, *reduced])
    lanes = vector_lanes(target, tensor.dtype)
    if axes and extent_of(axes[-1]) > 1:
        extent, inner = extent_of(axes[-1]), axes.pop()
        if extent % lanes == 0 and extent > lanes or extent > 4 * lanes:
            rest, inner = stage.split(inner, factor=lanes)
            axes.append(rest)
        stage.reorder(*axes, *reduced, inner)
        stage.vectorize(inner)
    if axes and total >= PARALLEL_ELEMENTS:
        stage.parallel(stage.fuse(*axes) if len(axes) > 1 else axes[0])
