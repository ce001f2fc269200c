"""Virtual threads: steps of a bound loop that one thread interleaves.

before: ``vthread for v in range(2): { for k: { A.shared = ...; C.local += A.shared[v, ...] } }``
after:  ``C.local[2]; for k: { A.shared = ...; for v in range(2): C.local[v] += A.shared[v, ...] }``

The loop moves inwards to the statements that depend on it; what each step has of its own gets one
more dimension.  So what the block shares is filled once for all of them, and a tile whose columns
lie far apart is still read by neighbouring threads from neighbouring places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slipway.backends.gpu.lowering.thread_context import is_together
from slipway.errors import LoweringError
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.buffer import Buffer
from slipway.ir.instructions.warp_products import sums_of
from slipway.ir.visit import children, map_children, substitute, walk

if TYPE_CHECKING:
    from slipway.ir.node import Node


def inject_vthreads(node: Node) -> Any:
    """Return statements without loops over virtual threads."""
    if not isinstance(node, S.Stmt):
        return node
    fresh = map_children(node, inject_vthreads)
    if isinstance(fresh, S.For) and _is_virtual(fresh):
        body = fresh.body
        if fresh.thread is not None and fresh.thread.var is not fresh.loop_var:
            body = substitute(body, {fresh.thread.var: fresh.loop_var})
        return _Inward(fresh, body).push(body)
    return fresh


def _is_virtual(node: S.For) -> bool:
    tag = node.thread.thread_tag if node.thread is not None else ""
    return node.kind == S.ForKind.THREAD and (tag.startswith("vthread") or tag == "cthread")


class _Inward:
    """Moves one loop over virtual threads to where it is needed.

    A condition that differs between them moves with it, and does not hold for what all threads of a
    block fill together, which is no virtual thread's own.
    """

    def __init__(self, loop: S.For, body: S.Stmt) -> None:
        self.loop = loop
        self.own: set[int] = set()  # memory that differs between them, by data Var
        size = -1
        while len(self.own) > size:
            size = len(self.own)
            self._note_memory(body, False, frozenset())

    def _note_memory(self, node: S.Stmt, depends: bool, active: frozenset[str]) -> None:
        """Enter what `node` stores that differs; `depends`: whether it runs does.

        `active` are the axes of the threads around it: a second loop over one of them is of what
        they fill together.
        """
        match node:
            case S.BufferStore():
                if depends or self._differs(node.value, *node.indices):
                    self.own.add(id(node.buffer.data))
            case S.Evaluate(E.Call(op="warp_product" | "warp_zero") as product):
                if depends or self._differs(*product.args[1:]):
                    self.own.update(id(n.buffer.data) for n in sums_of(product))
            case S.For():
                tag = node.thread.thread_tag if node.thread is not None else ""
                kept = depends and tag not in active
                inside = active | {tag} if tag else active
                differs = kept or self._differs(node.min, node.extent)
                self._note_memory(node.body, differs, inside)
            case S.IfThenElse():
                depends = depends or self._differs(node.condition)
                self._note_memory(node.then_case, depends, active)
                if node.else_case is not None:
                    self._note_memory(node.else_case, depends, active)
            case S.LetStmt():
                self._note_memory(node.body, depends or self._differs(node.value), active)
            case _:
                for inner in children(node):
                    if isinstance(inner, S.Stmt):
                        self._note_memory(inner, depends, active)

    def push(self, node: S.Stmt, conditions: tuple[E.PrimExpr, ...] = ()) -> S.Stmt:
        """Return `node` with the loop around what differs between virtual threads."""
        together = _has_threads(node)
        if not self._depends(node) and (together or not conditions):
            return node
        match node:
            case S.SeqStmt():
                return S.seq(self.push(inner, conditions) for inner in node.stmts)
            case S.For() if not self._differs(node.min, node.extent):
                return node.replace(body=self.push(node.body, conditions))  # type: ignore[no-any-return]
            case S.IfThenElse() if not self._differs(node.condition):
                other = None if node.else_case is None else self.push(node.else_case, conditions)
                then = self.push(node.then_case, conditions)
                return node.replace(then_case=then, else_case=other)  # type: ignore[no-any-return]
            case S.IfThenElse() if together and node.else_case is None:
                return self.push(node.then_case, (*conditions, node.condition))
            case S.LetStmt() if not self._differs(node.value):
                return node.replace(body=self.push(node.body, conditions))  # type: ignore[no-any-return]
            case S.AttrStmt():
                return node.replace(body=self.push(node.body, conditions))  # type: ignore[no-any-return]
            case S.Allocate():
                return self._allocate(node, conditions)
        return self._around(node, conditions)

    def _allocate(self, node: S.Allocate, conditions: tuple[E.PrimExpr, ...]) -> S.Stmt:
        buffer = node.buffer
        if id(buffer.data) not in self.own:
            return node.replace(body=self.push(node.body, conditions))  # type: ignore[no-any-return]
        wide = wider(buffer, self.loop.extent)
        body = with_step(node.body, buffer, wide, self.loop.loop_var)
        return node.replace(buffer=wide, body=self.push(body, conditions))  # type: ignore[no-any-return]

    def _around(self, node: S.Stmt, conditions: tuple[E.PrimExpr, ...]) -> S.Stmt:
        if _has_threads(node):
            raise LoweringError(
                f"the vthread {self.loop.loop_var.name} decides which threads take part in a loop "
                "inside it: bind it outside of what the threads of a block fill together"
            )
        if conditions and not is_together(node):  # else all threads of a warp come to it
            node = S.IfThenElse(ops.all_of(list(conditions)), node)
        # Each place has a variable of its own: every variable is defined once.
        var = E.Var(self.loop.loop_var.name, self.loop.loop_var.dtype)
        body = substitute(node, {self.loop.loop_var: var})
        return self.loop.replace(  # type: ignore[no-any-return]
            loop_var=var, kind=S.ForKind.UNROLLED, thread=None, body=body, annotations=()
        )

    def _depends(self, node: S.Stmt) -> bool:
        return any(
            n is self.loop.loop_var
            or (isinstance(n, (S.BufferStore, E.BufferLoad)) and self._is_own(n.buffer))
            for n in walk(node)
        )

    def _is_own(self, buffer: Buffer) -> bool:
        """Return whether each virtual thread has its own memory there, or its own view of it."""
        begin = buffer.elem_offset
        differs = begin is not None and any(n is self.loop.loop_var for n in walk(begin))
        return differs or id(buffer.data) in self.own

    def _differs(self, *nodes: E.PrimExpr) -> bool:
        return any(self._depends(S.Evaluate(node)) for node in nodes)


def _has_threads(node: S.Stmt) -> bool:
    return any(isinstance(n, S.For) and n.kind == S.ForKind.THREAD for n in walk(node))


def wider(buffer: Buffer, extent: E.PrimExpr) -> Buffer:
    """Return `buffer` as often as `extent` says, in one more dimension."""
    strides = buffer.strides
    if strides:
        strides = (ops.mul(strides[0], buffer.shape[0]), *strides)
    return buffer.replace(shape=(extent, *buffer.shape), strides=strides)  # type: ignore[no-any-return]


def with_step(node: Node, old: Any, new: Any, step: E.PrimExpr) -> Any:
    """Return `node` with step `step` of buffer `new` in place of `old`."""
    if isinstance(node, E.BufferLoad) and node.buffer is old:
        indices = tuple(with_step(i, old, new, step) for i in node.indices)
        return E.BufferLoad(new, (_as_index(step, indices), *indices))
    if isinstance(node, S.BufferStore) and node.buffer is old:
        indices = tuple(with_step(i, old, new, step) for i in node.indices)
        value = with_step(node.value, old, new, step)
        return S.BufferStore(new, value, (_as_index(step, indices), *indices))
    if isinstance(node, (E.PrimExpr, S.Stmt)):
        made = map_children(node, lambda child: with_step(child, old, new, step))
        if isinstance(made, (E.BufferLoad, S.BufferStore)) and made.buffer.data is old.data:
            return made.replace(buffer=_view_at(made.buffer, old, step))
        return made
    return node


def _view_at(view: Buffer, whole: Buffer, step: E.PrimExpr) -> Buffer:
    """Return a view of `whole`, as an intrinsic has it, in step `step` of the wider one."""
    size: E.PrimExpr = ops.const(1)
    for extent in whole.shape:
        size = ops.mul(size, extent)
    if whole.strides:
        size = ops.mul(whole.strides[0], whole.shape[0])
    begin = ops.mul(size, _as_index(step, (size,)))
    known = view.elem_offset
    return view.replace(elem_offset=begin if known is None else ops.add(known, begin))  # type: ignore[no-any-return]


def _as_index(step: E.PrimExpr, indices: tuple[E.PrimExpr, ...]) -> E.PrimExpr:
    dtype = indices[0].dtype if indices else step.dtype
    return step if dtype == step.dtype else E.Cast(dtype, step)
