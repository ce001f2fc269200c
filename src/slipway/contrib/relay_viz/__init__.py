"""A module's graphs, drawn; see `slipway.inspect.graph_visualizer`."""

from slipway.inspect.graph_view_text import TermPlotter
from slipway.inspect.graph_visualizer import RelayVisualizer

__all__ = ["RelayVisualizer", "TermPlotter"]
