"""A module's graphs as nodes and edges, for something to draw: classic ``contrib.relay_viz``.

A parser says what is shown of an expression, a plotter keeps a graph for each function of the
module and renders them; both may be a user's own.  `slipway.inspect.graph_view_text` and
`graph_view_dot` hold two plotters, `slipway.inspect.graph_visualizer` lets them draw.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.ir.function import GlobalVar
from slipway.relay.expr import (
    Call,
    Constant,
    Function,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from slipway.relay.visit import children


@dataclass(frozen=True)
class VizNode:
    """What is drawn for one expression."""

    identity: str
    type_name: str
    detail: str


@dataclass(frozen=True)
class VizEdge:
    """A value on its way: identities of who makes it and who takes it."""

    start: str
    end: str


class VizParser(ABC):
    """Says what is drawn of an expression."""

    @abstractmethod
    def get_node_edges(
        self, node: Any, relay_param: Mapping[str, Any], node_to_id: Mapping[Any, str]
    ) -> tuple[VizNode | None, list[VizEdge]]:
        """Return a node for the expression, or None, and the edges that lead to it."""


class VizGraph(ABC):
    """Takes the nodes and edges of one function."""

    @abstractmethod
    def node(self, viz_node: VizNode) -> None:
        """Take a node."""

    @abstractmethod
    def edge(self, viz_edge: VizEdge) -> None:
        """Take an edge; its ends may still come."""


class Plotter(ABC):
    """Makes the graphs, and shows them."""

    @abstractmethod
    def create_graph(self, name: str) -> VizGraph:
        """Return an empty graph for the function `name`."""

    @abstractmethod
    def render(self, filename: str | None = None) -> None:
        """Show all graphs; with `filename` in a file, whose ending the plotter adds."""


class DefaultVizParser(VizParser):
    """Names, shapes, types and attributes of expressions; operators stand in their calls."""

    def get_node_edges(
        self, node: Any, relay_param: Mapping[str, Any], node_to_id: Mapping[Any, str]
    ) -> tuple[VizNode | None, list[VizEdge]]:
        """Return a node for the expression, or None, and the edges that lead to it."""
        if isinstance(node, Op):
            return None, []
        name, detail = _described(node, relay_param)
        own = node_to_id[node]
        inputs = [*children(node)]
        if isinstance(node, Call) and node.op in node_to_id and node.op not in inputs:
            inputs.insert(0, node.op) if not isinstance(node.op, Op) else None
        edges = [VizEdge(node_to_id[x], own) for x in inputs if x in node_to_id]
        return VizNode(own, name, detail), edges


def _described(node: Any, relay_param: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of an expression and lines of what is known of it."""
    match node:
        case Var():
            lines = [f"name_hint: {node.name_hint}"]
            given = relay_param.get(node.name_hint)
            if given is not None:
                lines += [f"shape: {tuple(given.shape)}", f"dtype: {given.dtype}"]
                return "Param", "\n".join(lines)
            if node.type_annotation is not None:
                lines.append(f"type: {node.type_annotation}")
            return "Var(Input)", "\n".join(lines)
        case Call():
            called = node.op
            if isinstance(called, Op):
                kind = called.name
            elif isinstance(called, GlobalVar):
                kind = called.name_hint
            else:
                kind = "Function" if isinstance(called, Function) else "Value"
            return f"Call {kind}", _attributes(node.attrs)
        case Function():
            return "Function", "\n".join(f"{name}: {value}" for name, value in node.attrs)
        case Constant():
            array = node.array
            return "Const", str(
                array
            ) if not array.shape else f"shape: {array.shape}, {array.dtype}"
        case Tuple():
            return "Tuple", f"fields: {len(node.fields)}"
        case TupleGetItem():
            return "TupleGetItem", f"index: {node.index}"
        case GlobalVar():
            return "GlobalVar", f"name_hint: {node.name_hint}"
        case Let():
            return "Let", f"var: {node.var.name_hint}"
        case If():
            return "If", ""
        case _:
            return type(node).__name__, ""


def _attributes(attrs: Any) -> str:
    keys = attrs.keys() if hasattr(attrs, "keys") else ()
    return "\n".join(f"{key}: {attrs[key]}" for key in keys)
