"""A reduction whose steps are threads: each keeps its part, and the parts are combined as a tree.

before: ``threadIdx.x for t in range(64): B[i] = B[i] + A[i, t]``
after:  ``part = 0 + A[i, t]; all[t] = part; barrier; if t < 32: all[t] += all[t + 32]; barrier;``
``...; B[i] = B[i] + all[0]``

Where the threads of a warp exchange values (`warps.py`) and a row is a part of a warp, no memory
and no barrier is between: ``part += shuffle_down(part, 16); part += shuffle_down(part, 8); ...``,
and the first thread's sum goes to the others.  A row of some whole warps goes through shared memory
once, where each warp reads all parts.  The order is the tree's, so the bits are the same.

Plain loops of the same sum around the threads are put inside them first: each thread adds up all
of its parts, and they are combined once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from slipway.backends.gpu.lowering.thread_context import (
    TAGS,
    KernelContext,
    ThreadContext,
    tag_of,
)
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer, decl_buffer
from slipway.ir.instructions.warp_shuffles import EXCHANGED, shuffled
from slipway.ir.visit import map_children, substitute, walk

THREAD_TAGS = TAGS[3:]  # the outermost first


class CrossThread:
    """Makes the reductions of one kernel."""

    def __init__(self, kernel: KernelContext) -> None:
        self.kernel = kernel

    def reduce(self, loop: S.For, at: ThreadContext) -> S.Stmt:
        """Return the statements for a reduction over the threads of `loop` and such inside it."""
        combiner: E.CommReducer = next(v for key, v in loop.annotations if key == S.REDUCES)
        tags: list[str] = []
        conditions: list[E.PrimExpr] = []
        update = self._without_loops(loop, tags, conditions)
        if any(isinstance(n, S.For) and n.kind == S.ForKind.THREAD for n in walk(update)):
            raise LoweringError(
                f"{self.kernel.name}: inside the reduction over {', '.join(tags)} a stage is bound "
                "to threads again; compute it outside of the reduction"
            )
        targets = self._targets(update)
        count = len(combiner.result)
        if len(targets) != count:
            raise LoweringError(
                f"{self.kernel.name}: a reduction over threads stores {len(targets)} results and "
                f"combines {count}"
            )
        width, line, first, rows = self._layout(tags)
        warp = self._warp(tags, width, targets)
        held = max(1, width // warp) if warp > 1 else 1
        parts = [self._memory(t.buffer, (held,), "part", "local") for t in targets]
        lines: list[Buffer] = []
        if warp == 1 or warp < width:
            lines = [self._memory(t.buffer, (rows * width,), "parts", "shared") for t in targets]
        inside = replace(at, active=at.active | set(tags), path=(*at.path, id(loop)))
        zero = ops.const(0)
        start = [
            S.BufferStore(part, value, (zero,))
            for part, value in zip(parts, combiner.identity, strict=True)
        ]
        own = _redirect(update, {id(t.buffer): p for t, p in zip(targets, parts, strict=True)})
        guarded = replace(inside, conditions=(*inside.conditions, *conditions))
        body: list[S.Stmt] = [self._leaf(S.seq(start), replace(inside, conditions=()))]
        body.append(self._leaf(own, guarded))
        if lines:
            spread = [S.BufferStore(b, p[0], (line,)) for b, p in zip(lines, parts, strict=True)]
            body.append(self._step(S.seq(spread), inside, ()))
        if warp > 1:
            others = [self._memory(t.buffer, (1,), "other", "local") for t in targets]
            if lines:
                body.append(self._gathered(combiner, lines, parts, line, first, warp, inside))
            exchange = self._exchanged(combiner, parts, others, min(width, warp), warp)
            body.append(self._step(exchange, inside, ()))
            totals: list[E.PrimExpr] = [part[0] for part in parts]
            lines += others  # to be allocated
        else:
            body += self._tree(combiner, lines, line, first, width, inside)
            totals = [E.BufferLoad(all_, (E.Sub(line, first),)) for all_ in lines]
        positions = [(t.buffer, t.indices) for t in targets]
        results = self._combined(combiner, positions, totals)
        ending = replace(at, path=(*at.path, self.kernel.token()))
        body.append(self.kernel.leaf(results, ending))
        result = S.seq(body)
        for buffer in (*parts, *lines):
            result = S.Allocate(buffer, result)
        return result

    def _without_loops(self, node: Any, tags: list[str], conditions: list[E.PrimExpr]) -> Any:
        """Return `node` for a thread of the loops that reduce; enter their tags and conditions."""
        if not isinstance(node, S.Stmt):
            return node
        if isinstance(node, S.For) and _is_reduction(node):
            tags.append(tag_of(node, self.kernel.name))
            node, condition = self.kernel.enter(node)
            if condition is not None:
                conditions.append(condition)
            return self._without_loops(node, tags, conditions)
        return map_children(node, lambda child: self._without_loops(child, tags, conditions))

    def _targets(self, update: S.Stmt) -> list[S.BufferStore]:
        """Return the stores of the results: to memory from outside."""
        found: dict[int, S.BufferStore] = {}
        for node in _stored_outside(update):
            found.setdefault(id(node.buffer), node)
        return list(found.values())

    def _memory(self, like: Buffer, shape: tuple[int, ...], what: str, scope: str) -> Buffer:
        buffer = decl_buffer(shape, like.dtype, f"{like.name}.{what}", scope=scope)
        self.kernel.scopes[id(buffer.data)] = scope
        return buffer

    def _layout(self, tags: list[str]) -> tuple[int, E.PrimExpr, E.PrimExpr, int]:
        """Return how many threads reduce together, a thread's place, its rank among them, rows."""
        kernel = self.kernel
        others = [t for t in kernel.extents if t.startswith("threadIdx") and t not in tags]
        sizes = {t: ops.as_int(kernel.extents[t]) for t in (*tags, *others)}
        if any(tag.startswith("blockIdx") for tag in tags) or None in sizes.values():
            raise LoweringError(
                f"{kernel.name}: a reduction runs over the threads of one block, and their number "
                f"must be a constant; this one runs over {', '.join(tags)}"
            )
        rank = self._linear(tags, sizes)
        width = prod(sizes[t] or 1 for t in tags)
        rows = prod(sizes[t] or 1 for t in others)
        row = self._linear(others, sizes)
        line = rank if not others else E.Add(E.Mul(row, ops.const(width)), rank)
        return width, line, rank, rows

    def _linear(self, tags: list[str], sizes: dict[str, int | None]) -> E.PrimExpr:
        total: E.PrimExpr = ops.const(0)
        for number, tag in enumerate(tags):
            var = self.kernel.vars[tag]
            total = var if number == 0 else E.Add(E.Mul(total, ops.const(sizes[tag] or 1)), var)
        return total

    def _tree(
        self,
        combiner: E.CommReducer,
        lines: list[Buffer],
        line: E.PrimExpr,
        rank: E.PrimExpr,
        width: int,
        at: ThreadContext,
    ) -> list[S.Stmt]:
        steps: list[S.Stmt] = []
        for half in _halves(width):
            there = E.Add(line, ops.const(half))
            combined = self._combined(
                combiner,
                [(buffer, (line,)) for buffer in lines],
                [E.BufferLoad(buffer, (there,)) for buffer in lines],
            )
            tests = [E.LT(rank, ops.const(half))]
            if half * 2 > width:
                tests.append(E.LT(E.Add(rank, ops.const(half)), ops.const(width)))
            steps.append(self._step(combined, at, tuple(tests)))
        return steps

    def _warp(self, tags: list[str], width: int, targets: list[S.BufferStore]) -> int:
        """Return how many threads that reduce together exchange their parts; 1: none.

        Those of a warp follow each other along x, then y, then z, which the reduction must do too;
        and blocks are of whole warps: what a device does with a part of one, not all of them say.
        """
        warp = self.kernel.warp
        sizes = {t: ops.as_int(n) for t, n in self.kernel.extents.items() if t.startswith("thread")}
        threads = prod(n or 1 for n in sizes.values())
        wide = [tag for tag in tags if sizes[tag] != 1]
        inner = [tag for tag in THREAD_TAGS if sizes.get(tag, 1) != 1][-len(wide) :]
        fits = width % warp == 0 or (width < warp and width & (width - 1) == 0)
        kinds = {t.buffer.dtype for t in targets}
        if warp == 1 or width == 1 or threads % warp or not fits or wide != inner:
            return 1
        return warp if kinds <= EXCHANGED else 1

    def hands_to_all(self, loop: S.For) -> frozenset[str]:
        """Return the axes over which `loop` leaves its result with every thread."""
        inner = [n for n in walk(loop) if isinstance(n, S.For) and n.kind == S.ForKind.THREAD]
        tags = [tag_of(n, self.kernel.name) for n in inner if _is_reduction(n)]
        sizes = [ops.as_int(self.kernel.extents[tag]) for tag in tags]
        if not tags or None in sizes or len(tags) != len(inner):
            return frozenset()
        width = prod(size or 1 for size in sizes)
        exchanges = self._warp(tags, width, list(self._targets(loop))) > 1
        return frozenset(tags) if exchanges else frozenset()

    def _gathered(
        self,
        combiner: E.CommReducer,
        lines: list[Buffer],
        parts: list[Buffer],
        line: E.PrimExpr,
        rank: E.PrimExpr,
        warp: int,
        at: ThreadContext,
    ) -> S.Stmt:
        """Return what a warp does of a row of several: each thread sums every `warp`-th part."""
        (count,) = (ops.as_int(n) or 1 for n in parts[0].shape)
        first = E.Add(E.Sub(line, rank), ops.bitwise_and(rank, ops.const(warp - 1)))
        steps: list[S.Stmt] = []
        for number in range(count):
            position = E.Add(first, ops.const(number * warp))
            steps += [
                S.BufferStore(part, E.BufferLoad(all_, (position,)), (ops.const(number),))
                for part, all_ in zip(parts, lines, strict=True)
            ]
        for half in _halves(count):
            for number in range(min(half, count - half)):
                left = [(part, (ops.const(number),)) for part in parts]
                right = [part[number + half] for part in parts]
                steps.append(self._combined(combiner, left, right))
        return self._step(S.seq(steps), at, ())

    def _exchanged(
        self,
        combiner: E.CommReducer,
        parts: list[Buffer],
        others: list[Buffer],
        width: int,
        warp: int,
    ) -> S.Stmt:
        """Return the steps that leave the sum of `width` neighbours' parts with each of them."""
        zero = (ops.const(0),)
        steps: list[S.Stmt] = []

        def fetch(op: str, delta: int, to: list[Buffer]) -> None:
            steps.extend(
                S.BufferStore(other, shuffled(op, part[0], delta, width, warp), zero)
                for part, other in zip(parts, to, strict=True)
            )

        for half in _halves(width):
            fetch("warp_shuffle_down", half, others)
            left = [(part, zero) for part in parts]
            steps.append(self._combined(combiner, left, [other[0] for other in others]))
        fetch("warp_shuffle", 0, parts)
        return S.seq(steps)

    def _step(self, stmt: S.Stmt, at: ThreadContext, tests: tuple[E.PrimExpr, ...]) -> S.Stmt:
        """Return a step of the tree: every thread takes part, whatever its own conditions."""
        inside = replace(at, conditions=tests, path=(*at.path, self.kernel.token()))
        return self._leaf(stmt, inside)

    def _leaf(self, stmt: S.Stmt, at: ThreadContext) -> S.Stmt:
        every = frozenset(self.kernel.extents)  # also those along which each row does the same
        return self.kernel.leaf(stmt, replace(at, active=every))

    def _combined(
        self,
        combiner: E.CommReducer,
        left: Sequence[tuple[Buffer, tuple[E.PrimExpr, ...]]],
        right: Sequence[E.PrimExpr],
    ) -> S.Stmt:
        mapping: dict[Any, Any] = {}
        for k, (buffer, indices) in enumerate(left):
            mapping[combiner.lhs[k]] = E.BufferLoad(buffer, indices)
            mapping[combiner.rhs[k]] = right[k]
        results = [substitute(r, mapping) for r in combiner.result]
        fresh = [E.Var(f"{b.name}.new", r.dtype) for (b, _), r in zip(left, results, strict=True)]
        stmt: S.Stmt = S.seq(
            S.BufferStore(buffer, var, indices)
            for (buffer, indices), var in zip(left, fresh, strict=True)
        )
        for var, result in zip(reversed(fresh), reversed(results), strict=True):
            stmt = S.LetStmt(var, result, stmt)
        return stmt


def _is_reduction(loop: S.For) -> bool:
    """Return whether the steps of a loop are parts of one result."""
    return any(key == S.REDUCES for key, _ in loop.annotations)


def _halves(count: int) -> list[int]:
    """Return the distances of a tree over `count` parts: powers of two below it, down to 1."""
    return [1 << k for k in reversed(range((count - 1).bit_length()))]


def lanes_outside(node: S.For) -> S.For | None:
    """Return the threads of a reduction with the plain loops around them inside; None: not these.

    before: ``for k in range(8): threadIdx.x for t in range(64): B[i] = B[i] + A[i, k * 64 + t]``
    after:  ``threadIdx.x for t in range(64): for k in range(8): B[i] = B[i] + A[i, k * 64 + t]``

    Of loops that nothing stands between, and over which the result is one element: they add up.
    """
    serial: list[S.For] = []
    inner: S.Stmt = node
    while isinstance(inner, S.For) and inner.kind == S.ForKind.SERIAL and not inner.annotations:
        serial.append(inner)
        inner = inner.body
    if not serial or not isinstance(inner, S.For) or inner.kind != S.ForKind.THREAD:
        return None
    if not _is_reduction(inner):
        return None
    variables = {id(loop.loop_var) for loop in serial}
    positions: list[Any] = [inner.min, inner.extent]
    for stored in _stored_outside(inner.body):
        positions += stored.indices
    if any(id(part) in variables for position in positions for part in walk(position)):
        return None
    body = inner.body
    for loop in reversed(serial):
        body = loop.replace(body=body)
    made: S.For = inner.replace(body=body)
    return made


def _stored_outside(update: S.Stmt) -> list[S.BufferStore]:
    """Return the stores to memory that is not made inside a statement."""
    inside = {id(n.buffer.data) for n in walk(update) if isinstance(n, S.Allocate)}
    return [
        node
        for node in walk(update)
        if isinstance(node, S.BufferStore) and id(node.buffer.data) not in inside
    ]


def _redirect(node: Any, buffers: dict[int, Buffer]) -> Any:
    """Return `node` with element 0 of other memory in place of every access of some buffers."""
    if isinstance(node, E.BufferLoad) and id(node.buffer) in buffers:
        return buffers[id(node.buffer)][0]
    if isinstance(node, S.BufferStore) and id(node.buffer) in buffers:
        value = _redirect(node.value, buffers)
        return S.BufferStore(buffers[id(node.buffer)], value, (ops.const(0),))
    if isinstance(node, (E.PrimExpr, S.Stmt)):
        return map_children(node, lambda child: _redirect(child, buffers))
    return node
