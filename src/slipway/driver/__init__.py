"""``tvm.driver``: `tvmc`, and the functions that compile (a facade)."""

from slipway.compiler.driver import build, lower
from slipway.driver import build_module, tvmc

__all__ = ["build", "build_module", "lower", "tvmc"]
