"""Source that a schedule brings along: ``s[T].pragma(axis, "import_c" | "import_llvm", text)``.

The functions in it are what call_extern names.  C is pasted into generated C, and compiled to an
object of its own beside LLVM's; LLVM IR (text, or the path of an .ll or .bc file) is compiled for
the target beside the kernels.  ``extern "C"``, which classic scripts write for a C++ compiler, is
taken off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from slipway.errors import CodegenError
from slipway.ir.function import PrimFunc
from slipway.target import Target
from slipway.toolchain.elf_override import last_definitions

ATTRIBUTE = "import_source"  # of a PrimFunc: pairs (kind of pragma, text)
_EXTERN_C = re.compile(r'\bextern\s+"C"\s*')


def c_snippets(functions: Iterable[PrimFunc], target: Target) -> list[str]:
    """Return the C that `functions` bring along, each text once, for pasting into C.

    Raises CodegenError for LLVM IR, which C cannot hold.
    """
    found = _snippets(functions)
    if any(kind == "import_llvm" for kind, _ in found):
        raise CodegenError(
            f"pragma import_llvm brings LLVM IR, which C for {target} cannot hold: import the C "
            "source with pragma import_c, or compile for target llvm"
        )
    return [_EXTERN_C.sub("", text) for _, text in found]


def snippet_objects(functions: Iterable[PrimFunc], target: Target) -> list[bytes]:
    """Return objects of everything that `functions` bring along.

    Of functions that several of them define, the one that came last counts.
    """
    objects = []
    for kind, text in _snippets(functions):
        if kind == "import_c":
            from slipway.codegen.c.backend import snippet_to_object

            objects.append(snippet_to_object(_EXTERN_C.sub("", text), target))
        else:
            objects.append(_llvm_object(text, target))
    return last_definitions(objects)


def _snippets(functions: Iterable[PrimFunc]) -> list[tuple[str, str]]:
    pairs = (pair for func in functions for pair in func.attr(ATTRIBUTE, ()))
    return list(dict.fromkeys(pairs))


def _llvm_object(text: str, target: Target) -> bytes:
    from slipway.codegen.llvm.machine import CompiledText, bitcode_text

    if text.endswith((".ll", ".bc")) and "\n" not in text:
        path = Path(text)
        if not path.is_file():
            raise CodegenError(f"pragma import_llvm names {text}, and there is no such file")
        text = path.read_text() if path.suffix == ".ll" else bitcode_text(path.read_bytes())
    return CompiledText(text, target, "the text of pragma import_llvm").object_bytes
