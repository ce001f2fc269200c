"""Objects of the source that schedules bring along (`codegen.snippets`), beside LLVM's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from slipway.codegen.llvm.machine import CompiledText, bitcode_text
from slipway.codegen.snippets import snippets, without_linkage
from slipway.errors import CodegenError
from slipway.ir.function import PrimFunc
from slipway.target import Target
from slipway.toolchain.elf_override import last_definitions


def snippet_objects(functions: Iterable[PrimFunc], target: Target) -> list[bytes]:
    """Return objects of everything that `functions` bring along.

    Of functions that several of them define, the one that came last counts.
    """
    brought = snippets(functions)
    if not brought:
        return []
    from slipway.codegen.c.backend import snippet_to_object

    objects = []
    for kind, text in brought:
        if kind == "import_c":
            objects.append(snippet_to_object(without_linkage(text), target))
        else:
            objects.append(_llvm_object(text, target))
    return last_definitions(objects)


def _llvm_object(text: str, target: Target) -> bytes:
    if text.endswith((".ll", ".bc")) and "\n" not in text:
        path = Path(text)
        if not path.is_file():
            raise CodegenError(f"pragma import_llvm names {text}, and there is no such file")
        text = path.read_text() if path.suffix == ".ll" else bitcode_text(path.read_bytes())
    return CompiledText(text, target, "the text of pragma import_llvm").object_bytes
