"""``tvm.target.codegen``: what is known of LLVM."""

from __future__ import annotations

from slipway.errors import ToolchainError


def llvm_version_major(allow_none: bool = False) -> int | None:
    """Return the major version of the LLVM that compiles.

    Where there is none, None if that is allowed, else ToolchainError.
    """
    try:
        import llvmlite.binding as llvm
    except ImportError:
        if allow_none:
            return None
        raise ToolchainError("LLVM is missing: pip install llvmlite") from None
    return int(llvm.llvm_version_info[0])
