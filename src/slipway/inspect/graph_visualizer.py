"""Drawing a module: every function becomes a graph of the plotter's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slipway.errors import ArgumentTypeError
from slipway.inspect.graph_view import DefaultVizParser, Plotter, VizParser
from slipway.inspect.graph_view_text import TermPlotter
from slipway.ir.function import IRModule
from slipway.relay.analysis.graphs import post_order_visit
from slipway.relay.expr import Function


@dataclass
class RelayVisualizer:
    """Draws each function of a module, ``main`` first.

    `relay_param` says which variables are parameters; `plotter` defaults to a tree of text on the
    terminal, `parser` to `DefaultVizParser`.
    """

    relay_mod: IRModule
    relay_param: Mapping[str, Any] | None = None
    plotter: Plotter | None = None
    parser: VizParser | None = None
    _plotter: Plotter = field(init=False)

    def __post_init__(self) -> None:
        """Let the plotter take every node and edge."""
        if not isinstance(self.relay_mod, IRModule):
            raise ArgumentTypeError(
                f"RelayVisualizer takes an IRModule, not {type(self.relay_mod).__name__}; make one "
                "with IRModule.from_expr."
            )
        self._plotter = self.plotter or TermPlotter()
        parser = self.parser or DefaultVizParser()
        count = 0
        names = [var.name_hint for var in self.relay_mod.get_global_vars()]
        for name in sorted(names, key=lambda name: name != "main"):
            node_to_id: dict[Any, str] = {}

            def number(node: Any, found: dict[Any, str] = node_to_id, first: int = count) -> None:
                found.setdefault(node, str(first + len(found)))

            post_order_visit(_function(self.relay_mod, name), number)
            count += len(node_to_id)
            graph = self._plotter.create_graph(name)
            for expr in node_to_id:
                node, edges = parser.get_node_edges(expr, self.relay_param or {}, node_to_id)
                if node is not None:
                    graph.node(node)
                for edge in edges:
                    graph.edge(edge)

    def render(self, filename: str | None = None) -> None:
        """Show the graphs; `filename` is where, without an ending."""
        self._plotter.render(filename)


def _function(module: IRModule, name: str) -> Function:
    found = module[name]
    if not isinstance(found, Function):
        raise ArgumentTypeError(
            f"the function {name!r} is a {type(found).__name__}; functions of relay are drawn."
        )
    return found
