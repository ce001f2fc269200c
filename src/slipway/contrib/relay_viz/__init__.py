"""A module's graphs, drawn; see `slipway.inspect.graph_view`."""

from slipway.inspect.graph_view import RelayVisualizer
from slipway.inspect.graph_view_text import TermPlotter

__all__ = ["RelayVisualizer", "TermPlotter"]
