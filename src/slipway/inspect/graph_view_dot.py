"""Graphs of a module in the language of Graphviz."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from slipway.errors import ToolchainError
from slipway.inspect.graph_view import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode

Attributes = Mapping[str, str]


class DotVizParser(DefaultVizParser):
    """The default parser under the name that belongs to this plotter."""


def _quoted(text: str) -> str:
    r"""Return a string of the language: \l ends a line and puts it to the left."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\l") + '"'


def _list_of(attributes: Attributes) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in attributes.items())


class DotGraph(VizGraph):
    """One function; `attributes` of the graph, of every node and of every edge are Graphviz's."""

    def __init__(
        self,
        name: str,
        graph_attr: Attributes | None = None,
        node_attr: Attributes | None = None,
        edge_attr: Attributes | None = None,
        get_node_attr: Callable[[VizNode], Attributes] | None = None,
    ) -> None:
        self.name = name
        self._get = get_node_attr or (lambda _: {})
        self._lines = [f"digraph {_quoted(name)} {{"]
        for kind, attributes in (("graph", graph_attr), ("node", node_attr), ("edge", edge_attr)):
            if attributes:
                self._lines.append(f"  {kind} [{_list_of(attributes)}]")

    def node(self, viz_node: VizNode) -> None:
        """Take a node: a record of its kind above its details."""
        label = viz_node.type_name + (f"\n{viz_node.detail}\n" if viz_node.detail else "")
        attributes = {"shape": "box", "label": label, **self._get(viz_node)}
        self._lines.append(f"  {_quoted(viz_node.identity)} [{_list_of(attributes)}]")

    def edge(self, viz_edge: VizEdge) -> None:
        """Take an edge."""
        self._lines.append(f"  {_quoted(viz_edge.start)} -> {_quoted(viz_edge.end)}")

    @property
    def source(self) -> str:
        """The text for Graphviz."""
        return "\n".join([*self._lines, "}"]) + "\n"


class DotPlotter(Plotter):
    """Writes a file of Graphviz for each function, and draws it where `dot` is installed.

    `render_format` is what `dot` shall make, "pdf" as in classic TVM; None is the text alone.
    """

    def __init__(
        self,
        render_format: str | None = "pdf",
        graph_attr: Attributes | None = None,
        node_attr: Attributes | None = None,
        edge_attr: Attributes | None = None,
        get_node_attr: Callable[[VizNode], Attributes] | None = None,
    ) -> None:
        self._format = render_format
        self._attributes = graph_attr, node_attr, edge_attr
        self._get = get_node_attr
        self._name_to_graph: dict[str, DotGraph] = {}

    def create_graph(self, name: str) -> VizGraph:
        """Return an empty graph for the function `name`."""
        graph = DotGraph(name, *self._attributes, get_node_attr=self._get)
        self._name_to_graph[name] = graph
        return graph

    def render(self, filename: str | None = None) -> None:
        """Write "<filename>_<function>", by default "graph_<function>", and what `dot` makes."""
        program = shutil.which("dot")
        if self._format is not None and program is None:
            raise ToolchainError(
                "there is no program `dot` to draw the graphs with: install Graphviz, or take "
                "DotPlotter(render_format=None), which writes the text."
            )
        for name, graph in self._name_to_graph.items():
            path = Path(f"{filename or 'graph'}_{name}")
            path.write_text(graph.source, encoding="utf-8")
            if self._format is not None and program is not None:
                command = [program, f"-T{self._format}", "-O", str(path)]
                done = subprocess.run(
                    command, capture_output=True, text=True, errors="replace", check=False
                )
                if done.returncode:
                    raise ToolchainError(f"dot cannot draw {path}: {done.stderr.strip()}")
