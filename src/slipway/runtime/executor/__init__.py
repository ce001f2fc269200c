"""Executors under their classic path; see `slipway.runtime.graph.graph_executor`."""

from slipway.runtime.executor.aot_executor import AotModule

__all__ = ["AotModule"]
