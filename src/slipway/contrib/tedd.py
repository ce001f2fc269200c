"""Graphs of a schedule; see `slipway.inspect.schedule_graphs`."""

from slipway.inspect.schedule_graphs import (
    viz_dataflow_graph,
    viz_itervar_relationship_graph,
    viz_schedule_tree,
)

__all__ = ["viz_dataflow_graph", "viz_itervar_relationship_graph", "viz_schedule_tree"]
