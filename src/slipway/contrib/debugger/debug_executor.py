"""Running a model kernel by kernel; see `slipway.runtime.debug_executor`."""

from slipway.runtime.debug_executor import GraphModuleDebug, create

__all__ = ["GraphModuleDebug", "create"]
