"""PrimFuncs to machine code and C."""

from slipway.target.codegen import llvm_version_major

__all__ = ["llvm_version_major"]
