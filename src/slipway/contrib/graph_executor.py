"""Running a compiled model; see `slipway.runtime.graph.graph_executor`."""

from slipway.runtime.graph.graph_executor import GraphModule, create

__all__ = ["GraphModule", "create"]
