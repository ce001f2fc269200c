"""Trees of text; see `slipway.inspect.graph_view_text`."""

from slipway.inspect.graph_view_text import TermGraph, TermPlotter, TermVizParser

__all__ = ["TermGraph", "TermPlotter", "TermVizParser"]
