"""The older name of `slipway.contrib.graph_executor`."""

from slipway.runtime.graph.graph_executor import GraphModule, create

__all__ = ["GraphModule", "create"]
