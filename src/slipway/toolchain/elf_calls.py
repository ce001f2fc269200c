"""Which functions of an object file refer to which, and what each takes of the stack.

Both come from relocations.  A function whose address is taken counts as called: who has it may call
it.  Each function has to lie in a section of its own (``-ffunction-sections``), or shares what its
section refers to.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from slipway.errors import ArtifactError
from slipway.toolchain.elf import ElfFile, ElfSection, Symbol

_RELA, _REL = 4, 9  # kinds of sections: relocations with and without addends
_FUNCTION = 2  # a kind of symbols


def references(elf: ElfFile) -> dict[str, set[str]]:
    """Return for each function of an object the functions that it refers to, by name.

    Those that the object does not define are among them.  Raises ArtifactError for damaged bytes.
    """
    there = _functions_of(elf)
    found: dict[str, set[str]] = {}
    for section, _, symbol in _relocations(elf):
        inside = symbol is not None and symbol.section == section and symbol.type != _FUNCTION
        if not inside:  # no jump from one line of a function to another
            for name in there.get(section, ()):
                found.setdefault(name, set()).update(_meant(symbol, there))
    return found


def frame_sizes(elf: ElfFile) -> dict[str, int]:
    """Return what functions take of the stack, in bytes, of an object with ``.stack_sizes``.

    Clang writes it for ``-fstack-size-section``: an address for each function, and a ULEB128.
    """
    there = _functions_of(elf)
    found: dict[str, int] = {}
    for number, at, symbol in _relocations(elf):
        section = elf.sections[number] if number < len(elf.sections) else None
        if section is not None and section.name == ".stack_sizes":
            size = _uleb128(section, at + (8 if elf.is_64 else 4), elf.name)
            found |= dict.fromkeys(_meant(symbol, there), size)
    return found


def _functions_of(elf: ElfFile) -> dict[int, list[str]]:
    """Return the functions in each section, by its number."""
    found: dict[int, list[str]] = {}
    for symbol in elf.symbols:
        if symbol.type == _FUNCTION and symbol.section:
            found.setdefault(symbol.section, []).append(symbol.name)
    return found


def _meant(symbol: Symbol | None, there: dict[int, list[str]]) -> list[str]:
    """Return which functions a symbol stands for: itself, or a place in their section."""
    if symbol is None:
        return []
    if symbol.type == _FUNCTION or symbol.section == 0:
        return [symbol.name] if symbol.name else []
    return there.get(symbol.section, [])


def _relocations(elf: ElfFile) -> Iterator[tuple[int, int, Symbol | None]]:
    """Yield section, place in it, and symbol of each relocation."""
    word = "Q" if elf.is_64 else "I"
    for names in elf.symbol_tables:
        symbols = [None, *elf.symbols_of(names)]  # the first is empty, and counts
        for section in elf.sections:
            if section.type not in (_RELA, _REL):
                continue
            record = struct.Struct(f"<{word}{word}{word if section.type == _RELA else ''}")
            whole = len(section.data) // record.size * record.size
            for at, info, *_ in record.iter_unpack(section.data[:whole]):
                number = info >> (32 if elf.is_64 else 8)
                yield section.about, at, symbols[number] if number < len(symbols) else None


def _uleb128(section: ElfSection, at: int, name: str) -> int:
    value = shift = 0
    for byte in section.data[at : at + 10]:
        value |= (byte & 127) << shift
        if byte < 128:
            return value
        shift += 7
    raise ArtifactError(f"{name}: a number in {section.name} has no end")
