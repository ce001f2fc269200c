"""What type checkers see of slipway.codegen; written by tools/stubs.py."""

from slipway.target.codegen import llvm_version_major as llvm_version_major

__all__ = [
    "llvm_version_major",
]
