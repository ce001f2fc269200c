"""Running a model kernel by kernel; see `slipway.runtime.graph.debug_executor`."""

from slipway.runtime.graph.debug_executor import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]
