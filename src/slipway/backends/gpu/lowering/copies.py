"""Loops around kernels become kernels of their own: copies of tensors whose elements are packed.

Values of four bits are computed in bytes (codegen/narrow.py), once kernels are what they are; what
packs them for the caller stands around them.

before: ``for j in range(n): B[j] = unpacked[2 j] & 15 | unpacked[2 j + 1] << 4``
after:  ``blockIdx.x for b: threadIdx.x for t: if b * 64 + t < n: B[b * 64 + t] = ...``

A statement outside of loops is one thread's.
"""

from __future__ import annotations

from typing import Any

from slipway.backends.gpu.limits import most_threads
from slipway.backends.gpu.lowering.threads import has_threads, is_thread_loop
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.visit import map_children, substitute, walk
from slipway.target import Target
from slipway.target.gpu_costs import ANY_GPU


def bind_copies(node: S.Stmt, target: Target) -> S.Stmt:
    """Return a function's body with a kernel for each loop or store that is in none."""
    if is_thread_loop(node):
        return node
    if has_threads(node) or isinstance(node, S.Allocate | S.LetStmt | S.SeqStmt):
        return map_children(  # type: ignore[no-any-return]
            node, lambda n: bind_copies(n, target) if isinstance(n, S.Stmt) else n
        )
    if not any(isinstance(n, S.BufferStore) for n in walk(node)):
        return node
    threads = min(ANY_GPU.full_block, most_threads(target)) if isinstance(node, S.For) else 1
    block, thread = E.Var("blockIdx.x", "int32"), E.Var("threadIdx.x", "int32")
    if not isinstance(node, S.For):
        return _bound(thread, ops.const(1), node)
    step: E.PrimExpr = ops.add(ops.mul(block, threads), thread)
    step = ops.cast(step, node.loop_var.dtype)
    body = substitute(node.body, {node.loop_var: ops.add(step, node.min)})
    extent = ops.cast(node.extent, "int32")
    guarded = S.IfThenElse(ops.less(step, node.extent), body)
    blocks = ops.floordiv(ops.add(extent, threads - 1), threads)
    return _bound(block, blocks, _bound(thread, ops.const(threads), guarded))


def _bound(var: E.Var, extent: E.PrimExpr, body: Any) -> S.Stmt:
    axis = E.IterVar(E.Range.of(extent), var, "thread", var.name)
    return S.For(var, ops.const(0), extent, S.ForKind.THREAD, body, axis)
