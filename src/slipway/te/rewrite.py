"""Rewriting of te expressions: like `ir.visit`, but a tensor that is read is a leaf."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from slipway.ir.visit import map_children
from slipway.te.tensor import Tensor


def rewrite(root: Any, rule: Callable[[Any], Any]) -> Any:
    """Apply `rule` (None keeps the node) to every node of an expression, children first."""
    memo: dict[int, Any] = {}

    def visit(node: Any) -> Any:
        if isinstance(node, Tensor):
            return node
        known = memo.get(id(node))
        if known is not None:
            return known[1]
        result = map_children(node, visit)
        changed = rule(result)
        if changed is not None:
            result = changed
        memo[id(node)] = (node, result)
        return result

    return visit(root)


def replace_nodes(root: Any, mapping: Mapping[Any, Any]) -> Any:
    """Replace Vars, axes or other nodes of an expression by identity."""
    table = {id(old): new for old, new in mapping.items()}
    memo: dict[int, Any] = {}

    def visit(node: Any) -> Any:
        key = id(node)
        if key in table:
            return table[key]
        if isinstance(node, Tensor):
            return node
        known = memo.get(key)
        if known is not None:
            return known[1]
        result = map_children(node, visit)
        memo[key] = (node, result)
        return result

    return visit(root)
