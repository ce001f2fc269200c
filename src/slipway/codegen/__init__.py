"""PrimFuncs to machine code and C."""

from slipway.lazy import by_module, offer

_HOMES = by_module({"slipway.target.codegen": "llvm_version_major"})
__getattr__, __dir__ = offer(__name__, _HOMES, submodules=True)
