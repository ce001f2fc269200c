"""Source that a schedule brings along: ``s[T].pragma(axis, "import_c" | "import_llvm", text)``.

The functions in it are what call_extern names.  C is pasted into generated C, and compiled to an
object of its own beside LLVM's; LLVM IR (text, or the path of an .ll or .bc file) is compiled for
the target beside the kernels.  ``extern "C"``, which classic scripts write for a C++ compiler, is
taken off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from slipway.errors import CodegenError
from slipway.ir.function import PrimFunc
from slipway.target import Target

ATTRIBUTE = "import_source"  # of a PrimFunc: pairs (kind of pragma, text)
_EXTERN_C = re.compile(r'\bextern\s+"C"\s*')


def c_snippets(functions: Iterable[PrimFunc], target: Target) -> list[str]:
    """Return the C that `functions` bring along, each text once, for pasting into C.

    Raises CodegenError for LLVM IR, which C cannot hold.
    """
    found = snippets(functions)
    if any(kind == "import_llvm" for kind, _ in found):
        raise CodegenError(
            f"pragma import_llvm brings LLVM IR, which C for {target} cannot hold: import the C "
            "source with pragma import_c, or compile for target llvm"
        )
    return [without_linkage(text) for _, text in found]


def without_linkage(text: str) -> str:
    """Return C++ declared extern "C" as C."""
    return _EXTERN_C.sub("", text)


def snippets(functions: Iterable[PrimFunc]) -> list[tuple[str, str]]:
    """Return the pairs (kind of pragma, text) of all functions, each once."""
    pairs = (pair for func in functions for pair in func.attr(ATTRIBUTE, ()))
    return list(dict.fromkeys(pairs))
