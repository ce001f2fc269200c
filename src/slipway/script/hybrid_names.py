"""``te.hybrid``: functions of loops, and schedules written as such (a facade)."""

from slipway.script.hybrid import decorate, script
from slipway.script.hybrid_module import HybridModule, build

__all__ = ["HybridModule", "build", "decorate", "script"]
