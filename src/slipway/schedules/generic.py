"""Schedules by fusion pattern, for operators that have none of their own.

Every one starts with `inline_injective`, keeps the loops of the outputs contiguous in memory,
vectorises the innermost and spreads the outermost over threads where there is enough work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from slipway import dtypes, te
from slipway.errors import LoweringError
from slipway.ir.ops import as_int
from slipway.ir.visit import post_order_by
from slipway.schedules.transposition import schedule_turned

if TYPE_CHECKING:
    from slipway.target import Target

# Below this many elements a launch of the thread pool costs more than it saves.
PARALLEL_ELEMENTS = 1 << 15


def vector_lanes(target: Target, dtype: str) -> int:
    """Return the lanes of one vector register of `target` for elements of `dtype`."""
    return max(1, target.vector_bits // max(8, dtypes.bits_of(dtype)))


def constant(value: Any) -> int:
    """Return a constant expression as a Python int; LoweringError for a symbolic one."""
    number = as_int(value)
    if number is None:
        raise LoweringError(f"this schedule needs constant shapes, got {value}")
    return number


def extent_of(axis: te.IterVar) -> int:
    """Return the constant extent of an axis."""
    return constant(axis.extent)


def shape_of(tensor: te.Tensor) -> tuple[int, ...]:
    """Return a constant shape as Python ints."""
    return tuple(constant(d) for d in tensor.shape)


def producers(outs: Iterable[te.Tensor]) -> list[te.Operation]:
    """Return the operations under `outs`, inputs first, each once."""
    return post_order_by(
        [t.op for t in outs][::-1], lambda op: [t.op for t in op.input_tensors][::-1]
    )


def is_injective(op: te.Operation) -> bool:
    """Tell whether an operation is a compute without reduction, which can be inlined."""
    return isinstance(op, te.ComputeOp) and not op.reduce_axis


def inline_injective(
    schedule: te.Schedule, outs: Sequence[te.Tensor], keep: Sequence[te.Tensor] = ()
) -> None:
    """Inline every computed tensor that is no reduction, no output and not in `keep`.

    What an operation of statements reads stays too: it reads memory.
    """
    kept = {id(t.op) for t in (*outs, *keep)}
    order = producers(outs)
    for op in order:
        if not isinstance(op, te.ComputeOp):
            kept.update(id(t.op) for t in op.input_tensors)
    for op in order:
        if is_injective(op) and id(op) not in kept:
            schedule[op].compute_inline()


@dataclass
class Loop:
    """A loop of a stage and how many steps it has; split and fused axes know none themselves."""

    axis: te.IterVar
    extent: int

    @staticmethod
    def of(axes: Iterable[te.IterVar]) -> list[Loop]:
        """Return the loops of a stage's own axes."""
        return [Loop(axis, extent_of(axis)) for axis in axes]


def fuse(stage: Any, loops: Sequence[Loop]) -> Loop:
    """Fuse adjacent loops into one."""
    if len(loops) == 1:
        return loops[0]
    return Loop(stage.fuse(*(loop.axis for loop in loops)), prod(loop.extent for loop in loops))


def split(stage: Any, loop: Loop, factor: int) -> tuple[Loop, Loop]:
    """Cut a loop into steps of `factor`; the last one may be guarded."""
    outer, inner = stage.split(loop.axis, factor=factor)
    return Loop(outer, -(-loop.extent // factor)), Loop(inner, factor)


def schedule_elementwise_stage(schedule: te.Schedule, tensor: te.Tensor, target: Target) -> None:
    """Schedule a stage without reduction: parallel outside, vectorised inside.

    What reads across memory is done in square tiles (see `transposition`).  Else the
    innermost axis is cut into vectors; if it is shorter than one, the loops around it are fused
    with it first.
    """
    stage = schedule[tensor]
    loops = Loop.of(stage.op.axis)
    if not loops:
        return
    total = prod(loop.extent for loop in loops)
    lanes = vector_lanes(target, tensor.dtype)
    if schedule_turned(schedule, tensor, target, lanes):
        return
    inner = loops.pop()
    while loops and inner.extent < lanes:
        inner = fuse(stage, [loops.pop(), inner])
    vectorize(stage, loops, inner, lanes)
    if loops and total >= PARALLEL_ELEMENTS:
        _parallel_outer(stage, loops, total)


def vectorize(stage: Any, outer: list[Loop], inner: Loop, lanes: int) -> Loop:
    """Make vectors of the innermost loop; what is left of it joins `outer`."""
    if inner.extent > lanes and (inner.extent % lanes == 0 or inner.extent > 4 * lanes):
        rest, inner = split(stage, inner, lanes)
        outer.append(rest)
    if 1 < inner.extent <= 4 * lanes:
        stage.vectorize(inner.axis)
    return inner


def _parallel_outer(stage: Any, loops: Sequence[Loop], total: int) -> None:
    """Run the outer loops in parallel, in tasks that are worth a launch."""
    fused = fuse(stage, loops)
    per_step = max(1, total // fused.extent)
    factor = max(1, min(PARALLEL_ELEMENTS // 4 // per_step, fused.extent))
    while fused.extent % factor:
        factor -= 1
    if factor > 1:
        fused, _ = split(stage, fused, factor)
    stage.parallel(fused.axis)


def schedule_injective(target: Target, outs: Sequence[te.Tensor]) -> te.Schedule:
    """Everything inlined into the outputs, each one nest of loops."""
    schedule = te.create_schedule([t.op for t in outs])
    inline_injective(schedule, outs)
    for tensor in {id(t.op): t for t in outs}.values():
        schedule_elementwise_stage(schedule, tensor, target)
    return schedule
