"""Files of Graphviz; see `slipway.inspect.graph_view_dot`."""

from slipway.inspect.graph_view_dot import DotGraph, DotPlotter, DotVizParser

__all__ = ["DotGraph", "DotPlotter", "DotVizParser"]
