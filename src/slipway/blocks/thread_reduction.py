"""Reductions whose steps are threads: started before their loops, and told how parts combine.

before: ``for i: threadIdx.x for k: block B: vi, vk ; init: B[vi] = 0 ; B[vi] = B[vi] + A[vi, vk]``
after:  ``for i: block B_init: B[vi] = 0 ; threadIdx.x for k (reduces): block B_update: ...``

What combines the parts of the threads is up to a backend; one without threads runs the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from slipway.blocks import tree
from slipway.blocks.move import decompose_reduction
from slipway.blocks.rfactor import Reduction, reduction_step
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.expr import CommReducer, PrimExpr, Var
from slipway.ir.function import PrimFunc

_IDENTITIES: dict[Callable[[Any, Any], PrimExpr], Callable[[str], PrimExpr]] = {
    ops.add: lambda dtype: ops.const(0, dtype), ops.mul: lambda dtype: ops.const(1, dtype),
    ops.maximum: ops.lowest, ops.minimum: ops.highest,
    ops.logical_and: lambda dtype: ops.TRUE, ops.logical_or: lambda dtype: ops.FALSE,
}  # fmt: skip


def reduce_over_threads(func: PrimFunc) -> PrimFunc:
    """Return `func` with the loops that its blocks reduce over, by threads, marked so."""
    body: Any = func.body
    for block in tree.leaf_blocks(func.body):
        if not any(one.kind == S.ForKind.THREAD for one in _reduced(func.body, block)):
            continue
        if any(one.kind == S.ForKind.THREAD and _is_data(block, one)
               for one in _reduced(func.body, block)):  # fmt: skip
            continue  # threads of several results: fused
        try:
            combiner = combiner_of(reduction_step(block))
        except ScheduleError:
            continue  # no sum and the like: its steps run in order where a backend can
        name = block.name
        if block.init is not None:
            now = tree.find_block(body, name)
            body, _ = decompose_reduction(body, now, _reduced(body, now)[0])
            name = f"{name}_update"
        for var in [one.loop_var for one in _reduced(body, tree.find_block(body, name))]:
            loop = tree.find_loop(body, var)
            if loop.kind == S.ForKind.THREAD:
                marked = loop.replace(annotations=(*loop.annotations, (S.REDUCES, combiner)))
                body = tree.exchanged(body, loop, marked)
    return func if body is func.body else func.replace(body=body)


def _reduced(root: Any, block: S.Block) -> list[S.For]:
    """Return the loops around a block that it reduces over."""
    values = [v for a, v in zip(block.axes, block.bindings, strict=True) if a.kind == "reduce"]
    nest = tree.own_loops(root, block)
    return [one for one in nest if any(tree.uses(v, one.loop_var) for v in values)]


def _is_data(block: S.Block, loop: S.For) -> bool:
    """Return whether a loop also runs along an axis that the block does not reduce over."""
    return any(
        axis.kind != "reduce" and tree.uses(value, loop.loop_var)
        for axis, value in zip(block.axes, block.bindings, strict=True)
    )


def combiner_of(step: Reduction) -> CommReducer:
    """Return how two parts of a reduction make one, and what a part starts with."""
    dtype = step.store.value.dtype
    left, right = Var("x", dtype), Var("y", dtype)
    start = _IDENTITIES[step.combine](dtype)
    return CommReducer((left,), (right,), (step.combine(left, right),), (start,))
