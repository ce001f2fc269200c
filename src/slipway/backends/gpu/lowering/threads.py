"""Loops bound to threads become kernels, in which every thread runs one step of each.

before: ``blockIdx.x for b in range(16): threadIdx.x for t in range(64): C[b * 64 + t] = ...``
after:  the same two loops, outermost and once each, around code that reads their variables

A schedule says in serial loops what is to be computed; threads are the steps of some of them.
Several stages bind the same axis: their loops stand beside each other, or in each other.

- Beside each other: each thread does its step of the first, then of the second.
- In each other, the inner one filling memory that the block shares: all threads fill it together,
  whatever conditions their own results stand under.  An inner one that fills a thread's own memory
  is a plain loop of that thread.
- A statement outside of all loops of an axis is done by the axis's first thread, unless it fills
  memory of each thread's own; so is one that fills shared memory alike for all threads of the axis.

What a thread reads that another wrote comes behind a barrier (`barriers.py`).  Conditions between
threads of a block are pushed down to the statements that compute, so that all threads of a block
reach every barrier.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from slipway.arith.analyzer import Analyzer
from slipway.backends.gpu.limits import gives_memory
from slipway.backends.gpu.lowering.barriers import AHEAD, LEAF, insert_barriers, meets_itself
from slipway.backends.gpu.lowering.cross_thread import CrossThread, lanes_outside
from slipway.backends.gpu.lowering.fill_ahead import copies_while_computing, fill_ahead
from slipway.backends.gpu.lowering.one_writer import need_one_writer
from slipway.backends.gpu.lowering.single_results import beginnings_joined, give_blocks
from slipway.backends.gpu.lowering.swizzle import swizzle_of
from slipway.backends.gpu.lowering.thread_context import (
    TAGS,
    ThreadContext,
    is_shared,
    is_together,
    kept_inside,
    named_outside,
    tag_of,
)
from slipway.backends.gpu.lowering.vthread import inject_vthreads, wider, with_step
from slipway.backends.gpu.warps import exchanging_threads
from slipway.codegen.gpu.dynamic_shared import SCOPE as DYNAMIC
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.function import PrimFunc
from slipway.ir.structural import structural_equal
from slipway.ir.visit import children, map_children, substitute, walk
from slipway.target import Target

if TYPE_CHECKING:
    from slipway.ir.node import Node


ONE_THREAD = "one_thread"  # attribute of a function whose unbound loops may be one thread's


def map_threads(func: PrimFunc) -> PrimFunc:
    """Return `func` with each group of thread loops a kernel.

    Raises LoweringError for loops that no thread runs, and for threads that cannot be mapped.
    """
    body = give_blocks(classic_extents(func.body))
    made = _Host(func).visit(body)
    return func.replace(body=made)  # type: ignore[no-any-return]


def is_thread_loop(node: Node) -> bool:
    """Return whether `node` is a loop over threads."""
    return isinstance(node, S.For) and node.kind == S.ForKind.THREAD


def thread_loops(node: S.Stmt) -> list[S.For]:
    """Return the loops over threads in `node`, the outer ones first."""
    return [n for n in walk(node) if isinstance(n, S.For) and n.kind == S.ForKind.THREAD]


def has_threads(node: S.Stmt) -> bool:
    """Return whether there is a loop over threads in `node`."""
    return any(is_thread_loop(n) for n in walk(node))


def classic_extents(node: Any) -> Any:
    """Make thread loops of classic ``thread_extent`` notes."""
    if not isinstance(node, S.Stmt):
        return node
    if isinstance(node, S.AttrStmt) and node.key in S.CLASSIC_THREADS:
        axis: E.IterVar = node.node
        extent = ops.as_expr(node.value)
        body = classic_extents(node.body)
        zero = ops.const(0, axis.var.dtype)
        return S.For(axis.var, zero, extent, S.ForKind.THREAD, body, axis)
    return map_children(node, classic_extents)


class _Host:
    """The statements around kernels."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.name = func.name
        self.alone = bool(func.attr(ONE_THREAD, False))
        self.target: Target | None = func.attr("target")

    def visit(self, node: Any) -> Any:
        if is_thread_loop(node):
            return _Kernel(node, self.name, self.target).statement()
        if isinstance(node, S.Stmt) and not has_threads(node):
            return self._unbound(node)
        if isinstance(node, S.Allocate):
            return node.replace(body=self.visit(node.body))
        if isinstance(node, S.SeqStmt) and self.alone:
            return S.seq([self.visit(one) for one in beginnings_joined(node.stmts)])
        if isinstance(node, S.Stmt):
            return map_children(node, self.visit)
        return node

    def _unbound(self, node: S.Stmt) -> S.Stmt:
        """Return loops that no thread runs as one thread's, or refuse them."""
        stores = [n for n in walk(node) if isinstance(n, S.BufferStore)]
        stored = [n.buffer.name for n in stores]
        if not stored:
            return node
        given = {id(buffer.data) for _, buffer in self.func.buffer_map}
        # A table of constants, which a function of topi makes, is no stage that a script can name.
        table = all(_is_number(n.value) and id(n.buffer.data) not in given for n in stores)
        if not (self.alone or table):
            raise LoweringError(
                f"{self.name}: the loops that compute {stored[0]!r} are bound to no thread, and "
                "the target runs threads only. Bind an axis of each stage: "
                's[B].bind(axis, te.thread_axis("blockIdx.x")), or compute it inside a stage '
                "that is bound (compute_at, compute_inline)"
            )
        var = E.Var("threadIdx.x", "int32")
        axis = E.IterVar(E.Range.of(ops.const(1)), var, "thread", "threadIdx.x")
        zero, one = ops.const(0), ops.const(1)
        loop = S.For(var, zero, one, S.ForKind.THREAD, node, axis)
        return _Kernel(loop, self.name, self.target).statement()


def _is_number(value: E.PrimExpr) -> bool:
    return isinstance(value, E.IntImm | E.FloatImm)


class _Kernel:
    """One group of thread loops."""

    def __init__(self, root: S.For, name: str, target: Target | None) -> None:
        self.name = name
        self.warp = exchanging_threads(target)
        self.is_given = target is not None and gives_memory(target)
        self.root = inject_vthreads(root)
        if copies_while_computing(target):
            self.root = fill_ahead(self.root)
        self.extents: dict[str, E.PrimExpr] = {}
        self.scopes: dict[int, str] = {}  # of memory allocated in the kernel, by data Var
        self.own: dict[int, list[str]] = {}  # axes whose threads have a part each, by data Var
        self.tokens = 0
        known = Analyzer()
        inside: list[E.Var] = []
        for loop in (n for n in walk(self.root) if isinstance(n, S.For)):
            if is_thread_loop(loop):
                self._note_extent(loop, inside, known)
            known.bind_range(loop.loop_var, E.Range(loop.min, loop.extent))
            inside.append(loop.loop_var)
        self.vars = {tag: E.Var(tag, "int32") for tag in self.extents}
        axes = [(n.thread.var, tag_of(n, name)) for n in thread_loops(self.root) if n.thread]
        self.root = named_outside(self.root, {var: self.vars[tag] for var, tag in axes})
        self.cross = CrossThread(self)

    def statement(self) -> S.Stmt:
        """Return the kernel: a loop over each axis, with barriers inside."""
        body = insert_barriers(self.visit(self.root, ThreadContext()), self.scopes, self.name)
        for tag in reversed(TAGS):
            if tag in self.extents:
                extent = self.extents[tag]
                axis = E.IterVar(E.Range.of(extent), self.vars[tag], "thread", tag)
                zero = ops.const(0, "int32")
                body = S.For(self.vars[tag], zero, extent, S.ForKind.THREAD, body, axis)
        return body

    def _note_extent(self, loop: S.For, inside: list[E.Var], ranges: Analyzer) -> None:
        """Enter how many threads a loop takes: the most of its steps, where they differ inside."""
        tag = tag_of(loop, self.name)
        extent = loop.extent if loop.extent.dtype == "int32" else ops.cast(loop.extent, "int32")
        loads = any(isinstance(n, E.BufferLoad) for n in walk(extent))
        if loads or _mentions(extent, inside):
            most = ranges.bounds(loop.extent)[1]
            if loads or not isinstance(most, int):
                raise LoweringError(
                    f"{self.name}: the loop bound to {tag} has {loop.extent} steps, and how many "
                    "threads that takes is not known before the kernel runs. Split its axis by a "
                    "constant, or bind a loop of known steps with a condition in it"
                )
            extent = ops.const(max(most, 1))
        known = self.extents.get(tag)
        if known is None:
            self.extents[tag] = extent
            return
        here, there = ops.as_int(extent), ops.as_int(known)
        if here is not None and there is not None:
            self.extents[tag] = ops.const(max(here, there))
        elif not structural_equal(extent, known):
            raise LoweringError(
                f"{self.name}: the loops bound to {tag} have {known} and {extent} steps, and which "
                "is more is not known before the kernel runs. Split their axes by constants"
            )

    def token(self) -> int:
        """Return a number that no other path has."""
        self.tokens -= 1
        return self.tokens

    # -- statements --------------------------------------------------------------------------------

    def visit(self, node: S.Stmt, at: ThreadContext) -> S.Stmt:
        """Return what the threads of the kernel do of `node`."""
        is_ahead = isinstance(node, S.AttrStmt) and node.key == AHEAD
        if not (has_threads(node) or _has_shared(node) or is_ahead or self._is_apart(node)):
            if not is_together(node):
                meeting = partial(self._meeting, at)
                need_one_writer(node, at.conditions, meeting, self.name)
            return self.leaf(node, at)
        match node:
            case S.For() if node.kind == S.ForKind.THREAD:
                return self._thread_loop(node, at)
            case S.For():
                outside = lanes_outside(node)
                if outside is not None:
                    return self.visit(outside, at)
                self._need_uniform((node.min, node.extent), node.loop_var.name)
                body = self.visit(node.body, at)
                return node.replace(body=body, kind=S.ForKind.SERIAL)  # type: ignore[no-any-return]
            case S.SeqStmt():
                return S.seq(self.visit(inner, at) for inner in node.stmts)
            case S.IfThenElse():
                return self._branch(node, at)
            case S.Allocate():
                return self._allocate(node, at)
            case S.LetStmt() | S.AttrStmt():
                return node.replace(body=self.visit(node.body, at))  # type: ignore[no-any-return]
            case S.AssertStmt():
                return self.visit(node.body, at)
        raise LoweringError(
            f"{self.name}: a {type(node).__name__} stands around loops over threads; no kernel can "
            "have one there"
        )

    def _is_apart(self, node: S.Stmt) -> bool:
        """Return whether threads meet between statements in `node`, which is no kernel's loop."""
        if not isinstance(node, S.For | S.IfThenElse | S.SeqStmt | S.LetStmt | S.AttrStmt):
            return False
        shared = [data for data, scope in self.scopes.items() if scope == "shared"]
        return bool(shared) and meets_itself(node, shared)

    def _thread_loop(self, loop: S.For, at: ThreadContext) -> S.Stmt:
        tag = tag_of(loop, self.name)
        if tag in at.active and not self._fills_shared(loop, tag):
            return loop.replace(  # type: ignore[no-any-return]
                kind=S.ForKind.SERIAL, thread=None, annotations=(), body=self.visit(loop.body, at)
            )
        around = tag in at.active
        if around:
            self._check_independent(loop, tag)
        if any(key == S.REDUCES for key, _ in loop.annotations):
            # Threads along other axes may share its result: each would add to it once more.
            return self.cross.reduce(loop, self._once(loop.body, self._written(loop.body), at))
        if around:
            kept = tuple(c for c in at.conditions if not _mentions(c, [self.vars[tag]]))
            at = replace(at, conditions=kept)
        body, condition = self.enter(loop)
        at = replace(at, active=at.active | {tag}, path=(*at.path, id(loop)))
        if condition is None:
            return self.visit(body, at)
        return self._under(condition, body, None, at)

    def enter(self, loop: S.For) -> tuple[S.Stmt, E.PrimExpr | None]:
        """Return a loop's body for one thread, and under what condition the thread has a step."""
        tag = tag_of(loop, self.name)
        var = self.vars[tag]
        index: E.PrimExpr = var if loop.loop_var.dtype == "int32" else E.Cast("int64", var)
        if ops.as_int(loop.min) != 0:
            index = E.Add(loop.min, index)
        mapping: dict[Any, Any] = {loop.loop_var: index}
        if loop.thread is not None:
            mapping[loop.thread.var] = index
        body = substitute(loop.body, mapping)
        extent = loop.extent if loop.extent.dtype == "int32" else ops.cast(loop.extent, "int32")
        if structural_equal(extent, self.extents[tag]):
            return body, None
        return body, E.LT(var, extent)

    def _check_independent(self, loop: S.For, tag: str) -> None:
        if _mentions(loop.body, [self.vars[tag]]):
            raise LoweringError(
                f"{self.name}: a stage that all threads of a block fill together, bound to {tag} "
                f"(loop {loop.loop_var.name}), differs from thread to thread of the {tag} around "
                "it. Compute it outside of that loop, or keep it in each thread's own memory "
                '(set_scope("local")) without binding it'
            )

    def _fills_shared(self, loop: S.For, tag: str) -> bool:
        """Return whether the threads of `tag` see what `loop` stores."""
        inside = {id(n.buffer.data) for n in walk(loop.body) if isinstance(n, S.Allocate)}
        return any(
            self.is_seen_along(node.buffer.data, tag)
            for node in walk(loop.body)
            if isinstance(node, S.BufferStore) and id(node.buffer.data) not in inside
        )

    def is_seen_along(self, data: E.Var, tag: str) -> bool:
        """Return whether the threads along `tag` have memory `data` in common."""
        scope = self.scopes.get(id(data), "global")
        if tag in self.own.get(id(data), ()):
            return False
        return scope == "global" or (scope == "shared" and tag.startswith("threadIdx"))

    def _meeting(self, at: ThreadContext, data: E.Var) -> dict[str, tuple[E.Var, E.PrimExpr]]:
        """Return the axes around a statement whose threads have memory `data` in common."""
        return {
            tag: (self.vars[tag], extent)
            for tag, extent in self.extents.items()
            if tag in at.active and ops.as_int(extent) != 1 and self.is_seen_along(data, tag)
        }

    def _branch(self, node: S.IfThenElse, at: ThreadContext) -> S.Stmt:
        return self._under(node.condition, node.then_case, node.else_case, at)

    def _under(
        self, condition: E.PrimExpr, then: S.Stmt, otherwise: S.Stmt | None, at: ThreadContext
    ) -> S.Stmt:
        # Drivers bear barriers under conditions badly, also where all threads agree: PoCL 3.1 gives
        # wrong numbers. What is loaded may change before the condition is asked again.
        loads = any(isinstance(n, E.BufferLoad) for n in walk(condition))
        if loads and self._is_uniform(condition):
            other = None if otherwise is None else self.visit(otherwise, at)
            return S.IfThenElse(condition, self.visit(then, at), other)
        first = self.visit(then, replace(at, conditions=(*at.conditions, condition)))
        if otherwise is None:
            return first
        opposite = (*at.conditions, E.Not(condition))
        return S.seq((first, self.visit(otherwise, replace(at, conditions=opposite))))

    def _is_uniform(self, node: E.PrimExpr) -> bool:
        """Return whether all threads of a block have the same value of `node`."""
        threads = [var for tag, var in self.vars.items() if tag.startswith("threadIdx")]
        return not _mentions(node, threads) and not any(
            isinstance(n, E.BufferLoad) and id(n.buffer.data) in self.scopes for n in walk(node)
        )

    def _need_uniform(self, nodes: Iterable[E.PrimExpr], loop: str) -> None:
        if not all(self._is_uniform(node) for node in nodes):
            raise LoweringError(
                f"{self.name}: loop {loop} has another number of steps in each thread, and the "
                "threads of a block work together inside it. Compute what they share outside of it"
            )

    def _allocate(self, node: S.Allocate, at: ThreadContext) -> S.Stmt:
        scope = self._scope_of(node, at)
        self.scopes[id(node.buffer.data)] = scope
        body, declared = node.body, node.buffer.scope
        kept = declared if declared == DYNAMIC and self.is_given else scope
        if kept != declared:
            fresh = node.buffer.replace(scope=kept)
            body, node = substitute(body, {node.buffer: fresh}), node.replace(buffer=fresh)
        if scope == "shared" and not declared.startswith("shared"):
            # The steps of the loops around it have a memory each, as its place says.
            tags = [t for t in self.extents if t.startswith("threadIdx") and t in at.active]
            if declared == "warp":  # whose threads are those along x
                tags = [tag for tag in tags if tag != "threadIdx.x"]
            self.own[id(node.buffer.data)] = tags
            for tag in tags:
                wide = wider(node.buffer, self.extents[tag])
                body = with_step(body, node.buffer, wide, self.vars[tag])
                node = node.replace(buffer=wide)
        notes = swizzle_of(node) if scope == "shared" else ()
        return node.replace(body=self.visit(body, at), annotations=notes)  # type: ignore[no-any-return]

    def _scope_of(self, node: S.Allocate, at: ThreadContext) -> str:
        """Return "shared" for memory of a block, "local" for memory of a thread.

        Memory without a scope is its block's where it outlives a thread's step, as its place says;
        so is "local" memory that loops of threads fill in which it does not stand.
        """
        scope = node.buffer.scope
        if is_shared(scope):
            return "shared"
        if scope not in ("global", "local", ""):
            raise LoweringError(
                f"{self.name}: memory {node.buffer.name!r} is to be in scope {scope!r}, which this "
                'target has not. It has "shared" and "local"'
            )
        threads = {tag for tag in self.extents if tag.startswith("threadIdx")}
        if threads <= at.active:
            return "local"
        return "shared" if self._differs_along(node, threads - at.active) else "local"

    def _differs_along(self, node: S.Allocate, tags: set[str]) -> bool:
        """Return whether threads along `tags` would lack a value, had each of them this memory.

        They would not where reductions fill it whose results each of them is told.
        """
        wide = {tag for tag in tags if ops.as_int(self.extents[tag]) != 1}
        loops = [
            (loop, [n for n in walk(loop.body) if getattr(n, "buffer", None) is node.buffer])
            for loop in _outer_loops(node.body, tags, self.name)
        ]
        filled = [loop for loop, uses in loops if any(isinstance(n, S.BufferStore) for n in uses)]
        if not filled:
            return any(uses for _, uses in loops)
        return any(not wide <= self.cross.hands_to_all(loop) for loop in filled)

    # -- leaves ------------------------------------------------------------------------------------

    def leaf(self, node: S.Stmt, at: ThreadContext) -> S.Stmt:
        """Return a statement without thread loops, done by the threads that are to do it."""
        if S.is_nop(node):
            return node
        if is_together(node):  # all threads of a warp come to it, or it hangs; sums are their own
            node = kept_inside(node, at.conditions)
            at = replace(at, conditions=())
        written = self._written(node)
        if isinstance(node, S.SeqStmt) and any(
            self.scopes.get(id(data)) == "shared" for data in written
        ):  # who fills memory of the block, and who reads it, are apart
            return S.seq(self.leaf(inner, at) for inner in node.stmts)
        at = self._once(node, written, at)
        idle = [
            tag
            for tag, extent in self.extents.items()
            if tag not in at.active
            and ops.as_int(extent) != 1
            and any(self.is_seen_along(data, tag) for data in written)
        ]
        own = any(self.scopes.get(id(data)) == "local" for data in written)
        if idle and own and isinstance(node, S.SeqStmt):
            return S.seq(self.leaf(inner, at) for inner in node.stmts)
        first = [E.EQ(self.vars[tag], ops.const(0)) for tag in idle]
        guards = (*first, *at.conditions)
        body = S.IfThenElse(ops.all_of(list(guards)), node) if guards else node
        return S.AttrStmt(LEAF, E.IntImm("int32", 0), at.path, body)

    def _once(self, node: S.Stmt, written: list[E.Var], at: ThreadContext) -> ThreadContext:
        """Return where `node` stands if its threads are not to repeat what all along an axis share.

        It fills memory that they share with the same values, whatever conditions they stand under;
        a barrier is between it and what reads them, which its path says.
        """
        repeats = {
            tag
            for tag in at.active
            if tag.startswith("threadIdx")
            and ops.as_int(self.extents[tag]) != 1
            and not _mentions(node, [self.vars[tag]])
            and all(self.scopes.get(id(data)) == "shared" for data in written)
            and all(self.is_seen_along(data, tag) for data in written)
        }
        if not repeats or not written:
            return at
        alike = [self.vars[tag] for tag in repeats]
        return ThreadContext(
            at.active - repeats,
            tuple(c for c in at.conditions if not _mentions(c, alike)),
            (*at.path, self.token()),
        )

    @staticmethod
    def _written(node: S.Stmt) -> list[E.Var]:
        inside = {id(n.buffer.data) for n in walk(node) if isinstance(n, S.Allocate)}
        stores = (n.buffer.data for n in walk(node) if isinstance(n, S.BufferStore))
        return [data for data in stores if id(data) not in inside]


def _outer_loops(node: Node, tags: set[str], name: str) -> list[S.For]:
    """Return the thread loops over `tags` in `node` that are in no other such loop."""
    if isinstance(node, S.For) and is_thread_loop(node) and tag_of(node, name) in tags:
        return [node]
    if not isinstance(node, S.Stmt):
        return []
    return [loop for child in children(node) for loop in _outer_loops(child, tags, name)]


def _has_shared(node: S.Stmt) -> bool:
    """Return whether memory of a block is in `node`."""
    return any(isinstance(n, S.Allocate) and is_shared(n.buffer.scope) for n in walk(node))


def _mentions(node: Any, variables: list[E.Var]) -> bool:
    wanted = {id(var) for var in variables}
    return any(id(n) in wanted for n in walk(node))
