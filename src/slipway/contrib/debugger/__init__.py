"""Running a model kernel by kernel; see `slipway.runtime.graph.debug_executor`."""
