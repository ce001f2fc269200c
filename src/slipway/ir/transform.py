"""Passes of modules under an older path; see `slipway.transform`."""

from slipway.transform import ModulePass, Pass, PassContext, PassInfo, PrintIR, Sequential
from slipway.transform.graph.classic import module_pass

__all__ = ["ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR", "Sequential", "module_pass"]
