"""Running a model kernel by kernel; see `slipway.runtime.debug_executor`."""
