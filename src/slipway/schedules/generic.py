"""Schedules by fusion pattern, for operators that have none of their own.

Every one starts with `inline_injective`, keeps the loops of the outputs contiguous in memory,
vectorises the innermost and spreads the outermost over threads where there is enough work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

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


def schedule_elementwise_stage(
    schedule: te.Schedule, tensor: te.Tensor, target: Target, parallel: bool = True
) -> None:
    """Schedule one stage without reduction: fused, parallel outside, vectorised inside."""
    stage = schedule[tensor]
    axes = list(stage.op.axis)
    if not axes:
        return
    total = 1
    for axis in axes:
        total *= extent_of(axis)
    lanes = vector_lanes(target, tensor.dtype)
    inner_extent = extent_of(axes[-1])
    fused = stage.fuse(*axes) if len(axes) > 1 else axes[0]
    if total % lanes == 0 and (inner_extent % lanes == 0 or _is_flat(tensor)):
        outer, inner = stage.split(fused, factor=lanes)
        stage.vectorize(inner)
    else:
        outer = fused
        lanes = 1
    if parallel and total >= PARALLEL_ELEMENTS:
        chunk, _ = stage.split(outer, nparts=min(64, max(1, total // lanes)))
        stage.parallel(chunk)


def _is_flat(tensor: te.Tensor) -> bool:
    """Tell whether a tensor of rank above one may be walked as one long row; never assumed."""
    return len(tensor.shape) == 1


def schedule_injective(target: Target, outs: Sequence[te.Tensor]) -> te.Schedule:
    """Everything inlined into the outputs, each one flat loop."""
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs)
    for op in {id(t.op): t for t in outs}.values():
        schedule_elementwise_stage(schedule, op, target)
    return schedule


def schedule_reduce(target: Target, outs: Sequence[te.Tensor]) -> te.Schedule:
    """Reductions with their inputs inlined; parallel over what is kept."""
    return schedule_opaque(target, outs)


def schedule_opaque(target: Target, outs: Sequence[te.Tensor]) -> te.Schedule:
    """Each reduction its own loops, each output elementwise; intermediate maps inlined."""
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs)
    for op in producers(outs):
        if isinstance(op, te.ComputeOp) and op.reduce_axis:
            schedule_reduction_stage(schedule, op.output(0), target)
    for tensor in {id(t.op): t for t in outs}.values():
        if is_injective(tensor.op):
            schedule_elementwise_stage(schedule, tensor, target)
    return schedule


def schedule_reduction_stage(schedule: te.Schedule, tensor: te.Tensor, target: Target) -> None:
    """Schedule one reduction: parallel over the outermost kept axes."""
    stage = schedule[tensor]
    axes = list(stage.op.axis)
    work = 1
    for axis in (*axes, *stage.op.reduce_axis):
        work *= extent_of(axis)
    if not axes or work < PARALLEL_ELEMENTS:
        return
    outer = stage.fuse(*axes[:-1]) if len(axes) > 2 else axes[0]
    stage.parallel(outer)
