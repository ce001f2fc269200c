"""Drawn graphs: what is a node, and what each plotter makes of it."""

import numpy as np
import pytest

import slipway
from slipway import nd, relay
from slipway.contrib import relay_viz
from slipway.contrib.relay_viz.dot import DotPlotter
from slipway.contrib.relay_viz.interface import DefaultVizParser, VizEdge, VizNode
from slipway.contrib.relay_viz.terminal import TermGraph, TermPlotter
from slipway.errors import ArgumentTypeError, ToolchainError


def module():
    x, w = relay.var("x", shape=(1, 4)), relay.var("w", shape=(3, 4))
    scale = relay.var("s", shape=(1, 3))
    double = relay.GlobalVar("double")
    y = relay.nn.dense(x, w)
    main = relay.Function([x, w], relay.Tuple([relay.Call(double, [y]), y]))
    return slipway.IRModule(
        {double: relay.Function([scale], scale * relay.const(2.0)), relay.GlobalVar("main"): main}
    )


def test_tree_of_text(capsys):
    weights = {"w": nd.array(np.zeros((3, 4), np.float32))}
    relay_viz.RelayVisualizer(module(), weights).render()
    text = capsys.readouterr().out
    first, second = text.split("\n\n")[:2]
    assert first.startswith("@main\n`--[")
    assert "Param(name_hint: w, shape: (3, 4), dtype: float32)" in first
    assert "Var(Input)(name_hint: x, type: Tensor[(1, 4), float32])" in first
    assert "Call double" in first
    assert first.count("Call nn.dense") == 2  # it is used twice, and printed once
    assert first.count("(shown above)") == 3  # and so are its two inputs
    assert second.startswith("@double")
    assert "Const(2.0)" in second


def test_a_parser_and_a_graph_of_ones_own(tmp_path):
    class Parser(DefaultVizParser):
        def get_node_edges(self, node, relay_param, node_to_id):
            if isinstance(node, relay.Var):
                return VizNode(node_to_id[node], "Own", f"of {node.name_hint}"), []
            return super().get_node_edges(node, relay_param, node_to_id)

    class Graph(TermGraph):
        def node(self, viz_node):
            super().node(viz_node)
            if viz_node.type_name == "Own":
                super().node(VizNode(f"{viz_node.identity}b", "Twin", ""))
                super().edge(VizEdge(f"{viz_node.identity}b", viz_node.identity))

    class OwnPlotter(TermPlotter):
        def create_graph(self, name):
            self._name_to_graph[name] = Graph(name)
            return self._name_to_graph[name]

    relay_viz.RelayVisualizer(module(), {}, OwnPlotter(), Parser()).render(str(tmp_path / "g"))
    text = (tmp_path / "g.txt").read_text()
    assert "Own(of x)" in text
    assert text.count("Twin") >= 3


def test_text_of_graphviz(tmp_path, monkeypatch):
    plotter = DotPlotter(
        render_format=None,
        graph_attr={"rankdir": "LR"},
        get_node_attr=lambda node: {"color": "red"} if node.type_name == "Const" else {},
    )
    relay_viz.RelayVisualizer(module(), {}, plotter).render(str(tmp_path / "g"))
    text = (tmp_path / "g_double").read_text()
    assert text.startswith('digraph "double" {\n  graph [rankdir="LR"]\n')
    assert 'label="Const\\l2.0\\l", color="red"]' in text
    edges = [line for line in text.splitlines() if "->" in line]
    assert len(edges) == 4  # two into the product, two into the function
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="install Graphviz"):
        relay_viz.RelayVisualizer(module(), {}, DotPlotter()).render(str(tmp_path / "g"))


def test_only_modules_are_drawn():
    with pytest.raises(ArgumentTypeError, match="takes an IRModule, not Var"):
        relay_viz.RelayVisualizer(relay.var("x", shape=(1,)))
