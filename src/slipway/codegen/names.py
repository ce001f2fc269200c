"""Which names functions and symbols may have: text of the user's that goes into generated code."""

from __future__ import annotations

import re
from collections.abc import Iterable

from slipway.errors import CodegenError
from slipway.target import Target
from slipway.target.capability import capability_of

LONGEST_NAME = 1000
_IN_C = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_IN_LLVM = re.compile(r"[A-Za-z_.$-][\w.$-]*", re.ASCII)


def check_names(names: Iterable[str], target: Target) -> None:
    """Raise CodegenError for a name that no function of a library for `target` can have."""
    in_c = capability_of(target).in_c
    for name in names:
        known = (_IN_C if in_c else _IN_LLVM).fullmatch(name)
        # The loops of `name` are the symbol `name`.compute, and LLVM keeps llvm.* for intrinsics.
        kept = f"{name}.".startswith("llvm.")
        if known is None or len(name) > LONGEST_NAME or kept:
            allowed = (
                "letters, digits and '_'" if in_c else "letters, digits, '_', '.', '-' and '$'"
            )
            raise CodegenError(
                f"{name[:80]!r} cannot be the name of a function in a library: use at most "
                f"{LONGEST_NAME} {allowed}, the first one no digit, and no 'llvm' in front of a dot"
            )


def is_symbol(name: object, in_c: bool = False) -> bool:
    """Return whether `name` can be that of a function which generated code calls."""
    return isinstance(name, str) and (_IN_C if in_c else _IN_LLVM).fullmatch(name) is not None
