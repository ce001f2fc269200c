"""Object files that hold only data, written without an assembler.

A model's graph and parameters travel inside its ``.so`` as such symbols.  The file is the least a
linker takes: one read-only section for each symbol, a symbol table, two string tables.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from slipway.errors import ToolchainError
from slipway.toolchain.elf import machine_of_triple
from slipway.toolchain.zig import architecture_of

ALIGNMENT_BYTES = 64
_RELOCATABLE = 1
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_ALLOC, _RETAIN = 2, 0x200000  # --gc-sections keeps what nothing refers to
_GLOBAL_OBJECT = 1 << 4 | 1
# What the linker compares between objects: EABI version 5; RISC-V compressed code, double ABI.
_FLAGS = {40: 0x05000000, 243: 0x5}
_32_BIT = ("armv7", "riscv32", "hexagon")


def data_object(symbols: Mapping[str, bytes | bytearray], triple: str) -> bytes:
    """Return an ELF object for `triple` that exports each name with its bytes, 64-byte aligned.

    Raises ToolchainError for a target whose objects are not ELF.
    """
    architecture = architecture_of(triple)
    machine = machine_of_triple(architecture)
    if machine is None or any(word in triple for word in ("apple", "darwin", "macos", "windows")):
        raise ToolchainError(
            f"data cannot be embedded into a library for {triple}: only ELF targets are supported. "
            "Export a .tar, which holds them beside the library."
        )
    is_64 = architecture not in _32_BIT
    header_bytes = 64 if is_64 else 52
    names = b"\0.symtab\0.strtab\0.rodata\0"
    strings = b"\0"
    entries = bytes(24 if is_64 else 16)
    sections: list[tuple[int, int, int, int, int, int, int, int]] = []
    body = b""
    for index, (name, content) in enumerate(symbols.items(), start=1):
        body += bytes(-(header_bytes + len(body)) % ALIGNMENT_BYTES)
        flags = _ALLOC | _RETAIN
        at = header_bytes + len(body)
        sections.append((17, _PROGBITS, flags, at, len(content), 0, 0, ALIGNMENT_BYTES))
        body += bytes(content)
        size, place = len(content), len(strings)
        strings += name.encode() + b"\0"
        if is_64:
            entries += struct.pack("<IBBHQQ", place, _GLOBAL_OBJECT, 0, index, 0, size)
        else:
            entries += struct.pack("<IIIBBH", place, 0, size, _GLOBAL_OBJECT, 0, index)
    body += bytes(-(header_bytes + len(body)) % 8)
    count = len(sections)
    for title, kind, content, link, info in (
        (1, _SYMTAB, entries, count + 2, 1),
        (9, _STRTAB, strings, 0, 0),
        (9, _STRTAB, names, 0, 0),
    ):
        sections.append((title, kind, 0, header_bytes + len(body), len(content), link, info, 8))
        body += content + bytes(-len(content) % 8)
    table_at = header_bytes + len(body)
    table = b"".join(_section(is_64, row) for row in [(0,) * 8, *sections])
    return _header(is_64, machine, table_at, len(sections) + 1) + body + table


def _section(is_64: bool, row: tuple[int, ...]) -> bytes:
    title, kind, flags, at, size, link, info, alignment = row
    entry = {_SYMTAB: 24 if is_64 else 16}.get(kind, 0)
    form = "<IIQQQQIIQQ" if is_64 else "<IIIIIIIIII"
    return struct.pack(form, title, kind, flags, 0, at, size, link, info, alignment, entry)


def _header(is_64: bool, machine: int, table_at: int, count: int) -> bytes:
    ident = b"\x7fELF" + bytes((2 if is_64 else 1, 1, 1)) + bytes(9)
    form = "<HHIQQQIHHHHHH" if is_64 else "<HHIIIIIHHHHHH"
    flags = _FLAGS.get(machine, 0)
    own, entry = (64, 64) if is_64 else (52, 40)
    fields = (_RELOCATABLE, machine, 1, 0, 0, table_at, flags, own, 0, 0, entry, count, count - 1)
    return ident + struct.pack(form, *fields)
