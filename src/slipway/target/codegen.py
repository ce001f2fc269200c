"""``tvm.target.codegen``: what is known of LLVM."""

from __future__ import annotations

from slipway.errors import ArgumentValueError, ToolchainError

_INTRINSICS: list[str] = []  # those that were asked for, in order


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


def llvm_lookup_intrinsic_id(name: str) -> int:
    """Return the number of an intrinsic of LLVM: of this process's own count, which begins at 1.

    0 where `name` is not one, "llvm.<name>".  `call_llvm_intrin` takes the name itself too.
    """
    if not name.startswith("llvm."):
        return 0
    if name not in _INTRINSICS:
        _INTRINSICS.append(name)
    return _INTRINSICS.index(name) + 1


def llvm_get_intrinsic_name(intrin_id: int) -> str:
    """Return the name of an intrinsic that `llvm_lookup_intrinsic_id` gave a number."""
    number = int(getattr(intrin_id, "value", intrin_id))
    if not 1 <= number <= len(_INTRINSICS):
        raise ArgumentValueError(
            f"no intrinsic of LLVM has the number {number} here: llvm_lookup_intrinsic_id(name) "
            "gives numbers"
        )
    return _INTRINSICS[number - 1]
