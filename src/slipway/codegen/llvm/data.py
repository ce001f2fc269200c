"""Objects that hold nothing but data: a model's graph and parameters inside its library.

ELF and WebAssembly objects are written directly, header and all, in the time of a copy; LLVM would
take seconds for a large model.  Other formats go through LLVM.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from slipway.codegen.llvm.machine import CompiledText, glue_object
from slipway.target import Target

ALIGN = 64


def data_object(blobs: Mapping[str, bytes], target: Target, section: str = ".rodata") -> bytes:
    """Return an object with each blob under its name, and its bytes' count as u64 ``<name>_size``.

    The data is read-only and 64-byte aligned.  `section` names its place in an ELF file: a linker
    that collects garbage leaves out the sections that nothing refers to.
    """
    if target.parsed_triple.object_format == "elf":
        return _elf(blobs, glue_object(target)[:64], section)
    if target.parsed_triple.object_format == "wasm":
        return _wasm(blobs)
    return CompiledText(_text(blobs), target, "the data").object_bytes


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


def _elf(blobs: Mapping[str, bytes], like: bytes, section: str) -> bytes:
    """Build a relocatable ELF file for the machine of the object that `like` is the start of."""
    wide = like[4] == 2
    order = "<" if like[5] == 1 else ">"
    kind, machine, version = struct.unpack_from(order + "HHI", like, 16)
    flags = struct.unpack_from(order + "I", like, 48 if wide else 36)[0]
    rodata, symbols = bytearray(), []
    for name, data in blobs.items():
        rodata += bytes(-len(rodata) % ALIGN)
        symbols.append((name, len(rodata), len(data)))
        rodata += data
    for name, data in blobs.items():
        rodata += bytes(-len(rodata) % 8)
        symbols.append((f"{name}_size", len(rodata), 8))
        rodata += struct.pack(order + "Q", len(data))
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
    start = ALIGN  # the header fits before it
    parts = (bytes(rodata), bytes(table), bytes(names))
    offsets, position = [], start
    for part in parts:
        offsets.append(position)
        position += len(part) + (-len(part) % ALIGN)
    header_format = order + ("IIQQQQIIQQ" if wide else "IIIIIIIIII")
    entry = 24 if wide else 16
    name_at = [names_at + section_names.index(n) for n in (own, b".symtab", b".strtab", b".note")]
    headers = [
        (0,) * 10,
        (name_at[0], 1, 2, 0, offsets[0], len(rodata), 0, 0, ALIGN, 0),
        (name_at[1], 2, 0, 0, offsets[1], len(table), 3, 1, 8, entry),
        (name_at[2], 3, 0, 0, offsets[2], len(names), 0, 0, 1, 0),
        (name_at[3], 1, 0, 0, position, 0, 0, 0, 1, 0),
    ]
    word = "Q" if wide else "I"
    head = like[:16] + struct.pack(
        f"{order}HHI{word * 3}IHHHHHH",
        kind, machine, version, 0, 0, position, flags,
        64 if wide else 52, 0, 0, 64 if wide else 40, len(headers), 3,
    )  # fmt: skip
    out = bytearray(head)
    for part in parts:
        out += bytes(-len(out) % ALIGN)
        out += part
    out += bytes(position - len(out))
    for header in headers:
        out += struct.pack(header_format, *header)
    return bytes(out)
