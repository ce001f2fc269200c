"""``tvm.driver``: `tvmc`, and the functions that compile (a facade)."""

from slipway.compiler.driver import build, lower
from slipway.driver import tvmc

__all__ = ["build", "lower", "tvmc"]
