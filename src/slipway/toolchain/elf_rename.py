"""Other names for the symbols of an ELF object, whose code stays as it is.

A relocation names its symbol by number, so only the symbol table changes, and the strings after
it: they move to the file's end with the new names after them, and everything else keeps its place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from slipway.toolchain.elf import ElfFile


def rename_symbols(data: bytes, renamed: Callable[[str], str], name: str = "an object") -> bytes:
    """Return the ELF object `data` with each symbol under the name that `renamed` gives it.

    `name` is the object's in messages.  Raises ArtifactError for a damaged object.
    """
    elf = ElfFile(data, name)
    out = bytearray(data)
    for table in elf.symbol_tables:
        strings = bytearray(data[table.strings_at : table.strings_at + table.strings_bytes])
        entry_bytes = 24 if elf.is_64 else 16
        for index, symbol in enumerate(elf.symbols_of(table), start=1):
            wanted = renamed(symbol.name)
            if wanted != symbol.name:
                struct.pack_into("<I", out, table.at + index * entry_bytes, len(strings))
                strings += wanted.encode() + b"\0"
        out += bytes(-len(out) % 8)
        names = (len(out), len(strings))
        if elf.is_64:
            struct.pack_into("<QQ", out, table.strings_header_at + 24, *names)
        else:
            struct.pack_into("<II", out, table.strings_header_at + 16, *names)
        out += strings
    return bytes(out)
