"""Modules of functions under their classic path; see `slipway.ir.function`."""

from slipway.ir.function import IRModule
from slipway.ir.function import IRModule as Module

__all__ = ["IRModule", "Module"]
