"""Values that are many operations deep, in parts: compilers of C have a limit of brackets.

A value that is stored is computed part by part into variables before the store, as a person would
write it.  What may not be computed (the sides of a choice that guards a load) and what reads a
variable of its own stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from slipway.ir import expr as E
from slipway.ir import stmt as S
from slipway.ir.depth import room_for
from slipway.ir.function import PrimFunc
from slipway.ir.node import Node
from slipway.ir.visit import children, map_children, nesting, post_order_by


def in_parts(func: PrimFunc, most: int, what: str) -> PrimFunc:
    """Return a function in which no stored value is more than `most` nodes deep, where it can be.

    Raises LoweringError, which names `what`, for a function too deep for any walk.
    """
    if nesting(func.body) <= most:
        return func
    with room_for(func.body, what):
        made: PrimFunc = func.replace(body=_parted(func.body, most))
    return made


def _parted(stmt: Node, most: int) -> Node:
    if isinstance(stmt, S.BufferStore) and nesting(stmt.value) > most:
        parts, value = _cut(stmt.value, most)
        made: S.Stmt = stmt.replace(value=value)
        for var, part in reversed(parts):
            made = S.LetStmt(var, part, made)
        return made
    if not isinstance(stmt, S.Stmt):
        return stmt
    changed: Node = map_children(stmt, lambda child: _parted(child, most))
    return changed


def _cut(value: E.PrimExpr, most: int) -> tuple[list[tuple[E.Var, E.PrimExpr]], E.PrimExpr]:
    """Return variables with their values, in order, and what is left of `value` over them."""
    parts: list[tuple[E.Var, E.PrimExpr]] = []
    done: dict[int, Node] = {}
    root: Node = value
    depth: dict[int, int] = {}
    for node in post_order_by([root], _always_computed):
        made = map_children(node, lambda child: done.get(id(child), child))
        deep = 1 + max((depth.get(id(c)) or nesting(c) for c in children(node)), default=0)
        if deep >= most and isinstance(made, E.PrimExpr):
            var = E.Var("part", made.dtype)
            parts.append((var, made))
            made, deep = var, 1
        done[id(node)], depth[id(node)] = made, deep
    return parts, done[id(value)]  # type: ignore[return-value]


def _always_computed(node: Node) -> Sequence[Node]:
    """Return what is inside a node, but for what only some of its values compute or can see."""
    if isinstance(node, E.Let):
        return (node.value,)
    if isinstance(node, E.Call) and node.op == "if_then_else":
        return node.args[:1]
    return children(node)
