"""Generic walks over any IR object: children, pre- and post-order visits, rewriting.

Three tools by the shape of the job.  A query: ``for n in walk(root)``.  A local rewrite:
`rewrite_bottom_up(root, rule)` or `substitute`.  A pass that carries context: a class that takes
the nodes it knows apart and hands the others to `map_children`, as those of ``slipway/passes`` do;
a subclass of `Mutator` (returns new IR) or `Visitor` does so with one ``visit_<ClassName>`` method
per node class.

`walk`, `post_order` and `substitute` use an explicit stack, so that deep graphs do not meet
Python's recursion limit; `Mutator` recurses, which loops and expressions are shallow enough for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from slipway.ir.node import Node, keep_below, keep_depth

T = TypeVar("T")

_ENTERED = object()  # on a stack, behind an item whose children stand above it


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly inside `node`, in field order.

    A node keeps the answer: nodes are immutable, and every pass walks over most of them again.
    """
    below: tuple[Node, ...] | None = getattr(node, "_below", None)
    if below is None:
        below = node.find_below()
        keep_below(node, below)
    return below


def walk(root: Node) -> Iterator[Node]:
    """Yield `root` and every node under it once, parents before children."""
    seen: set[int] = set()
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if node.INNER:
            stack += reversed(children(node))


def post_order(root: Node) -> list[Node]:
    """Return every node under `root` once, children before parents, `root` last."""
    return post_order_by([root], children)


def post_order_by(
    roots: Iterable[T], below: Callable[[T], Sequence[T]], known: Collection[int] = ()
) -> list[T]:
    """Return all that `roots` reach through `below`, each object once and after what is below it.

    Objects whose ids are in `known` are left out, and so is what only they reach.
    """
    order: list[T] = []
    seen: set[int] = set()  # beside `known`, which may be large, and is not copied for a small walk
    stack: list[Any] = list(roots)[::-1]
    while stack:
        item = stack.pop()
        if item is _ENTERED:
            order.append(stack.pop())
            continue
        if id(item) in seen or id(item) in known:
            continue
        seen.add(id(item))
        inner = below(item)
        if inner:
            stack += (item, _ENTERED)
            stack += reversed(inner)
        else:
            order.append(item)
    return order


def nesting(root: Node, below: Callable[[Any], Sequence[Any]] = children) -> int:
    """Return how many nodes lie inside each other at most, where `below` finds what is inside.

    Nodes keep the answer for their children, as `children` does.
    """
    if below is children:
        return _kept_depth(root)
    depth: dict[int, int] = {}
    for node in post_order_by([root], below):
        depth[id(node)] = 1 + max((depth[id(c)] for c in below(node)), default=0)
    return depth[id(root)]


def _kept_depth(root: Node) -> int:
    """Every pass asks this of what it is given, most of which is new: so no generic walk here."""
    stack: list[Node] = [root]
    while stack:
        node = stack[-1]
        waits, depth = len(stack), 0
        if not hasattr(node, "_depth"):
            for child in children(node):
                below = getattr(child, "_depth", None)
                if below is None and child.INNER:
                    stack.append(child)
                elif (below or 1) > depth:
                    depth = below or 1
            if len(stack) > waits:
                continue  # again, once these are known
            keep_depth(node, 1 + depth)
        stack.pop()
    return root._depth


def map_children(node: Node, function: Callable[[Node], Node]) -> Any:
    """Return `node` with every direct child replaced; the same object when none changed."""
    return node.mapped(function)


def rewrite_bottom_up(root: Node, rule: Callable[[Node], Node | None]) -> Any:
    """Apply `rule` to every node after its children; None from the rule keeps the node.

    Shared subtrees are rewritten once.  Works on graphs of any depth.
    """
    done: dict[int, Node] = {}
    for node in post_order(root):
        fresh = map_children(node, lambda child: done[id(child)])
        result = rule(fresh)
        done[id(node)] = fresh if result is None else result
    return done[id(root)]


def substitute(root: Node, mapping: Mapping[Any, Any]) -> Any:
    """Replace nodes (usually Vars and Buffers) by others, everywhere under `root`."""
    if not mapping:
        return root
    done: dict[int, Any] = {id(old): new for old, new in mapping.items()}
    for node in post_order_by([root], children, known=dict(done)):
        done[id(node)] = map_children(node, lambda child: done[id(child)])
    return done[id(root)]


class Visitor:
    """Calls ``visit_<ClassName>`` for each node; the default visits the children."""

    def visit(self, node: Node) -> Any:
        """Visit one node."""
        method = getattr(self, "visit_" + type(node).__name__, None)
        return method(node) if method is not None else self.generic_visit(node)

    def generic_visit(self, node: Node) -> Any:
        """Visit all children."""
        for child in children(node):
            self.visit(child)


class Mutator:
    """Rebuilds IR: ``visit_<ClassName>`` returns the replacement; the default maps the children."""

    def visit(self, node: Node) -> Any:
        """Return the replacement of one node."""
        method = getattr(self, "visit_" + type(node).__name__, None)
        return method(node) if method is not None else self.generic_visit(node)

    def generic_visit(self, node: Node) -> Any:
        """Return `node` with its children replaced."""
        return map_children(node, self.visit)
