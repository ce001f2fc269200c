"""The older name of `slipway.contrib.debugger.debug_executor`."""

from slipway.runtime.graph.debug_executor import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]
