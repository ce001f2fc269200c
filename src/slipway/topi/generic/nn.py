"""Schedules of ready-made expressions for any CPU, and for a GPU in the scope of its target.

Injective stages are inlined into what reads them, unless that is a reduction or an output; every
stage that is left runs in parallel over its outermost axis.  The schedules of all operators are
this one.
"""

from __future__ import annotations

from typing import Any

from slipway.target import Target
from slipway.te.operation import ComputeOp
from slipway.te.schedule import Schedule, create_schedule, kept_in_memory
from slipway.te.tensor import Tensor
from slipway.topi import cuda
from slipway.topi.by_processor import shared
from slipway.topi.utils import is_injective


def schedule_injective(outs: Any) -> Schedule:
    """Return a schedule of output tensors (one, or a list), for any expression.

    In the scope of a GPU's target it is that of `topi.cuda`, in threads.
    """
    target = Target.current()
    if target is not None and "gpu" in target.keys:
        return cuda.schedule_injective(outs)
    tensors = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    s = create_schedule([t.op for t in tensors])
    kept = kept_in_memory(s)
    for stage in list(s.stages):
        if not isinstance(stage.op, ComputeOp):
            continue
        if is_injective(stage.op) and not stage.is_output and stage.op not in kept:
            stage.compute_inline()
        elif stage.op.axis:
            stage.parallel(stage.op.axis[0])
    return s


def schedule_pool(outs: Any, layout: str = "NCHW") -> Schedule:
    """Return a schedule of pooling, whatever its layout."""
    return schedule_injective(outs)


def default_schedule(outs: Any, auto_inline: bool = False) -> Schedule:
    """Return a schedule of output tensors as they are written; with `auto_inline` as above."""
    if auto_inline:
        return schedule_injective(outs)
    tensors = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    return create_schedule([t.op for t in tensors])


def schedule_injective_from_existing(sch: Schedule, out: Tensor) -> Schedule:
    """Run the stage of a tensor in parallel over its outermost axis, and return its schedule."""
    stage = sch[out]
    if stage.op.axis:
        stage.parallel(stage.op.axis[0])
    return sch


__getattr__, __dir__ = shared(__name__, schedule_injective)
