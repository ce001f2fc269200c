"""Schedules in threads of a GPU, under classic TVM's names: a thread computes an element.

What the outputs read element by element is computed in their threads; a stage with a reduction of
its own has threads of its own, and each runs its reduction from end to end.  A reduction to one
element, or to few, is cut: a block of threads makes partial results, and one of them the sum.
"""

from __future__ import annotations

from typing import Any

from slipway.ir import stmt as S
from slipway.ir.ops import as_int, equal
from slipway.te.declare import thread_axis
from slipway.te.operation import ComputeOp, ExternOp
from slipway.te.schedule import Schedule, create_schedule, kept_in_memory
from slipway.te.tensor import Tensor
from slipway.topi.by_processor import shared
from slipway.topi.dot_intrinsic import dp4a
from slipway.topi.utils import is_injective

THREADS = 256  # of a block
BLOCKS = 65535  # of a launch along an axis, which every device takes
CUT = 64  # threads that share one reduction


def schedule_injective(outs: Any) -> Schedule:
    """Schedule expressions of any kind: a thread an element."""
    tensors = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    schedule = create_schedule([t.op if isinstance(t, Tensor) else t for t in tensors])
    kept = kept_in_memory(schedule)
    for stage in reversed(schedule.stages):
        if isinstance(stage.op, ExternOp) and not _has_threads(stage.op):  # sorting, for example
            stage.env_threads(thread_axis("threadIdx.x"))
        if not isinstance(stage.op, ComputeOp):
            continue
        if stage.is_output or stage.op in kept or not is_injective(stage.op):
            _in_threads(schedule, stage.op)
        else:
            stage.compute_inline()
    return schedule


def _has_threads(op: ExternOp) -> bool:
    """Return whether the statements of an operation name threads themselves."""
    return any(
        (isinstance(n, S.For) and n.kind == S.ForKind.THREAD)
        or (isinstance(n, S.AttrStmt) and n.key in S.CLASSIC_THREADS)
        for n in S.statements(op.body)
    )


def _in_threads(schedule: Schedule, op: ComputeOp) -> None:
    stage = schedule[op]
    axes, reduced = list(op.axis), list(op.reduce_axis)
    elements = 1
    for axis in axes:
        elements *= as_int(axis.extent) or THREADS
    if reduced and elements < THREADS and op.num_outputs == 1:
        _shared_reduction(schedule, op)
        return
    if not axes:
        stage.bind(stage.fuse(), thread_axis("threadIdx.x"))
        return
    fused = stage.fuse(*axes)
    if elements > BLOCKS * THREADS:  # each thread has several, a whole launch apart
        step, fused = stage.split(fused, BLOCKS * THREADS)
        block, thread = stage.split(fused, THREADS)
        stage.reorder(block, thread, step)
    else:
        block, thread = stage.split(fused, THREADS)
    stage.bind(block, thread_axis("blockIdx.x"))
    stage.bind(thread, thread_axis("threadIdx.x"))


def _shared_reduction(schedule: Schedule, op: ComputeOp) -> None:
    """Cut the reduction of each element among the threads of a block."""
    stage = schedule[op]
    _, part = stage.split(stage.fuse(*op.reduce_axis), CUT)
    partial = schedule.rfactor(op.output(0), part)
    stage = schedule[op]
    tx = thread_axis("threadIdx.x")
    axis = stage.op.reduce_axis[0]
    stage.bind(axis, tx)
    schedule[partial].compute_at(stage, axis)
    stage.set_store_predicate(equal(tx.var, 0))
    stage.bind(stage.fuse(*stage.op.axis), thread_axis("blockIdx.x"))


def schedule_injective_from_existing(sch: Schedule, out: Tensor) -> Schedule:
    """Compute the stage of a tensor in threads, an element each, and return its schedule."""
    op = sch[out].op
    if isinstance(op, ComputeOp):
        _in_threads(sch, op)
    return sch


def schedule_pool(outs: Any, layout: str = "NCHW") -> Schedule:
    """Schedule a pool, whatever its layout."""
    return schedule_injective(outs)


__all__ = ["dp4a", "schedule_injective", "schedule_injective_from_existing", "schedule_pool"]
__getattr__, __dir__ = shared(__name__, schedule_injective)
