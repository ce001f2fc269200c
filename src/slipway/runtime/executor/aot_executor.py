"""Running a program that was compiled ahead of time, as a graph's executor runs one."""

from slipway.runtime.graph.graph_executor import GraphModule

AotModule = GraphModule

__all__ = ["AotModule"]
