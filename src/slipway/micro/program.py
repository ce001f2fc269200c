"""program.c of a host_driven project: what is linked into the firmware, for its sessions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from slipway.runtime.graph.graph_format import GraphTables
from slipway.toolchain.elf import ElfFile

_PREFIX = "__tvm_ffi_"

_PROGRAM = """\
/* Generated: what this firmware holds. */
#include "program.h"
{declarations}
const slw_image slw_program = {{
  .magic = SLW_IMAGE_MAGIC, .version = SLW_IMAGE_VERSION, .machine = SLW_IMAGE_MACHINE,
  .pointer_bytes = sizeof(void *),{members}}};
"""


def declared(functions: tuple[str, ...]) -> list[str]:
    """Return C that declares packed functions and lists them in a table ``functions``."""
    if not functions:
        return []
    rows = ", ".join(f'{{"{n}", {_PREFIX}{n}}}' for n in functions)
    return [
        *(
            f"extern int {_PREFIX}{n}(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);"
            for n in functions
        ),
        f"static const slw_image_function functions[] = {{{rows}}};",
    ]


def included(symbol: str, file_name: str) -> str:
    """Return C that puts a file of the include path into read-only data, under a symbol."""
    return (
        f'__asm__(".section .rodata.{symbol}, \\"a\\"\\n.balign 16\\n"\n'
        f'        ".global {symbol}\\n{symbol}:\\n"\n'
        f'        ".incbin \\"{file_name}\\"\\n.balign 4\\n.text\\n");\n'
        f"extern const uint8_t {symbol}[];"
    )


def packed_functions(sources: Mapping[str, str], objects: Iterable[bytes] = ()) -> tuple[str, ...]:
    """Return the names that C or objects define ``__tvm_ffi_<name>`` for, in their order."""
    found = re.findall(rf"\b{_PREFIX}([A-Za-z]\w*)\s*\(", "\n".join(sources.values()))
    for content in objects:
        elf = ElfFile(content, "an object of the model")
        visible = [
            symbol.name
            for table in elf.symbol_tables
            for symbol in elf.symbols_of(table)
            if symbol.section != 0 and symbol.binding != 0
        ]
        found += re.findall(rf"^{_PREFIX}([A-Za-z]\w*)$", "\n".join(visible), re.MULTILINE)
    return tuple(dict.fromkeys(found))


def is_ahead_of_time(metadata: Mapping[str, Any]) -> bool:
    """Return whether an archive's model is one function, called with its inputs and outputs."""
    memory = metadata.get("memory") or {}
    main = (memory.get("functions", {}).get("main") or [{}])[0]
    return "graph" not in metadata.get("executors", ()) and bool(main.get("outputs"))


def write_program(project: Path, metadata: Mapping[str, Any], where: Path | None = None) -> None:
    """Write program.c for the model that is unpacked in a project's directory.

    It goes to `where`, by default the project's board directory.  A model compiled ahead of time is
    reached through the model_aot.c there, which is removed where there is none; the graph
    executor's files are put beside it.
    """
    board, model = where or project / "board", project / "model"
    lines, members = [], []
    if is_ahead_of_time(metadata):
        lines.append("extern const slw_aot_model slw_model_aot;")
        members.append(".model = &slw_model_aot")
    else:
        (board / "model_aot.c").unlink(missing_ok=True)
        host = model / "codegen" / "host"
        texts = {p.name: p.read_text() for p in sorted(host.glob("src/*.c"))}
        objects = [p.read_bytes() for p in sorted(host.glob("lib/*.o"))]
        functions = packed_functions(texts, objects)
        lines += declared(functions)
        if functions:
            members.append(f".functions = functions, .num_functions = {len(functions)}")
    if "graph" in metadata.get("executors", ()):
        name = metadata["model_name"]
        graph = (model / "executor-config" / "graph" / f"{name}.graph").read_text()
        (board / "graph.bin").write_bytes(GraphTables.from_json(graph).to_binary())
        params = model / "parameters" / f"{name}.params"
        (board / "params.bin").write_bytes(params.read_bytes() if params.exists() else b"")
        for what in ("graph", "params"):
            size = (board / f"{what}.bin").stat().st_size
            lines.append(included(f"slw_{what}", f"{what}.bin"))
            members.append(f".{what} = slw_{what}, .{what}_bytes = {size}")
    text = "".join(f"\n  {member}," for member in members)
    (board / "program.c").write_text(_PROGRAM.format(declarations="\n".join(lines), members=text))
