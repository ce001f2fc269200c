"""Visiting and rewriting statements with functions (classic ``tir.stmt_functor``).

::

    post_order_visit(func.body, lambda node: found.append(node))
    ir_transform(func.body, None, lambda loop: unrolled(loop), ["tir.For"])
    substitute(func.body, {i: o * 8 + j})
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slipway.errors import LoweringError
from slipway.ir import ops
from slipway.ir.depth import room_for
from slipway.ir.expr import IterVar
from slipway.ir.function import PrimFunc
from slipway.ir.node import NODE_CLASSES, Node
from slipway.ir.visit import children, map_children, post_order
from slipway.ir.visit import substitute as replace_nodes

Visit = Callable[[Any], Any]


def _within(root: Any) -> Node:
    return root.body if isinstance(root, PrimFunc) else root


def post_order_visit(stmt: Node, fvisit: Visit) -> None:
    """Call `fvisit` on every node under a statement once, children before parents."""
    for node in post_order(_within(stmt)):
        fvisit(node)


def pre_order_visit(stmt: Node, fvisit: Visit) -> None:
    """Call `fvisit` on every node, parents first; where it returns False, not on what is inside."""
    seen: set[int] = set()
    stack = [_within(stmt)]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if fvisit(node) is not False:
            stack += children(node)[::-1]


def ir_transform(
    stmt: Node,
    preorder: Visit | None,
    postorder: Visit | None,
    only_enable: Iterable[str] | None = None,
) -> Any:
    """Return `stmt` with nodes replaced; the functions see those whose class is in `only_enable`.

    ``preorder(node)`` returns the replacement of a node, whose inside is then left alone, or None
    to go on inside it.  ``postorder(node)`` sees a node whose inside is done, and returns what
    replaces it, or None.  Names of classes are as "tir.For"; without names every node is seen.
    """
    wanted = None if only_enable is None else {_class_name(name) for name in only_enable}

    def visit(node: Any) -> Any:
        chosen = wanted is None or type(node).__name__ in wanted
        if chosen and preorder is not None:
            made = preorder(node)
            if made is not None:
                return made
        done = map_children(node, visit)
        if chosen and postorder is not None:
            made = postorder(done)
            if made is not None:
                return made
        return done

    with room_for(_within(stmt), "what ir_transform is given"):
        return visit(stmt)


def _class_name(name: str) -> str:
    """Return the name of a node's class without "tir.".  Raises LoweringError for none."""
    plain = name.rpartition(".")[2]
    if plain not in NODE_CLASSES:
        raise LoweringError(f"ir_transform: {name!r} is no kind of node; write for example tir.For")
    return plain


def substitute(node: Any, vmap: Mapping[Any, Any]) -> Any:
    """Return a statement or expression with variables replaced by expressions."""
    pairs = {
        key.var if isinstance(key, IterVar) else key: (
            value if isinstance(value, Node) else ops.as_expr(value)
        )
        for key, value in vmap.items()
    }
    return replace_nodes(node, pairs)


__all__ = ["ir_transform", "post_order_visit", "pre_order_visit", "substitute"]
