"""Reading ELF objects and shared libraries: enough to check them before anything loads them.

Every offset and length in the file is checked against the bytes that are there; a damaged file
is an `ArtifactError`, never a wrong answer.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from slipway.errors import ArtifactError

MACHINE_NAMES = {3: "i386", 40: "arm", 62: "x86-64", 164: "hexagon", 183: "aarch64", 243: "riscv"}
# What an LLVM triple begins with -> ELF machine number.
_MACHINE_OF_ARCH = {
    "x86_64": 62,
    "aarch64": 183,
    "armv7": 40,
    "hexagon": 164,
    "riscv64": 243,
    "riscv32": 243,
}

ET_REL, ET_DYN = 1, 3
_PT_LOAD, _PT_DYNAMIC = 1, 2
_SHT_SYMTAB, _SHT_NOBITS = 2, 8
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_GNU_HASH = 1, 4, 5, 6, 10, 0x6FFFFEF5
_WEAK = 2
_NAMES = 64  # times the file's size: what all names that are read may have, as they may share bytes


@dataclass(frozen=True)
class Segment:
    """One program header; file range and address range in bytes, and where a loader puts it."""

    type: int
    flags: int
    offset: int
    address: int
    file_bytes: int
    memory_bytes: int
    load_address: int


@dataclass(frozen=True)
class Symbol:
    """One symbol table entry; `section` 0 means "defined elsewhere"."""

    name: str
    value: int
    size: int
    binding: int
    type: int
    section: int


@dataclass(frozen=True)
class ElfSection:
    """A section of an object; `about` is the number of the one that relocations are for."""

    name: str
    type: int
    about: int
    data: memoryview


@dataclass(frozen=True)
class SymbolTable:
    """Where an object keeps symbols: all offsets are in the file, `count` has the empty first one.

    `strings_header_at` is the section header that says where the names are.
    """

    at: int
    count: int
    strings_at: int
    strings_bytes: int
    strings_header_at: int


def architecture_of(triple: str) -> str:
    """Return x86_64, aarch64, armv7, riscv64 or another first word of an LLVM triple."""
    first = triple.split("-", 1)[0].lower()
    if first in ("amd64", "x86-64", "x64"):
        return "x86_64"
    if first in ("arm64", "arm64e") or first.startswith("aarch64"):
        return "aarch64"
    if first in ("arm", "armhf") or re.match(r"(arm|thumb)v[78](?!.*m)", first):
        return "armv7"
    return first


def machine_of_triple(architecture: str) -> int | None:
    """Return the ELF machine number of an architecture as `architecture_of` names it."""
    return _MACHINE_OF_ARCH.get(architecture)


def is_elf(data: bytes | memoryview) -> bool:
    """Return whether the bytes begin like an ELF file."""
    return bytes(data[:4]) == b"\x7fELF"


class ElfFile:
    """A parsed ELF file.

    Parameters: the file's bytes, and a name for messages.
    Attributes: `machine` (number), `is_64`, `type` (`ET_REL`, `ET_DYN`), `segments`.
    """

    def __init__(self, data: bytes | memoryview, name: str = "library") -> None:
        self.data = memoryview(data).cast("B")
        self.name = name
        self._tables: dict[tuple[int, int], bytes] = {}
        self._names_bytes = 0
        if not is_elf(self.data):
            raise self._damaged("it does not begin like an ELF file")
        if len(self.data) < 16 or self.data[4] not in (1, 2) or self.data[5] != 1:
            raise self._damaged("its ELF header is not one of a little-endian machine")
        self.is_64 = self.data[4] == 2
        form = "<HHIQQQIHHHHHH" if self.is_64 else "<HHIIIIIHHHHHH"
        header = self._unpack(form, 16)
        self.type: int = header[0]
        self.machine: int = header[1]
        self._sections_at: int = header[5]
        self._num_sections: int = header[11]
        self._names_section: int = header[12]
        if self._sections_at + header[10] * header[11] > len(self.data):
            raise self._damaged("it ends before its own tables do")
        self.segments = tuple(self._read_segments(header[4], header[8], header[9]))

    @property
    def machine_name(self) -> str:
        """The processor's name, for messages."""
        return MACHINE_NAMES.get(self.machine, f"processor number {self.machine}")

    def _damaged(self, why: str) -> ArtifactError:
        return ArtifactError(
            f"{self.name} is not a usable library: {why}. It is truncated or damaged; export it "
            "again, or copy it again in binary mode."
        )

    def _unpack(self, form: str, offset: int) -> tuple[int, ...]:
        if offset < 0 or offset + struct.calcsize(form) > len(self.data):
            raise self._damaged("it ends before its own tables do")
        return struct.unpack_from(form, self.data, offset)

    def _read_segments(self, at: int, entry_bytes: int, count: int) -> Iterator[Segment]:
        for index in range(count):
            offset = at + index * entry_bytes
            if self.is_64:
                kind, flags, file_at, address, load, size, memory, _ = self._unpack(
                    "<IIQQQQQQ", offset
                )
            else:
                kind, file_at, address, load, size, memory, flags, _ = self._unpack(
                    "<IIIIIIII", offset
                )
            if file_at + size > len(self.data) and kind in (_PT_LOAD, _PT_DYNAMIC):
                raise self._damaged("it ends before its own tables do")
            yield Segment(kind, flags, file_at, address, size, memory, load)

    def _file_offset(self, address: int, size: int) -> int:
        for segment in self.segments:
            start = address - segment.address
            if segment.type == _PT_LOAD and start >= 0 and start + size <= segment.file_bytes:
                return segment.offset + start
        raise self._damaged("a table lies outside its segments")

    @cached_property
    def _dynamic(self) -> list[tuple[int, int]]:
        form, step = ("<qQ", 16) if self.is_64 else ("<iI", 8)
        pairs: list[tuple[int, int]] = []
        segment = next((s for s in self.segments if s.type == _PT_DYNAMIC), None)
        if segment is None:
            return pairs
        for offset in range(segment.offset, segment.offset + segment.file_bytes, step):
            tag, value = self._unpack(form, offset)
            if tag == 0:
                break
            pairs.append((tag, value))
        return pairs

    def _string(self, table_at: int, table_bytes: int, offset: int) -> str:
        if not 0 <= offset < table_bytes:
            raise self._damaged("a symbol's name lies outside the string table")
        table = self._table(table_at, table_bytes)
        end = table.find(b"\0", offset)
        text = table[offset : end if end >= 0 else table_bytes]
        self._names_bytes += len(text)
        if self._names_bytes > _NAMES * len(self.data):
            raise self._damaged("its symbols' names are longer than the file can tell")
        return text.decode("utf-8", "replace")

    def _table(self, at: int, size: int) -> bytes:
        if (at, size) not in self._tables:
            self._tables[at, size] = bytes(self.data[at : at + size])
        return self._tables[at, size]

    @cached_property
    def _strings(self) -> tuple[int, int]:
        table = dict(self._dynamic)
        size = table.get(_DT_STRSZ, 0)
        return self._file_offset(table.get(_DT_STRTAB, 0), size), size

    @cached_property
    def needed(self) -> list[str]:
        """The libraries this one asks the dynamic linker for (DT_NEEDED)."""
        names = [value for tag, value in self._dynamic if tag == _DT_NEEDED]
        return [self._string(*self._strings, value) for value in names]

    def _count_dynamic_symbols(self) -> int:
        table = dict(self._dynamic)
        if _DT_HASH in table:
            return self._unpack("<II", self._file_offset(table[_DT_HASH], 8))[1]
        if _DT_GNU_HASH not in table:
            return 0
        start = table[_DT_GNU_HASH]
        buckets, first, bloom, _ = self._unpack("<IIII", self._file_offset(start, 16))
        buckets_at = start + 16 + bloom * (8 if self.is_64 else 4)
        offset = self._file_offset(buckets_at, 4 * buckets)
        last = max(self._unpack(f"<{buckets}I", offset), default=0)
        if last < first:
            return first
        chains_at = buckets_at + 4 * buckets
        while not self._unpack("<I", self._file_offset(chains_at + 4 * (last - first), 4))[0] & 1:
            last += 1
        return last + 1

    def _read_symbols(
        self, at: int, count: int, strings_at: int, strings_bytes: int
    ) -> Iterator[Symbol]:
        step = 24 if self.is_64 else 16
        for index in range(1, count):
            if self.is_64:
                name, info, _, section, value, size = self._unpack("<IBBHQQ", at + index * step)
            else:
                name, value, size, info, _, section = self._unpack("<IIIBBH", at + index * step)
            text = self._string(strings_at, strings_bytes, name)
            yield Symbol(text, value, size, info >> 4, info & 15, section)

    @cached_property
    def symbols(self) -> list[Symbol]:
        """The dynamic symbols of a shared library, or all symbols of an object file."""
        if self.type == ET_REL:
            return [symbol for table in self.symbol_tables for symbol in self.symbols_of(table)]
        if not self._dynamic:
            raise self._damaged("it has no dynamic table")
        count = self._count_dynamic_symbols()
        step = 24 if self.is_64 else 16
        at = self._file_offset(dict(self._dynamic).get(_DT_SYMTAB, 0), count * step)
        return list(self._read_symbols(at, count, *self._strings))

    @cached_property
    def _headers(self) -> dict[int, tuple[int, ...]]:
        """The headers of an object's sections, in order, by where they lie."""
        form, step = ("<IIQQQQIIQQ", 64) if self.is_64 else ("<IIIIIIIIII", 40)
        ats = [self._sections_at + index * step for index in range(self._num_sections)]
        return {at: self._unpack(form, at) for at in ats}

    @cached_property
    def sections(self) -> list[ElfSection]:
        """The sections of an object file, in order; those without bytes in the file are empty."""
        headers = list(self._headers.values())
        if not headers:
            return []
        if self._names_section >= len(headers):
            raise self._damaged("its sections have no names")
        names = headers[self._names_section]
        found = []
        for name, kind, _, _, at, size, _, about, *_ in headers:
            size = 0 if kind == _SHT_NOBITS else size
            if at + size > len(self.data):
                raise self._damaged("it ends before its own tables do")
            text = self._string(names[4], names[5], name) if names[5] else ""
            found.append(ElfSection(text, kind, about, self.data[at : at + size]))
        return found

    @cached_property
    def symbol_tables(self) -> list[SymbolTable]:
        """The symbol tables of an object file."""
        ats, headers = list(self._headers), list(self._headers.values())
        found: list[SymbolTable] = []
        taken = 0  # bytes of tables; of the symbols that are counted, too
        for header in headers:
            if header[1] != _SHT_SYMTAB or header[9] == 0:
                continue
            if header[9] != (24 if self.is_64 else 16):
                raise self._damaged("its symbols have another size than ELF gives them")
            if header[6] >= len(headers):
                raise self._damaged("its symbol table has no strings")
            strings = headers[header[6]]
            taken += header[5] + strings[5]
            if strings[4] + strings[5] > len(self.data) or taken > len(self.data):
                raise self._damaged("it ends before its own tables do")
            found.append(
                SymbolTable(
                    header[4], header[5] // header[9], strings[4], strings[5], ats[header[6]]
                )
            )
        return found

    def symbols_of(self, table: SymbolTable) -> list[Symbol]:
        """Return the symbols of one table, in its order."""
        strings = table.strings_at, table.strings_bytes
        return list(self._read_symbols(table.at, table.count, *strings))

    @property
    def exported(self) -> list[str]:
        """Names of the symbols defined here and visible outside."""
        return [s.name for s in self.symbols if s.section != 0 and s.binding != 0 and s.name]

    @property
    def undefined(self) -> list[str]:
        """Names of the symbols that somebody else must define (weak ones left out)."""
        return [s.name for s in self.symbols if s.section == 0 and s.binding != _WEAK and s.name]

    def symbol(self, name: str) -> Symbol | None:
        """Return the defined symbol `name`, or None."""
        return next((s for s in self.symbols if s.name == name and s.section != 0), None)

    def symbol_bytes(self, name: str) -> memoryview | None:
        """Return the bytes of a data symbol of a shared library, or None if it has none such."""
        symbol = self.symbol(name)
        if symbol is None:
            return None
        offset = self._file_offset(symbol.value, symbol.size)
        return self.data[offset : offset + symbol.size]
