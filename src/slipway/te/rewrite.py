"""Rewriting of te expressions: like `ir.visit`, but a tensor that is read is a leaf."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slipway.ir.visit import children, map_children, post_order_by
from slipway.te.tensor import Tensor

if TYPE_CHECKING:
    from slipway.ir.node import Node


def rewrite(root: Node, rule: Callable[[Any], Any]) -> Any:
    """Apply `rule` (None keeps the node) to every node of an expression, children first."""
    done: dict[int, Any] = {}
    for node in post_order_by([root], inside):
        made = node
        if not isinstance(node, Tensor):
            fresh = map_children(node, lambda child: done[id(child)])
            changed = rule(fresh)
            made = fresh if changed is None else changed
        done[id(node)] = made
    return done[id(root)]


def replace_nodes(root: Node, mapping: Mapping[Any, Any]) -> Any:
    """Replace Vars, axes or other nodes of an expression by identity."""
    done: dict[int, Any] = {id(old): new for old, new in mapping.items()}
    for node in post_order_by([root], inside, known=dict(done)):
        whole = isinstance(node, Tensor)
        done[id(node)] = node if whole else map_children(node, lambda child: done[id(child)])
    return done[id(root)]


def inside(node: Node) -> Sequence[Any]:
    """Return the nodes directly inside `node`; a tensor is a leaf."""
    return () if isinstance(node, Tensor) else children(node)
