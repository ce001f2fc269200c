"""Passes of modules under an older path; see `slipway.transform`."""

from slipway.compiler.classic_passes import module_pass
from slipway.transform import ModulePass, Pass, PassContext, PassInfo, PrintIR, Sequential

__all__ = ["ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR", "Sequential", "module_pass"]
