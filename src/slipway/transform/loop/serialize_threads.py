"""Loops bound to GPU threads, for a target that has none: blocks in parallel, threads serially.

before: ``blockIdx.x for b in range(16): threadIdx.x for t in range(64): C[b * 64 + t] = ...``
after:  ``parallel for b in range(16): for t in range(64): C[b * 64 + t] = ...``

Lowering puts all of what a stage computes inside one step of the loops around it, so that threads
that run one after another find what they read.  A barrier of the user's own inside such a loop
would need its threads to run in parallel, and is refused.
"""

from __future__ import annotations

from typing import Any

from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.visit import map_children, substitute, walk


def serialize_threads(func: PrimFunc) -> PrimFunc:
    """Return `func` without thread loops, if its target is a CPU.

    Raises LoweringError for a barrier between threads.
    """
    target = func.attr("target")
    if target is None or not target.kind.is_cpu:
        return func
    loops = (n for n in S.statements(func.body) if isinstance(n, S.For))
    if all(loop.kind != S.ForKind.THREAD for loop in loops):
        return func
    return func.replace(body=_visit(func.body, func.name, False))  # type: ignore[no-any-return]


def _visit(node: Any, name: str, parallel: bool) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    if not isinstance(node, S.For):
        return map_children(node, lambda child: _visit(child, name, parallel))
    kind, body = node.kind, node.body
    if kind == S.ForKind.THREAD:
        tag = node.thread.thread_tag if node.thread is not None else ""
        _refuse_barriers(node, tag, name)
        block = tag.startswith("blockIdx") and not parallel
        kind = S.ForKind.PARALLEL if block else S.ForKind.SERIAL
        if node.thread is not None and node.thread.var is not node.loop_var:
            body = substitute(body, {node.thread.var: node.loop_var})
    inside = parallel or kind == S.ForKind.PARALLEL
    notes = tuple(note for note in node.annotations if note[0] != S.REDUCES)
    body = _visit(body, name, inside)
    return node.replace(kind=kind, thread=None, body=body, annotations=notes)


def _refuse_barriers(loop: S.For, tag: str, name: str) -> None:
    for node in walk(loop.body):
        if isinstance(node, E.Call) and node.op in ("storage_sync", "tvm_storage_sync"):
            raise LoweringError(
                f"{name}: a barrier stands inside the loop {loop.loop_var.name}, which is bound to "
                f"{tag}. On a CPU threads run one after another: end the loop before the barrier, "
                "and start another after it"
            )
