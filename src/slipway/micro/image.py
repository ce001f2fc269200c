"""Code for a device that is running: linked here for an address there, to be uploaded into RAM.

The firmware tells where its free memory lies and which of its own functions code may call
(``slipway.code_space``); this machine compiles and links for that place, and what travels is the
finished bytes, with the description of ``crt/include/slipway/image.h`` in front.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from slipway.errors import ArtifactError, ToolchainError
from slipway.libinfo import find_crt_include_path
from slipway.micro.board import Board
from slipway.micro.board_tools import need_tools
from slipway.micro.program import declared, included
from slipway.micro.toolchain import run_tool
from slipway.runtime.libraries.library import GRAPH_SYMBOL, PARAMS_SYMBOL
from slipway.toolchain.elf import ET_REL, MACHINE_NAMES, ElfFile
from slipway.toolchain.tempdir import scratch

_PREFIX = "__tvm_ffi_"
_PT_LOAD = 1

# What the firmware can lend, and how C calls it; a name it lends that is not here stays unused.
_LENT = {
    "memcpy": "void *{name}(void *a, const void *b, size_t c) {{\n"
    "  return ((void *(*)(void *, const void *, size_t))(uintptr_t){address:#x}u)(a, b, c);\n}}",
    "memmove": "void *{name}(void *a, const void *b, size_t c) {{\n"
    "  return ((void *(*)(void *, const void *, size_t))(uintptr_t){address:#x}u)(a, b, c);\n}}",
    "memset": "void *{name}(void *a, int b, size_t c) {{\n"
    "  return ((void *(*)(void *, int, size_t))(uintptr_t){address:#x}u)(a, b, c);\n}}",
}

_SCRIPT = """\
ENTRY(slw_image_head)
SECTIONS {{
  . = {address:#x};
  .image : {{
    slw_image_begin = .; KEEP(*(.slw_image))
    *(.text .text.*) . = ALIGN(16); *(.rodata .rodata.* .srodata .srodata.*) . = ALIGN(16);
    *(.data .data.* .sdata .sdata.*) *(.got .got.*) . = ALIGN(16);
  }}
  slw_image_end = .;
  .bss (NOLOAD) : {{ *(.sbss .sbss.* .bss .bss.*) *(.slipway.*) *(COMMON) . = ALIGN(16); }}
  slw_image_memory_end = .;
  /DISCARD/ : {{
    *(.comment) *(.note*) *(.eh_frame*) *(.ARM.exidx*) *(.ARM.extab*) *(.riscv.attributes)
  }}
}}
"""

_HEAD = """\
#include "slipway/image.h"
{declarations}
extern const uint8_t slw_image_begin[];
extern uint8_t slw_image_end[], slw_image_memory_end[];
extern const slw_image slw_image_head;
const slw_image slw_image_head __attribute__((section(".slw_image"), used)) = {{
  SLW_IMAGE_MAGIC, SLW_IMAGE_VERSION, SLW_IMAGE_MACHINE, sizeof(void *),
  slw_image_begin, slw_image_end, slw_image_memory_end, {error_slot},
  {table}, {model}, {graph}, {params}}};
"""


@dataclass(frozen=True)
class CodeSpace:
    """Free memory of a running device, and functions of its firmware by address."""

    address: int
    end: int
    lent: Mapping[str, int]


def parse_code_space(text: str) -> CodeSpace:
    """Read what ``slipway.code_space`` returned."""
    first, *rest = text.splitlines()
    begin, end = (int(word, 16) for word in first.split())
    pairs = (line.split() for line in rest)
    return CodeSpace(begin, end, {name: int(address, 16) for name, address in pairs})


@dataclass
class ImageParts:
    """What goes into an image: C sources with headers, and objects that are compiled already.

    A model for the graph executor is `graph` and `params`, unless the objects hold it; `aot` says
    that the sources define ``slw_model_aot``.
    """

    functions: tuple[str, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    objects: list[bytes] = field(default_factory=list)
    graph: bytes = b""
    params: bytes = b""
    aot: bool = False


class ImageLinker:
    """Compiles and links images for one kind of device."""

    def __init__(
        self, name: str, compiler: str, flags: Sequence[str], libraries: Sequence[str]
    ) -> None:
        self.name, self.compiler = name, compiler
        self.flags, self.libraries = tuple(flags), tuple(libraries)

    @classmethod
    def for_board(cls, board: Board) -> ImageLinker:
        """Return the linker of a board's code; ToolchainError when its compiler is missing."""
        need_tools(board)
        specs = ("--specs=nano.specs",) if board.is_arm else ()
        return cls(board.name, board.compiler, (*board.cflags, *specs), ("-lc", "-lgcc"))

    @classmethod
    def for_this_machine(cls) -> ImageLinker:
        """Return the linker for a process of this machine."""
        compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
        if compiler is None:
            raise ToolchainError("there is no C compiler; on Debian: sudo apt-get install gcc")
        # Far above or below the first 2 GiB: every address is relative, and stays so in linking.
        flags = ("-fPIC", "-fno-stack-protector", "-Wl,--no-relax")
        return cls("host", compiler, flags, ("-lgcc",))

    def link(self, parts: ImageParts, space: CodeSpace) -> bytes:
        """Return the image of `parts` for a place in the device's memory.

        Raises ToolchainError with the linker's words, or ArtifactError when it has not the room.
        """
        with scratch("slipway-image-") as folder:
            return self._link_in(Path(folder), parts, space)

    def _link_in(self, folder: Path, parts: ImageParts, space: CodeSpace) -> bytes:
        objects = [ElfFile(data, f"object {i}") for i, data in enumerate(parts.objects)]
        head, data = _head(parts, objects)
        for name, text in {**parts.sources, **parts.headers, "slw_image_head.c": head}.items():
            (folder / Path(name).name).write_text(text)
        for name, content in data.items():
            (folder / name).write_bytes(content)
        files = [folder / Path(name).name for name in (*parts.sources, "slw_image_head.c")]
        made = [self._compile(folder, path) for path in files]
        self._check_machines(objects, ElfFile(made[-1].read_bytes(), "the compiler's object"))
        for number, content in enumerate(parts.objects):
            made.append(folder / f"given{number}.o")
            made[-1].write_bytes(content)
        wanted = {n for p in made for n in ElfFile(p.read_bytes(), p.name).undefined}
        defined = {n for p in made for n in ElfFile(p.read_bytes(), p.name).exported}
        lent = {n: a for n, a in space.lent.items() if n in wanted - defined and n in _LENT}
        if lent:
            bodies = [_LENT[n].format(name=n, address=a) for n, a in lent.items()]
            text = "\n".join(["#include <stddef.h>", "#include <stdint.h>", *bodies, ""])
            (folder / "lent.c").write_text(text)
            made.append(self._compile(folder, folder / "lent.c"))
        (folder / "image.ld").write_text(_SCRIPT.format(address=space.address))
        out = folder / "image.elf"
        command = [
            *(self.compiler, *self.flags, "-static", "-nostdlib", "-nostartfiles"),
            *("-Wl,-n", "-Wl,--gc-sections", "-Wl,--build-id=none", "-Wl,--no-warn-mismatch"),
            *("-T", str(folder / "image.ld"), "-o", str(out), *map(str, made)),
            *("-Wl,--start-group", *self.libraries, "-Wl,--end-group"),
        ]
        if "riscv" in self.compiler or "arm" in self.compiler:
            command.append("-Wl,--no-warn-rwx-segments")
        run_tool(command, f"linking code for {self.name}")
        return _flat(ElfFile(out.read_bytes(), "the linked image"), space, self.name)

    def _check_machines(self, objects: Sequence[ElfFile], own: ElfFile) -> None:
        for elf in objects:
            if elf.type != ET_REL:
                raise ArtifactError(linked_already(elf.name))
            if (elf.machine, elf.is_64) != (own.machine, own.is_64):
                raise ArtifactError(
                    f"{elf.name} is code for {_machine(elf)}, and {self.name} runs code for "
                    f"{_machine(own)}: build it with the device's target"
                )

    def _compile(self, folder: Path, source: Path) -> Path:
        out = source.with_suffix(".o")
        runtime = find_crt_include_path()[0]
        flags = ["-std=c11", "-O2", "-ffunction-sections", "-fdata-sections", "-fno-common"]
        flags += ["-fno-builtin", "-fno-tree-loop-distribute-patterns"]  # no calls of a C library
        flags += ["-DSLW_STATIC", "-DSLW_NO_THREADS", f"-I{folder}", f"-I{runtime}/include"]
        command = [self.compiler, *self.flags, *flags, "-c", str(source), "-o", str(out)]
        run_tool(command, f"compiling code for {self.name}")
        return out


def linked_already(name: str) -> str:
    """Return why a device refuses a shared library or a program, and what it takes instead."""
    return (
        f"{name} is linked already, for a system with a loader; a device without operating system "
        "takes code that is linked for its own memory, which the session does. Give the module "
        'itself to Session.load(lib), or upload what lib.export_library("model.o") (or .a) or '
        "micro.export_model_library_format wrote"
    )


def _machine(elf: ElfFile) -> str:
    name = MACHINE_NAMES.get(elf.machine, f"ELF machine {elf.machine}")
    return f"{name} ({64 if elf.is_64 else 32} bits)"


def _head(parts: ImageParts, objects: Sequence[ElfFile]) -> tuple[str, dict[str, bytes]]:
    """Return the C text of the image's description, and the files that it includes."""
    found = {name for elf in objects for name in elf.exported}
    names = [n.removeprefix(_PREFIX) for n in sorted(found) if n.startswith(_PREFIX)]
    names = [n for n in names if not n.startswith("_")]
    functions = tuple(dict.fromkeys((*parts.functions, *names)))
    lines = declared(functions)
    data: dict[str, bytes] = {}
    slot = "__TVMFFIErrorSetRaisedFromCStr"
    text = "".join(parts.sources.values())
    has_slot = slot in found or slot in text
    if has_slot:
        lines.append(f"extern slw_error_set_fn {slot};")
    if parts.aot:
        lines.append("extern const slw_aot_model slw_model_aot;")
    members = {}
    for what, symbol, content in (
        ("graph", GRAPH_SYMBOL, parts.graph),
        ("params", PARAMS_SYMBOL, parts.params),
    ):
        members[what] = "0, 0"
        if content:
            data[f"{what}.bin"] = content
            lines.append(included(f"slw_{what}", f"{what}.bin"))
            members[what] = f"slw_{what}, {len(content)}"
        elif symbol in found:
            size = next(s.size for e in objects if (s := e.symbol(symbol)) is not None)
            lines.append(f"extern const uint8_t {symbol}[];")
            members[what] = f"{symbol}, {size}"
    head = _HEAD.format(
        declarations="\n".join(lines),
        error_slot=f"&{slot}" if has_slot else "0",
        table=f"functions, {len(functions)}" if functions else "0, 0",
        model="&slw_model_aot" if parts.aot else "0",
        **members,
    )
    return head, data


def _flat(elf: ElfFile, space: CodeSpace, name: str) -> bytes:
    """Return the bytes of the linked program as they lie in memory."""
    loaded = [s for s in elf.segments if s.type == _PT_LOAD and s.memory_bytes]
    low = min(s.address for s in loaded)
    high = max(s.address + s.memory_bytes for s in loaded)
    if low < space.address or high > space.end:
        raise ArtifactError(
            f"the code needs {high - space.address:,} bytes with its data, and {name} has "
            f"{space.end - space.address:,} bytes free for code. Release modules that are loaded, "
            "or reserve less heap or stack in the firmware (heap_bytes, stack_bytes)"
        )
    image = bytearray(max(s.address + s.file_bytes for s in loaded) - space.address)
    for segment in loaded:
        at = segment.address - space.address
        content = elf.data[segment.offset : segment.offset + segment.file_bytes]
        image[at : at + segment.file_bytes] = content
    return bytes(image)
