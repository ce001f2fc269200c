"""Graphs of a module as trees of text, each result above what it is made from."""

from __future__ import annotations

from pathlib import Path

from slipway.inspect.graph_view import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode


class TermVizParser(DefaultVizParser):
    """The default parser under the name that classic scripts delegate to."""


class TermGraph(VizGraph):
    """One function as text."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: dict[str, VizNode] = {}
        self._inputs: dict[str, list[str]] = {}
        self._used: set[str] = set()

    def node(self, viz_node: VizNode) -> None:
        """Take a node."""
        self._nodes[viz_node.identity] = viz_node

    def edge(self, viz_edge: VizEdge) -> None:
        """Take an edge."""
        self._inputs.setdefault(viz_edge.end, []).append(viz_edge.start)
        self._used.add(viz_edge.start)

    def render(self) -> str:
        """Return the text: what nothing takes first, a node that was shown only by its number."""
        lines = [f"@{self._name}([Function])" if not self._nodes else f"@{self._name}"]
        shown: set[str] = set()
        stack = [(identity, "", True) for identity in self._nodes if identity not in self._used]
        stack.reverse()
        while stack:
            identity, indent, is_last = stack.pop()
            node = self._nodes.get(identity)
            if node is None:
                continue
            again = identity in shown
            shown.add(identity)
            text = ", ".join(node.detail.splitlines())
            text = "shown above" if again else text
            lines.append(
                f"{indent}`--[{identity}] {node.type_name}" + (f"({text})" if text else "")
            )
            below = indent + ("   " if is_last else "|  ")
            inputs = [] if again else self._inputs.get(identity, [])
            last = len(inputs) - 1
            stack += [(one, below, i == last) for i, one in reversed(list(enumerate(inputs)))]
        return "\n".join(lines) + "\n"


class TermPlotter(Plotter):
    """Prints the graphs, or writes them to a file."""

    def __init__(self) -> None:
        self._name_to_graph: dict[str, TermGraph] = {}

    def create_graph(self, name: str) -> VizGraph:
        """Return an empty graph for the function `name`."""
        self._name_to_graph[name] = TermGraph(name)
        return self._name_to_graph[name]

    def render(self, filename: str | None = None) -> None:
        """Print all graphs, or write them to "<filename>.txt"."""
        text = "\n".join(graph.render() for graph in self._name_to_graph.values())
        if filename is None:
            print(text)
        else:
            Path(f"{filename}.txt").write_text(text, encoding="utf-8")
