"""What a parser, a graph and a plotter of one's own are made from."""

from slipway.inspect.graph_view import (
    DefaultVizParser,
    Plotter,
    VizEdge,
    VizGraph,
    VizNode,
    VizParser,
)

__all__ = ["DefaultVizParser", "Plotter", "VizEdge", "VizGraph", "VizNode", "VizParser"]
