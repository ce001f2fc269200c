"""Modules of functions under their classic path; see `slipway.ir.function`."""

from slipway.ir.function import IRModule

__all__ = ["IRModule"]
