"""Bytes as an object file: parameters and graphs that travel inside a library.

The bytes go from a file straight through LLVM's assembler (``.incbin``), not through IR text, so
that a hundred megabytes of weights take no longer than copying them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from slipway.codegen.llvm.machine import _LOCK, _parse, machine_of
from slipway.errors import CodegenError
from slipway.target import Target


def data_object(blobs: Mapping[str, bytes], target: Target) -> bytes:
    """Return an object that exports each blob under its name, 64-byte aligned and read-only.

    Beside each symbol `name` there is `name_size`, a 64-bit integer: the number of bytes.
    Raises CodegenError for targets whose objects are not ELF.
    """
    if target.parsed_triple.object_format != "elf":
        raise CodegenError(
            f"data inside a library needs an ELF target, not {target.triple}; export a .tar"
        )
    progbits = "%progbits" if target.parsed_triple.table == "arm" else "@progbits"
    with tempfile.TemporaryDirectory(prefix="slipway-data-") as folder:
        lines = []
        for number, (name, data) in enumerate(blobs.items()):
            path = Path(folder) / str(number)
            path.write_bytes(data)
            lines += [
                f'.section .rodata.{name},"a",{progbits}',
                ".p2align 6",
                f".globl {name}",
                f".type {name}, {progbits[0]}object",
                f".size {name}, {len(data)}",
                f"{name}:",
                f'.incbin "{path}"',
                ".p2align 3",
                f".globl {name}_size",
                f".type {name}_size, {progbits[0]}object",
                f".size {name}_size, 8",
                f"{name}_size:",
                f".quad {len(data)}",
            ]
        text = "\n".join(
            'module asm "' + line.replace("\\", "\\\\").replace('"', "\\22") + '"' for line in lines
        )
        with _LOCK:
            machine = machine_of(target)
            return bytes(machine.emit_object(_parse(text + "\n", target, machine)))
