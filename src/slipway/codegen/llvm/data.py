"""Objects that hold nothing but data: a model's graph and parameters inside its library.

ELF and WebAssembly objects are written directly, header and all, in the time of a copy; LLVM would
take seconds for a large model.  Other formats go through LLVM.  An ELF object's data is not even
copied: `data_pieces` has it where it lies.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from slipway.codegen.llvm.machine import CompiledText, glue_object
from slipway.target import Target

ALIGN = 64


def data_object(blobs: Mapping[str, bytes], target: Target, section: str = ".rodata") -> bytes:
    """Return an object with each blob under its name, and its bytes' count as u64 ``<name>_size``.

    The data is read-only and 64-byte aligned.  `section` names its place in an ELF file: a linker
    that collects garbage leaves out the sections that nothing refers to.
    """
    pieces = data_pieces({name: (data,) for name, data in blobs.items()}, target, section)
    return b"".join(pieces)


def data_pieces(
    blobs: Mapping[str, Sequence[Any]], target: Target, section: str = ".rodata"
) -> Sequence[Any]:
    """Return what `data_object` joins, for blobs that are in pieces (of bytes) themselves."""
    if target.parsed_triple.object_format == "elf":
        return _elf(blobs, glue_object(target)[:64], section)
    whole = {name: b"".join(pieces) for name, pieces in blobs.items()}
    if target.parsed_triple.is_page:
        return (_wasm(whole),)
    return (CompiledText(_text(whole), target, "the data").object_bytes,)


def _wasm(blobs: Mapping[str, bytes]) -> bytes:
    """Build a relocatable WebAssembly file: a segment and a symbol for each blob and its size."""
    parts: list[tuple[str, bytes, int]] = []  # name, bytes, alignment as a power of two
    for name, data in blobs.items():
        parts += [
            (name, data, ALIGN.bit_length() - 1),
            (f"{name}_size", struct.pack("<Q", len(data)), 3),
        ]
    imports = _vector([_name("env") + _name("__linear_memory") + b"\2\0" + _leb(1)])
    segments = []
    position = 0
    for _, data, alignment in parts:
        position += -position % (1 << alignment)
        segments.append(b"\0\x41" + _signed_leb(position) + b"\x0b" + _leb(len(data)) + data)
        position += len(data)
    info = [_name(f".rodata.{name}") + _leb(alignment) + b"\0" for name, _, alignment in parts]
    symbols = [
        b"\1\0" + _name(name) + _leb(index) + b"\0" + _leb(len(data))
        for index, (name, data, _) in enumerate(parts)
    ]
    linking = (
        _name("linking")
        + b"\2"
        + wasm_section(5, _vector(info))
        + wasm_section(8, _vector(symbols))
    )
    sections = (
        wasm_section(2, imports),
        wasm_section(11, _vector(segments)),
        wasm_section(0, linking),
    )
    return b"\0asm" + struct.pack("<I", 1) + b"".join(sections)


def wasm_section(number: int, body: bytes) -> bytes:
    """Return a section of a WebAssembly file."""
    return bytes([number]) + _leb(len(body)) + body


def _vector(items: list[bytes]) -> bytes:
    return _leb(len(items)) + b"".join(items)


def _name(text: str) -> bytes:
    return _leb(len(text.encode())) + text.encode()


def _leb(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def _signed_leb(number: int) -> bytes:
    """Return a number that is not negative as a signed one: its last bit says so."""
    return _leb(number) if not _leb(number)[-1] & 0x40 else _with_sign(_leb(number))


def _with_sign(leb: bytes) -> bytes:
    return leb[:-1] + bytes([leb[-1] | 0x80, 0])


def _text(blobs: Mapping[str, bytes]) -> str:
    lines = []
    for name, data in blobs.items():
        body = "".join(f"\\{byte:02X}" for byte in data)
        lines.append(f'@{name} = constant [{len(data)} x i8] c"{body}", align {ALIGN}')
        lines.append(f"@{name}_size = constant i64 {len(data)}")
    return "\n".join(lines)


def _elf(blobs: Mapping[str, Sequence[Any]], like: bytes, section: str) -> list[Any]:
    """Build a relocatable ELF file for the machine of the object that `like` is the start of."""
    wide = like[4] == 2
    order = "<" if like[5] == 1 else ">"
    kind, machine, version = struct.unpack_from(order + "HHI", like, 16)
    flags = struct.unpack_from(order + "I", like, 48 if wide else 36)[0]
    rodata = _Section()
    symbols = []
    sizes = {name: sum(map(len, pieces)) for name, pieces in blobs.items()}
    for name, pieces in blobs.items():
        rodata.align(ALIGN)
        symbols.append((name, rodata.size, sizes[name]))
        rodata.extend(pieces)
    for name, size in sizes.items():
        rodata.align(8)
        symbols.append((f"{name}_size", rodata.size, 8))
        rodata.extend((struct.pack(order + "Q", size),))
    names, table = bytearray(b"\0"), bytearray(24 if wide else 16)
    for name, offset, size in symbols:
        info, at = 0x11, len(names)  # global, object
        if wide:
            table += struct.pack(order + "IBBHQQ", at, info, 0, 1, offset, size)
        else:
            table += struct.pack(order + "IIIBBH", at, offset, size, info, 0, 1)
        names += name.encode() + b"\0"
    own = section.encode()
    section_names = b"\0" + own + b"\0.symtab\0.strtab\0.note.GNU-stack\0"
    names_at = len(names)
    names += section_names
    file = _Section(ALIGN)  # the header fits before it
    offsets = []
    for part in (rodata.pieces, (table,), (names,)):
        offsets.append(file.size)
        file.extend(part)
        file.align(ALIGN)
    header_format = order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII")
    entry = 24 if wide else 16
    name_at = [names_at + section_names.index(n) for n in (own, b".symtab", b".strtab", b".note")]
    headers = [
        (0,) * 10,
        (name_at[0], 1, 2, 0, offsets[0], rodata.size, 0, 0, ALIGN, 0),
        (name_at[1], 2, 0, 0, offsets[1], len(table), 3, 1, 8, entry),
        (name_at[2], 3, 0, 0, offsets[2], len(names), 0, 0, 1, 0),
        (name_at[3], 1, 0, 0, file.size, 0, 0, 0, 1, 0),
    ]
    word = "Q" if wide else "I"
    head = like[:16] + struct.pack(
        f"{order}HHI{word * 3}IHHHHHH",
        kind, machine, version, 0, 0, file.size, flags,
        64 if wide else 52, 0, 0, 64 if wide else 40, len(headers), 3,
    )  # fmt: skip
    last = (struct.pack(header_format, *header) for header in headers)
    return [head.ljust(ALIGN, b"\0"), *file.pieces, *last]


class _Section:
    """Pieces one behind another, and where the next one begins."""

    def __init__(self, start: int = 0) -> None:
        self.size = start
        self.pieces: list[Any] = []

    def extend(self, pieces: Sequence[Any]) -> None:
        self.pieces += pieces
        self.size += sum(map(len, pieces))

    def align(self, multiple: int) -> None:
        if missing := -self.size % multiple:
            self.extend((bytes(missing),))


def quoted(name: str) -> str:
    """Return a symbol as LLVM IR quotes it."""
    return '"' + "".join(c if c.isalnum() or c in "_." else f"\\{ord(c):02X}" for c in name) + '"'
