"""One loop for each axis of threads of a kernel, at its top, in the place of several.

before: ``blockIdx.x for b: { threadIdx.x for t: B[t] = ...; threadIdx.x for u: C[u] = ... }``
after:  ``blockIdx.x for b: threadIdx.x for t: { B[t] = ...; C[t] = ... }``

Statements of one loop are one thread's, those of two loops beside each other may be of any: a
barrier stands between those that meet at elements which are not each thread's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slipway.backends.gpu.lowering.barriers import BARRIER
from slipway.backends.gpu.lowering.threads import classic_extents, is_thread_loop, thread_loops
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.structural import structural_equal
from slipway.ir.visit import map_children, substitute, walk


def unify_threads(func: PrimFunc) -> PrimFunc:
    """Return `func` with the loops over each axis of a kernel as one, around all of the kernel.

    Raises LoweringError where two loops over an axis have as many steps as two numbers.
    """
    body = _kernels(classic_extents(func.body), func.name)
    return func.replace(body=body)  # type: ignore[no-any-return]


def _kernels(node: Any, name: str) -> Any:
    if is_thread_loop(node):
        return _unified(node, name)
    return map_children(node, lambda child: _kernels(child, name)) if _has_inside(node) else node


def _has_inside(node: Any) -> bool:
    return isinstance(node, S.Stmt) and bool(thread_loops(node))


def _unified(root: S.For, name: str) -> S.Stmt:
    """Return a kernel whose axes, in the order of their first loops, are each one loop."""
    first: dict[str, S.For] = {}
    for loop in thread_loops(root):
        assert loop.thread is not None
        tag = loop.thread.thread_tag
        known = first.setdefault(tag, loop)
        if not _is_same(known.extent, loop.extent):
            raise LoweringError(
                f"{name}: {tag} has {known.extent} steps in loop {known.loop_var.name} and "
                f"{loop.extent} in loop {loop.loop_var.name} of one kernel: give both the same, "
                "with a condition inside the one that needs fewer"
            )
    body: S.Stmt = _without_loops(root, {tag: loop.loop_var for tag, loop in first.items()})
    for loop in reversed(first.values()):
        body = loop.replace(body=body)
    return body


def _is_same(one: E.PrimExpr, other: E.PrimExpr) -> bool:
    numbers = ops.as_int(one), ops.as_int(other)
    return numbers[0] == numbers[1] if None not in numbers else structural_equal(one, other)


def _without_loops(node: Any, variables: dict[str, E.Var]) -> Any:
    """Return statements without their loops over threads, whose variables are the given ones."""
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.SeqStmt):
        parts = [_without_loops(part, variables) for part in node.stmts]
        in_threads = [_has_threads_of_block(part) for part in node.stmts]
        return S.seq(_with_barriers(parts, in_threads, set(variables.values())))
    fresh = map_children(node, lambda child: _without_loops(child, variables))
    if not (isinstance(fresh, S.For) and is_thread_loop(fresh)):
        return fresh
    assert fresh.thread is not None
    own: E.PrimExpr = variables[fresh.thread.thread_tag]
    named = {
        var: own if var.dtype == own.dtype else ops.cast(own, var.dtype)
        for var in (fresh.loop_var, fresh.thread.var)
        if var is not own
    }
    return substitute(fresh.body, named) if named else fresh.body


def _has_threads_of_block(node: S.Stmt) -> bool:
    loops = (loop.thread for loop in thread_loops(node))
    return any(thread.thread_tag.startswith("threadIdx") for thread in loops if thread)


def _with_barriers(
    parts: Sequence[S.Stmt], in_threads: Sequence[bool], threads: set[E.Var]
) -> list[S.Stmt]:
    """Return statements with barriers between those of several loops that may meet."""
    made: list[S.Stmt] = []
    before: list[_Access] = []
    for part, is_loop in zip(parts, in_threads, strict=True):
        if is_loop:
            own = _accesses(part, threads)
            if any(a.meets(b) for a in before for b in own):
                made.append(BARRIER)
                before = []
            before += own
        made.append(part)
    return made


@dataclass(frozen=True)
class _Access:
    """A read or write: `indices` with the loops inside a thread by number, and their extents."""

    data: E.Var
    writes: bool
    indices: tuple[E.PrimExpr, ...]
    extents: tuple[E.PrimExpr, ...]

    def meets(self, other: _Access) -> bool:
        """Return whether two threads may come to one element, one of them writing."""
        if self.data is not other.data or not (self.writes or other.writes):
            return False
        mine, others = (self.indices, self.extents), (other.indices, other.extents)
        return not structural_equal(mine, others)


_STEPS = [E.Var(f"step{number}", "int64") for number in range(16)]  # of loops inside a thread


def _accesses(node: S.Stmt, threads: set[E.Var]) -> list[_Access]:
    """Return what a statement reads and writes of memory that it does not allocate itself."""
    extents = {n.loop_var: n.extent for n in walk(node) if isinstance(n, S.For)}
    inside = {n.buffer.data for n in walk(node) if isinstance(n, S.Allocate)}
    found = []
    for access in walk(node):
        if not isinstance(access, S.BufferStore | E.BufferLoad) or access.buffer.data in inside:
            continue
        variables = (v for index in access.indices for v in walk(index) if isinstance(v, E.Var))
        steps = [v for v in dict.fromkeys(variables) if v not in threads and v in extents]
        named: dict[E.Var, E.PrimExpr] = {
            v: ops.cast(step, v.dtype) for v, step in zip(steps, _STEPS, strict=False)
        }
        indices = tuple(substitute(index, named) for index in access.indices)
        writes = isinstance(access, S.BufferStore)
        counts = tuple(extents[v] for v in steps)
        found.append(_Access(access.buffer.data, writes, indices, counts))
    return found
