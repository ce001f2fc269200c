"""Shared memory of several steps of a loop: a step is fetched while those before are computed.

before: ``for k: allocate A.shared  # double_buffer 3``
        ``A.shared = A[k]; ... += A.shared``
after:  ``allocate A.shared[3]; fetch 0; fetch 1``
        ``for k: wait for fetch k; fetch k + 2 to place (k + 2) % 3; ... += A.shared[k % 3]``

What is fetched at a step lies where the step before has read, and is read by later ones: one
barrier, between the wait and the fetch, is for both (`barriers.py`).

That is for devices that copy while threads compute (`ir/instructions/async_copies.py`): on others
a thread would wait for what it fetches anyway, and the memory is filled where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slipway import dtypes
from slipway.backends.gpu.lowering.barriers import AHEAD
from slipway.backends.gpu.lowering.swizzle import swizzle_of
from slipway.backends.gpu.lowering.thread_context import is_shared
from slipway.backends.gpu.lowering.vthread import wider, with_step
from slipway.codegen.gpu.nvptx import version_of
from slipway.codegen.legalize import as_ramp
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.function import PrimFunc
from slipway.ir.instructions.async_copies import (
    ASYNC,
    COMMIT,
    COPIED_BYTES,
    MIN_VERSION,
    WAIT,
    WHOLE_BYTES,
)
from slipway.ir.visit import map_children, substitute, walk
from slipway.target import Target


def copies_while_computing(target: Target | None) -> bool:
    """Return whether the target's devices copy to shared memory while threads compute."""
    return target is not None and target.kind.name == "cuda" and version_of(target) >= MIN_VERSION


def fill_ahead(node: Any) -> Any:
    """Return statements whose shared memory marked "double_buffer" is filled steps ahead."""
    if not isinstance(node, S.Stmt):
        return node
    made = map_children(node, fill_ahead)
    if isinstance(made, S.For) and made.kind == S.ForKind.SERIAL:
        panels = _Panels.of(made)
        if panels is not None:
            return panels.ahead()
    return made


@dataclass(frozen=True)
class _Panels:
    """What a step of a loop fills in shared memory, and what it does with it then."""

    loop: S.For
    memory: tuple[Buffer, ...]
    notes: tuple[tuple[tuple[str, Any], ...], ...]
    copies: int
    fills: tuple[S.Stmt, ...]
    use: S.Stmt

    @staticmethod
    def of(loop: S.For) -> _Panels | None:
        """Return those of a loop; None where nothing is marked, or a step needs the one before."""
        memory: list[Buffer] = []
        notes = []
        fills: list[S.Stmt] = []
        copies, node = 1, loop.body
        while isinstance(node, S.Allocate) and is_shared(node.buffer.scope) and _copies(node) > 1:
            memory.append(node.buffer)
            notes.append(swizzle_of(node))
            copies = max(copies, _copies(node))
            steps = node.body.stmts if isinstance(node.body, S.SeqStmt) else (node.body,)
            count = 0
            while count < len(steps) and _filled(steps[count]) == {id(node.buffer.data)}:
                count += 1
            fills += steps[:count]
            node = S.seq(steps[count:])
        if not fills:
            return None
        changed = _stored(loop.body).difference(*(_own(fill) for fill in fills))
        loads = [n for fill in fills for n in walk(fill) if isinstance(n, E.BufferLoad)]
        if any(id(n.buffer.data) in changed for n in loads):
            return None
        return _Panels(loop, tuple(memory), tuple(notes), copies, tuple(fills), node)

    def ahead(self) -> S.Stmt:
        """Return the loop that fetches steps before they are used."""
        loop, copies = self.loop, self.copies
        wide = [wider(buffer, ops.const(copies)) for buffer in self.memory]
        step = ops.sub(loop.loop_var, loop.min)
        first = [self._fetch(ops.const(number), number, wide) for number in range(copies - 1)]
        later = ops.add(step, copies - 1)
        fetch = self._fetch(later, ops.floormod(later, copies), wide)
        wait = wait_for(copies - 2)  # the fetch of this step is not on its way yet
        use = self._at(self.use, ops.floormod(step, copies), wide)
        result: S.Stmt = S.seq((*first, loop.replace(body=S.seq((wait, fetch, use)))))
        for buffer, notes in zip(reversed(wide), reversed(self.notes), strict=True):
            result = S.Allocate(buffer, result, notes)
        return result

    def _fetch(self, step: E.PrimExpr, position: Any, wide: Sequence[Buffer]) -> S.Stmt:
        """Return the copies of a step, if there is one, as a group, which may be empty."""
        loop = self.loop
        filled = substitute(S.seq(self.fills), {loop.loop_var: ops.add(loop.min, step)})
        filled = self._at(_with_own_loops(filled), ops.as_expr(position), wide)
        inside = ops.less(step, loop.extent)
        copied = S.AttrStmt(ASYNC, ops.const(0), ops.const(0), filled)
        known = ops.as_int(inside)
        commit = S.Evaluate(E.Call("int32", COMMIT, ()))
        if known == 0:
            return commit
        fetch = copied if known == 1 else S.IfThenElse(inside, copied)
        return S.seq((S.AttrStmt(AHEAD, ops.const(0), ops.const(0), fetch), commit))

    def _at(self, node: S.Stmt, position: E.PrimExpr, wide: Sequence[Buffer]) -> S.Stmt:
        for buffer, whole in zip(self.memory, wide, strict=True):
            node = with_step(node, buffer, whole, position)
        return node


def wait_for(groups: int) -> S.Stmt:
    """Return the statement that waits until no more groups of copies are on their way."""
    return S.Evaluate(E.Call("int32", WAIT, (ops.const(groups),)))


def _copies(node: S.Allocate) -> int:
    """Return how many copies of its memory were asked for."""
    depth = next((value for key, value in node.annotations if key == "double_buffer"), 1)
    return 2 if depth is True else int(depth)


def _stored(node: S.Stmt) -> set[int]:
    """Return the memory that `node` changes, by id of its data."""
    calls = [n for n in walk(node) if isinstance(n, E.Call) and n.op == "warp_product"]
    named = [n for call in calls for n in walk(call) if isinstance(n, E.BufferLoad)]
    stored = [n.buffer for n in walk(node) if isinstance(n, S.BufferStore)]
    return {id(buffer.data) for buffer in (*stored, *(n.buffer for n in named))}


def _own(node: S.Stmt) -> set[int]:
    """Return the memory that `node` allocates."""
    return {id(n.buffer.data) for n in walk(node) if isinstance(n, S.Allocate)}


def _filled(node: S.Stmt) -> set[int]:
    """Return the memory that `node` changes and others see."""
    return _stored(node) - _own(node)


def _with_own_loops(node: Any) -> Any:
    """Return a copy of statements whose loops have variables of their own."""
    if isinstance(node, S.For):
        var = E.Var(node.loop_var.name, node.loop_var.dtype)
        mapping: dict[Any, Any] = {node.loop_var: var}
        body = substitute(node.body, mapping)
        return node.replace(loop_var=var, body=_with_own_loops(body))
    return map_children(node, _with_own_loops) if isinstance(node, S.Stmt) else node


def begin_copies(func: PrimFunc) -> PrimFunc:
    """Return `func` with copies in place of stores where `fill_ahead` has marked them.

    before: ``A.shared[i] = if_then_else(inside, A[j], 0)``
    after:  ``if inside: async_copy(&A.shared[i], &A[j], 4) else: A.shared[i] = 0``
    """
    if not any(isinstance(n, S.AttrStmt) and n.key == ASYNC for n in S.statements(func.body)):
        return func
    return func.replace(body=_begun(func.body, False))  # type: ignore[no-any-return]


def _begun(node: Any, marked: bool) -> Any:
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.AttrStmt) and node.key == ASYNC:
        return _begun(node.body, True)
    if marked and isinstance(node, S.BufferStore):
        return _copy(node)
    return map_children(node, lambda child: _begun(child, marked))


def _copy(store: S.BufferStore) -> S.Stmt:
    value = store.value
    if isinstance(value, E.Call) and value.op == "if_then_else":
        condition, yes, no = value.args
        if isinstance(condition, E.Broadcast):
            condition = condition.value
        if condition.lanes > 1:
            return store
        sides = [S.BufferStore(store.buffer, side, store.indices) for side in (yes, no)]
        return S.IfThenElse(condition, _copy(sides[0]), _copy(sides[1]))
    whole = isinstance(value, E.BufferLoad) and value.buffer.scope in ("", "global")
    if not whole or not is_shared(store.buffer.scope):
        return store
    size = dtypes.bytes_of(value.dtype)
    if size not in COPIED_BYTES if value.lanes == 1 else not _is_whole(store, size):
        return store
    to = E.BufferLoad(store.buffer, store.indices)
    positions = [E.Call("handle", "address_of", (load,)) for load in (to, value)]
    return S.Evaluate(E.Call("int32", "async_copy", (*positions, ops.const(size))))


def _is_whole(store: S.BufferStore, size: int) -> bool:
    """Return whether a vector is so many bytes, that lie beside each other on both sides."""
    value: Any = store.value
    ramps = [as_ramp(indices[-1]) for indices in (store.indices, value.indices)]
    return size == WHOLE_BYTES and all(ramp is not None and ramp[1] == 1 for ramp in ramps)
