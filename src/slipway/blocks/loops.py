"""Rewriting loops around blocks: split, fuse, reorder, and how their steps run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from slipway.arith.analyzer import Analyzer
from slipway.blocks import tree
from slipway.blocks.rfactor import reduction_step
from slipway.errors import ScheduleError
from slipway.ir import ops
from slipway.ir import stmt as S
from slipway.ir.expr import BufferLoad, IterVar, PrimExpr, Range, Var
from slipway.ir.structural import structural_equal
from slipway.ir.visit import substitute, walk

if TYPE_CHECKING:
    from slipway.ir.node import Node


def split(root: Node, loop: S.For, factors: Sequence[Any]) -> tuple[Any, list[Var]]:
    """Return (statements, variables) with a loop divided into nested ones of the given extents.

    One factor may be None: the steps that are left.  Where the factors do not divide the extent,
    blocks inside run only where the loop would have.
    """
    name = loop.loop_var.name
    if not factors or sum(f is None for f in factors) > 1:
        raise ScheduleError(f"split of loop {name!r} takes factors, at most one of them None")
    known: PrimExpr = ops.const(1, loop.loop_var.dtype)
    for factor in factors:
        if factor is None:
            continue
        size = ops.as_int(ops.as_extent(factor))
        if size is not None and size < 1:
            raise ScheduleError(f"split of loop {name!r}: the factor {size} must be at least 1")
        known = ops.mul(known, ops.as_extent(factor))
    an = Analyzer()
    outer = an.simplify(ops.floordiv(ops.sub(ops.add(loop.extent, known), 1), known))
    extents = [
        outer if f is None else ops.cast(ops.as_extent(f), name_dtype(loop)) for f in factors
    ]
    total = an.simplify(ops.mul(known, outer) if None in factors else known)
    if not _equal(an, total, loop.extent) and None not in factors:
        high = ops.as_int(an.simplify(ops.sub(total, loop.extent)))
        if high is not None and high < 0:
            raise ScheduleError(
                f"split of loop {name!r} into {[str(e) for e in extents]}: it has {loop.extent} "
                f"steps, and these make {total}"
            )
    variables = [Var(f"{name}_{position}", loop.loop_var.dtype) for position in range(len(extents))]
    value: PrimExpr = ops.const(0, loop.loop_var.dtype)
    for var, extent in zip(variables, extents, strict=True):
        value = ops.add(ops.mul(value, extent), var)
    body = substitute(loop.body, {loop.loop_var: ops.add(value, loop.min)})
    if not _equal(an, total, loop.extent):
        body = _guarded(body, ops.less(value, loop.extent), name)
    made = tree.nest(list(zip(variables, extents, strict=True)), body)
    if loop.kind != S.ForKind.SERIAL or loop.annotations:
        raise ScheduleError(
            f"cannot split loop {name!r}: it is {loop.kind}. Split it before it is marked"
        )
    return tree.exchanged(root, loop, made), variables


def name_dtype(loop: S.For) -> str:
    """Return the dtype of a loop's variable."""
    return loop.loop_var.dtype


def _equal(an: Analyzer, a: PrimExpr, b: PrimExpr) -> bool:
    return ops.as_int(an.simplify(ops.sub(a, b))) == 0


def _guarded(body: S.Stmt, condition: PrimExpr, name: str) -> S.Stmt:
    def change(block: S.Block) -> S.Block:
        made = ops.logical_and(block.predicate, condition)
        return block.replace(predicate=made)  # type: ignore[no-any-return]

    if not tree.blocks_of(body):
        raise ScheduleError(f"loop {name!r} has no block inside")
    return tree.map_blocks(body, change)  # type: ignore[no-any-return]


def fuse(root: Node, loops: Sequence[S.For]) -> tuple[Any, Var]:
    """Return (statements, variable) with loops that lie directly in each other made one."""
    for outer, inner in pairwise(loops):
        if outer.body is not inner:
            raise ScheduleError(
                f"cannot fuse loops {outer.loop_var.name!r} and {inner.loop_var.name!r}: the "
                "second must be all that is inside the first. Use reorder first"
            )
        if tree.uses(inner.extent, outer.loop_var):
            raise ScheduleError(
                f"cannot fuse loop {inner.loop_var.name!r}: its extent depends on the one around it"
            )
    fused = Var("_".join([*(x.loop_var.name for x in loops), "fused"]), loops[0].loop_var.dtype)
    extent: PrimExpr = ops.const(1, fused.dtype)
    values: dict[Any, Any] = {}
    for loop in reversed(loops):
        step = ops.floordiv(fused, extent) if ops.as_int(extent) != 1 else fused
        if loop is not loops[0]:
            step = ops.floormod(step, loop.extent)
        values[loop.loop_var] = ops.add(step, loop.min)
        extent = ops.mul(extent, loop.extent)
    body = substitute(loops[-1].body, values)
    made = tree.nest([(fused, Analyzer().simplify(extent))], body)
    return tree.exchanged(root, loops[0], made), fused


def reorder(root: Node, loops: Sequence[S.For]) -> Any:
    """Return the statements with loops of one nest in the given order, in the places they have."""
    if len(set(map(id, loops))) != len(loops):
        raise ScheduleError("reorder names a loop twice")
    deepest = max(loops, key=lambda loop: len(tree.path_to(root, loop)))
    path = [*tree.loops_above(root, deepest), deepest]
    for loop in loops:
        if not any(loop is one for one in path):
            raise ScheduleError(
                f"cannot reorder loop {loop.loop_var.name!r}: it is not around "
                f"{deepest.loop_var.name!r}, so the loops are not of one nest"
            )
    first = min(next(i for i, one in enumerate(path) if one is loop) for loop in loops)
    chain = path[first:]
    for outer, inner in pairwise(chain):
        if outer.body is not inner:
            raise ScheduleError(
                f"cannot reorder: loop {outer.loop_var.name!r} holds more than "
                f"{inner.loop_var.name!r}"
            )
    for block in tree.blocks_of(chain[-1].body):
        for axis, value in zip(block.axes, block.bindings, strict=True):
            if axis.kind == "ordered" and any(tree.uses(value, x.loop_var) for x in loops):
                raise ScheduleError(
                    f"cannot reorder: the axis {axis.name!r} of block {block.name!r} runs in order"
                )
    wanted = iter(loops)
    order = [next(wanted) if any(x is one for one in loops) else x for x in chain]
    body = chain[-1].body
    for position in range(len(order) - 1, -1, -1):
        loop = order[position]
        for inner in order[position + 1 :]:
            if tree.uses(loop.extent, inner.loop_var) or tree.uses(loop.min, inner.loop_var):
                raise ScheduleError(
                    f"cannot reorder: the bounds of loop {loop.loop_var.name!r} depend on "
                    f"{inner.loop_var.name!r}"
                )
        body = loop.replace(body=body)
    return tree.exchanged(root, chain[0], body)


def mark(root: Node, loop: S.For, kind: str, thread: str = "") -> Any:
    """Return the statements with a loop's steps run as `kind` says.

    Raises ScheduleError where a block inside reduces along the loop, and where threads or lanes
    would read or overwrite what another step of a block wrote.
    """
    for block in tree.blocks_of(loop.body):
        for axis, value in zip(block.axes, block.bindings, strict=True):
            if axis.kind == "data" or not tree.uses(value, loop.loop_var):
                continue
            if not _may(kind, thread, axis, block):
                raise ScheduleError(
                    f"cannot run loop {loop.loop_var.name!r} {kind}: axis {axis.name!r} of block "
                    f"{block.name!r}, which depends on it, is {_KINDS.get(axis.kind, axis.kind)}"
                )
    if kind in (S.ForKind.PARALLEL, S.ForKind.VECTORIZED) and ops.as_int(loop.extent) != 1:
        _check_apart(loop, kind)
    bound = None
    if kind == S.ForKind.THREAD:
        bound = IterVar(Range.of(loop.extent), loop.loop_var, "thread", thread)
    return tree.exchanged(root, loop, loop.replace(kind=kind, thread=bound))


def _check_apart(loop: S.For, kind: str) -> None:
    """Raise ScheduleError where a block's step reads or overwrites what another step wrote.

    What lives inside the loop is each step's own, and so is what has the same index in a dimension
    that follows the loop.
    """
    own = {id(n.buffer) for n in walk(loop.body) if isinstance(n, S.Allocate)}
    moving = _following(loop)
    for block in tree.blocks_of(loop.body):
        nested = {id(n) for b in tree.blocks_of(block.body) for n in walk(b)}
        inside = [n for n in walk(block.body) if id(n) not in nested]
        for store in (n for n in inside if isinstance(n, S.BufferStore)):
            if id(store.buffer) in own:
                continue
            position = f"{store.buffer.name}[{', '.join(map(str, store.indices))}]"
            head = f"cannot run loop {loop.loop_var.name!r} {kind}: block {block.name!r} "
            if kind == S.ForKind.PARALLEL and not _moves(store.indices, moving):
                raise ScheduleError(f"{head}writes {position}, which is one place for all steps")
            for load in inside:
                if (
                    isinstance(load, BufferLoad)
                    and load.buffer is store.buffer
                    and _moves((*load.indices, *store.indices), moving)
                    and not any(
                        structural_equal(there, here) and _moves((here,), moving)
                        for there, here in zip(load.indices, store.indices, strict=True)
                    )
                ):
                    raise ScheduleError(
                        f"{head}reads {load} and writes {position}, so that steps wait for others"
                    )


def _following(loop: S.For) -> set[Var]:
    """Return the variables inside of a loop whose values depend on its own."""
    moving = {loop.loop_var}
    for node in walk(loop.body):
        if isinstance(node, S.Block):
            pairs = zip(node.axes, node.bindings, strict=True)
            moving |= {axis.var for axis, value in pairs if _moves((value,), moving)}
        elif isinstance(node, S.For) and _moves((node.min, node.extent), moving):
            moving.add(node.loop_var)
        elif isinstance(node, S.LetStmt) and _moves((node.value,), moving):
            moving.add(node.var)
    return moving


def _moves(values: Sequence[PrimExpr], moving: set[Var]) -> bool:
    return any(n in moving for value in values for n in walk(value))


def _may(kind: str, thread: str, axis: IterVar, block: S.Block) -> bool:
    """Return whether steps that depend on each other may run so: threads combine their parts."""
    if kind == S.ForKind.THREAD and thread.startswith("threadIdx") and axis.kind == "reduce":
        reduction_step(block, f"reduce over threads of {thread} in")
        return True
    return kind == S.ForKind.UNROLLED


_KINDS = {"reduce": "a reduction", "ordered": "a scan", "opaque": "opaque"}
