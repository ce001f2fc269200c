"""Objects that hold nothing but data: a model's graph and parameters inside its library.

An ELF object is written directly, header and all, in the time of a copy; LLVM would take seconds
for a large model.  Other formats go through LLVM.
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
    return CompiledText(_text(blobs), target, "the data").object_bytes


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
