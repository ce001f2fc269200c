"""TVMScript: functions of loops and blocks written as Python (a facade)."""

from slipway.script import ir, parse, tir
from slipway.script.module import from_source, ir_module

__all__ = ["from_source", "ir", "ir_module", "parse", "tir"]
