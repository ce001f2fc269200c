"""``tvm.driver.build_module``: the functions that compile loops (a facade)."""

from slipway.compiler.driver import build, lower, schedule_to_module

__all__ = ["build", "lower", "schedule_to_module"]
