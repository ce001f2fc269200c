"""Kernels of several reductions over the same rows: variances and norms of small operators.

Where a thread for each row takes less than a kernel for each reduction and one for what they
change, by launches and by the threads that are busy, it is that (`rows`); else it is a kernel for
each.  Where threads run in step, the last reduction's own strategy has lanes for its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from slipway import te
from slipway.backends.gpu.schedules.generic import (
    ThreadKnobs,
    schedule_elements,
    thread_cost,
    thread_knobs,
    thread_space,
)
from slipway.backends.gpu.schedules.partial_sums import is_together, reduction_cost
from slipway.backends.gpu.schedules.rows import RowOfThreadsKnobs, schedule_rows
from slipway.backends.gpu.warps import busy_threads, is_processor, runs_in_step
from slipway.backends.stages import extent_of, producers, shape_of
from slipway.backends.strategy import Problem, register_pattern
from slipway.relay.op_registry import OpPattern
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU


@register_pattern(
    OpPattern.COMM_REDUCE, name="threads.elements", default=thread_knobs, space=thread_space,
    cost=thread_cost,
)  # fmt: skip
def schedule_reductions(
    problem: Problem, outs: Sequence[te.Tensor], anchor: te.Tensor, knobs: ThreadKnobs
) -> te.Schedule:
    """A thread for each row of all reductions, or for each element of each."""
    if _are_rows_cheaper(outs, problem.target):
        return schedule_rows(problem, outs, anchor, RowOfThreadsKnobs(1, knobs.threads))
    return schedule_elements(problem, outs, anchor, knobs)


def _are_rows_cheaper(outs: Sequence[te.Tensor], target: Target) -> bool:
    sums = [op for op in producers(outs) if isinstance(op, te.ComputeOp) and op.reduce_axis]
    if len(outs) != 1 or not sums or not shape_of(outs[0]):
        return False
    sizes = [(_size(op.output(0)), prod(map(extent_of, op.reduce_axis))) for op in sums]
    count, length = sizes[0]
    elements = _size(outs[0])
    known = all(isinstance(n, int) for n in (count, length, elements))
    if not known or any(size != sizes[0] for size in sizes) or length > ANY_GPU.longest_sum:
        return False
    last = 1 if elements > count else 0
    together = any(is_together(op) for op in sums)
    if len(sums) + last < 2 or (together and runs_in_step(target)):
        return False
    busy = busy_threads(target)
    # Neighbouring threads have whole rows between them, where they could have neighbours.
    each = 1.0 if is_processor(target) or not together else ANY_GPU.apart_cost
    rows = (len(sums) + last * each) * count * length / min(1.0, count / busy)
    reductions = len(sums) * reduction_cost(count, length, target)
    changed = last * elements / min(1.0, elements / busy)
    return rows < reductions + changed + (len(sums) + last - 1) * ANY_GPU.launch_cost


def _size(tensor: te.Tensor) -> int:
    return prod(shape_of(tensor))
