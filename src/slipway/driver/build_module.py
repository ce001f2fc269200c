"""``tvm.driver.build_module``: the functions that compile loops (a facade)."""

from slipway.compiler.driver import build, lower, schedule_to_module
from slipway.compiler.driver import schedule_to_module as form_irmodule  # before TVM 0.8

__all__ = ["build", "form_irmodule", "lower", "schedule_to_module"]
