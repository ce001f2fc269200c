"""Passes of ``tir.transform`` over loops of threads, which the backend of GPUs holds."""

from __future__ import annotations

from slipway.backends.gpu.lowering.threads import classic_extents
from slipway.backends.gpu.lowering.unify_threads import unify_threads
from slipway.backends.gpu.lowering.vthread import inject_vthreads
from slipway.ir.function import PrimFunc
from slipway.transform.loop.classic import on_loops
from slipway.transform.manager import Pass


def InjectVirtualThread() -> Pass:
    """Move loops over virtual threads inwards, with a part of memory for each step.

    What the code generators do with those that are left; they take the result too.
    """

    def change(func: PrimFunc) -> PrimFunc:
        made: PrimFunc = func.replace(body=inject_vthreads(classic_extents(func.body)))
        return made

    return on_loops("InjectVirtualThread", change)


def UnifyThreadBinding() -> Pass:
    """Make one loop of the loops over each axis of threads, around all of their kernel.

    Raises LoweringError where two of them have different numbers of steps.
    """
    return on_loops("UnifyThreadBinding", unify_threads)


__all__ = ["InjectVirtualThread", "UnifyThreadBinding"]
