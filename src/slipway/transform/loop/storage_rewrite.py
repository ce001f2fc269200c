"""Storage rewrite: buffers that are never alive together share memory.

before: ``allocate T0; allocate T1; allocate T2: T0 = f(X); T1 = g(T0); T2 = h(T1); Y = k(T2)``
after:  ``allocate T0; allocate T1: T0 = f(X); T1 = g(T0); T0' = h(T1); Y = k(T0')``

A buffer may also take the place of the one that it is computed from, element by element
(`transform/loop/in_place.py`).
Only temporaries of constant size in scope "global" take part, each with others of its element
type, and only among the statements of one level (a loop body, or the whole function).
"""

from __future__ import annotations

from typing import Any

from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.function import PrimFunc
from slipway.ir.visit import map_children, substitute, walk
from slipway.transform.context import PassContext
from slipway.transform.loop.in_place import is_in_place


def storage_rewrite(func: PrimFunc) -> PrimFunc:
    """Return `func` with dead buffers' memory used again."""
    if PassContext.current().option("tir.disable_storage_rewrite"):
        return func
    return func.replace(body=_rewrite(func.body))  # type: ignore[no-any-return]


def _rewrite(node: Any) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    if not isinstance(node, (S.Allocate, S.SeqStmt)):
        return map_children(node, _rewrite)
    steps: list[S.Stmt] = []
    buffers: list[Buffer] = []
    others: list[Buffer] = []
    _collect(node, steps, buffers, others)
    if len(buffers) < 2:
        return map_children(node, _rewrite)
    plan = _share(steps, buffers)
    if all(slot is buffer for buffer, slot in plan.items()):
        return map_children(node, _rewrite)
    return _emit(steps, plan, others)


def _is_fixed(node: S.Allocate) -> bool:
    buffer = node.buffer
    sized = buffer.ndim == 1 and ops.as_int(buffer.shape[0]) is not None
    return sized and not node.annotations


def _collect(
    node: S.Stmt, steps: list[S.Stmt], buffers: list[Buffer], others: list[Buffer]
) -> None:
    """Lay the statements of one level out in order, and take the allocations out of them.

    `others` are those of another scope, which take no part.
    """
    if isinstance(node, S.SeqStmt):
        for inner in node.stmts:
            _collect(inner, steps, buffers, others)
    elif isinstance(node, S.Allocate) and _is_fixed(node):
        (buffers if node.buffer.scope in ("", "global") else others).append(node.buffer)
        _collect(node.body, steps, buffers, others)
    else:
        steps.append(node)


def _share(steps: list[S.Stmt], buffers: list[Buffer]) -> dict[Buffer, Buffer]:
    """Return for each buffer the one whose memory it takes (itself, where it opens new memory)."""
    lives = _live_ranges(steps, buffers)
    order = sorted((b for b in buffers if b in lives), key=lambda b: lives[b][0])
    free_at: dict[Buffer, int] = {}
    holder: dict[Buffer, Buffer] = {}  # of each slot: the buffer that had it last
    sizes: dict[Buffer, int] = {}
    plan: dict[Buffer, Buffer] = {}
    for buffer in order:
        first, last = lives[buffer]
        size = _size(buffer)
        ready = [
            slot
            for slot, end in free_at.items()
            if slot.dtype == buffer.dtype
            and (end < first or (end == first and is_in_place(steps[first], holder[slot], buffer)))
        ]
        # The nearest size wastes least: fitting ones first, then the largest.
        slot = min(
            ready,
            key=lambda s: (sizes[s] < size, abs(sizes[s] - size)),
            default=buffer,
        )
        plan[buffer] = slot
        holder[slot] = buffer
        free_at[slot] = last
        sizes[slot] = max(sizes.get(slot, size), size)
    return plan


def _size(buffer: Buffer) -> int:
    size = ops.as_int(buffer.shape[0])
    assert size is not None
    return size


def _live_ranges(steps: list[S.Stmt], buffers: list[Buffer]) -> dict[Buffer, tuple[int, int]]:
    owner = {b.data: b for b in buffers}
    lives: dict[Buffer, tuple[int, int]] = {}
    for position, step in enumerate(steps):
        for node in walk(step):
            if isinstance(node, E.Var) and node in owner:
                buffer = owner[node]
                first, _ = lives.get(buffer, (position, position))
                lives[buffer] = (first, position)
    return lives


def _emit(steps: list[S.Stmt], plan: dict[Buffer, Buffer], others: list[Buffer]) -> S.Stmt:
    sizes: dict[Buffer, int] = {}
    for buffer, slot in plan.items():
        sizes[slot] = max(sizes.get(slot, _size(buffer)), _size(buffer))
    mapping: dict[Any, Any] = {}
    slots = []
    for slot, size in sizes.items():
        grown = slot.replace(shape=(ops.const(size, slot.shape[0].dtype),))
        slots.append(grown)
        mapping[slot] = grown
    for buffer, slot in plan.items():
        if buffer is not slot:
            mapping[buffer] = buffer.replace(data=slot.data)
            mapping[buffer.data] = slot.data
    body = S.seq(_rewrite(substitute(step, mapping)) for step in steps)
    for slot in reversed([*slots, *others]):
        body = S.Allocate(slot, body)
    return body
