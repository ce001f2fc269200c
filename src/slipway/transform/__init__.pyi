"""What type checkers see of slipway.transform; written by tools/stubs.py."""

from slipway.transform.context import PassContext as PassContext
from slipway.transform.graph.classic import function_pass as function_pass
from slipway.transform.graph.classic import module_pass as module_pass
from slipway.transform.manager import FunctionPass as FunctionPass
from slipway.transform.manager import ModulePass as ModulePass
from slipway.transform.manager import Pass as Pass
from slipway.transform.manager import PassInfo as PassInfo
from slipway.transform.manager import PrimFuncPass as PrimFuncPass
from slipway.transform.manager import Sequential as Sequential
from slipway.transform.manager import print_ir as PrintIR

__all__ = [
    "FunctionPass",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrimFuncPass",
    "PrintIR",
    "Sequential",
    "function_pass",
    "module_pass",
]
