"""A random graph: operators of relay by name, on leaves that hold their arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.fuzz_graphs.values import Unfit, Value, leaf

RULES: dict[str, Callable[..., Any]] = {}
LEAVES = ("input", "const")
PART = "part"  # one result of an operator that has several
IN_LISTS = ("concatenate", "stack")  # operators that take a list
OF_BODIES = ("scan", "branch", "while_loop")  # operators with functions of their own


@dataclass(frozen=True)
class Node:
    """A call of operator `op` on the results of nodes `args`, or a leaf with its array."""

    op: str
    args: tuple[int, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    array: np.ndarray | None = None


@dataclass(frozen=True)
class Graph:
    """Nodes in order, and which of them are results."""

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]

    @property
    def inputs(self) -> list[int]:
        """The leaves that are fed when the graph runs."""
        return [n for n, node in enumerate(self.nodes) if node.op == "input"]

    def pruned(self) -> Graph:
        """The same without nodes that no output needs."""
        needed, todo = set(), list(self.outputs)
        while todo:
            number = todo.pop()
            if number not in needed:
                needed.add(number)
                todo += self.nodes[number].args
        kept = sorted(needed)
        position = {old: new for new, old in enumerate(kept)}
        nodes = tuple(
            replace(self.nodes[n], args=tuple(position[a] for a in self.nodes[n].args))
            for n in kept
        )
        return Graph(nodes, tuple(position[o] for o in self.outputs))


def rule(*names: str):
    """Decorator: how the oracle computes the named operators, ``f(attrs, *values)``."""

    def enter(function):
        for name in names:
            assert name not in RULES, name
            RULES[name] = function
        return function

    return enter


def evaluate_node(node: Node, values: list[Any]) -> Any:
    """Return a node's value, or list of values, from those of the nodes before it."""
    if node.op in LEAVES:
        return leaf(node.array)
    given = [values[a] for a in node.args]
    if node.op == PART:
        return given[0][node.attrs["index"]]
    with np.errstate(all="ignore"):
        return RULES[node.op](node.attrs, *given)


def evaluate(graph: Graph, given: Sequence[Value] = ()) -> list[Any]:
    """Return the value of every node, the first ones being `given`.

    Raises Unfit where an operator cannot take its arguments.
    """
    values: list[Any] = list(given)
    for node in graph.nodes[len(values) :]:
        try:
            values.append(evaluate_node(node, values))
        except (ValueError, IndexError, TypeError, ZeroDivisionError) as error:
            raise Unfit(f"{node.op}: {error}") from error
    return values


def results(graph: Graph) -> list[Value]:
    """Return the values of the outputs."""
    values = evaluate(graph)
    return [values[o] for o in graph.outputs]


def merged(graphs: list[Graph]) -> Graph:
    """Several graphs as one, without edges between them."""
    nodes: list[Node] = []
    outputs: list[int] = []
    for graph in graphs:
        start = len(nodes)
        nodes += [replace(n, args=tuple(a + start for a in n.args)) for n in graph.nodes]
        outputs += [o + start for o in graph.outputs]
    return Graph(tuple(nodes), tuple(outputs))


def relay_function(graph: Graph, shapes: dict[int, tuple[Any, ...]] | None = None) -> Any:
    """Return the graph as a relay function of its inputs ``x<node>``.

    `shapes` gives inputs others than their arrays have, with open dimensions.
    """
    from slipway import relay
    from slipway.relay import op_registry

    op_registry.load_ops()
    params, outputs = _exprs(relay, graph, shapes or {})
    return relay.Function(params, relay.Tuple(outputs) if len(outputs) > 1 else outputs[0])


def _exprs(relay: Any, graph: Graph, shapes: dict[int, tuple[Any, ...]]) -> tuple[list, list]:
    """Return (variables of the inputs, expressions of the outputs)."""
    exprs: list[Any] = []
    params = []
    for number, node in enumerate(graph.nodes):
        given = [exprs[a] for a in node.args]
        if node.op == "input":
            shape = shapes.get(number, node.array.shape)
            expr = relay.var(f"x{number}", shape=shape, dtype=node.array.dtype.name)
            params.append(expr)
        elif node.op == "const":
            expr = relay.op_registry.const(node.array)
        elif node.op == PART:
            expr = given[0][node.attrs["index"]]
        else:
            expr = call(relay, node, given)
        exprs.append(expr)
    return params, [exprs[o] for o in graph.outputs]


def _body(relay: Any, graph: Graph, alone: bool = False) -> Any:
    """Return a body as a function that gives a tuple, or the one result `alone`."""
    params, outputs = _exprs(relay, graph, {})
    return relay.Function(params, outputs[0] if alone else relay.Tuple(outputs))


def call(relay: Any, node: Node, given: list[Any]) -> Any:
    """Return the call of an operator; "qnn.op.<name>" are compositions."""
    from slipway.relay import op_registry

    if node.op.startswith("qnn.op."):
        return getattr(relay.qnn.op, node.op.removeprefix("qnn.op."))(*given, **node.attrs)
    function = op_registry.make(node.op)
    if node.op in IN_LISTS:
        return function(given, **node.attrs)
    if node.op == "gather":
        return function(given[0], node.attrs["axis"], given[1])
    if node.op in OF_BODIES:
        return _control(relay, node, given)
    return function(*given, **node.attrs)


def bodies_of(node: Node) -> dict[str, Graph]:
    """Return the graphs inside a node by their attribute, in the order they are given in."""
    return {name: v for name, v in node.attrs.items() if isinstance(v, Graph)}


def list_ends(node: Node) -> list[int]:
    """Return where the lists of a loop's arguments begin and end: states, sequences, others."""
    lengths = [node.attrs[name] for name in ("states", "sequences") if name in node.attrs]
    return [0, *itertools.accumulate(lengths), len(node.args)]


def _control(relay: Any, node: Node, given: list[Any]) -> Any:
    """Return a loop or a branch, whose attributes hold graphs."""
    from slipway.relay import op_registry

    function = op_registry.make(node.op)
    bodies = [_body(relay, b, name == "condition") for name, b in bodies_of(node).items()]
    if node.op == "branch":
        return function(given[0], *bodies, given[1:])
    lists = [given[a:b] for a, b in itertools.pairwise(list_ends(node))]
    more = {name: node.attrs[name] for name in ("reverse", "steps") if name in node.attrs}
    return function(*bodies, *lists, **more)
