"""C to LLVM IR; see `slipway.toolchain.clang`."""

from slipway.toolchain.clang import create_llvm, find_clang

__all__ = ["create_llvm", "find_clang"]
