"""Objects that define a function twice: the last definition is the one that counts."""

from __future__ import annotations

from collections.abc import Sequence

from slipway.toolchain.elf import ElfFile, is_elf

_GLOBAL, _WEAK = 1, 2


def last_definitions(objects: Sequence[bytes]) -> list[bytes]:
    """Return the ELF objects with each symbol weak that a later one of them defines too.

    A linker takes the definition that is not weak, for calls from every object.
    """
    later: set[str] = set()
    done: list[bytes] = []
    for data in reversed(objects):
        if not is_elf(data):
            done.append(data)
            continue
        elf = ElfFile(data, "an object")
        out = bytearray(data)
        own: set[str] = set()
        for table in elf.symbol_tables:
            for index, symbol in enumerate(elf.symbols_of(table), start=1):
                if symbol.binding != _GLOBAL or not symbol.section:
                    continue
                own.add(symbol.name)
                if symbol.name in later:
                    at = table.at + index * (24 if elf.is_64 else 16) + (4 if elf.is_64 else 12)
                    out[at] = out[at] & 15 | _WEAK << 4
        later |= own
        done.append(bytes(out))
    return done[::-1]
