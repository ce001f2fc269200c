"""Reading a flatbuffer whose every offset and length is checked against the bytes that are there.

A `Table` is a position in the file.  Its fields are numbered in the order of the schema; reading
one that is absent gives the default.  Nothing is copied or decoded before it is asked for, and a
reference that leaves the file raises ModelError.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.errors import ModelError

# Schema type -> struct format.
SCALARS = {
    "bool": "?", "byte": "b", "ubyte": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I",
    "long": "q", "ulong": "Q", "float": "f",
}  # fmt: skip
_FORMATS = {kind: struct.Struct("<" + code) for kind, code in SCALARS.items()}
_DTYPES = {
    "ubyte": "<u1",
    "ushort": "<u2",
    "byte": "<i1",
    "int": "<i4",
    "long": "<i8",
    "float": "<f4",
    "bool": "?",
}


class Flatbuffer:
    """The bytes of a file, read with bounds."""

    def __init__(self, data: bytes | bytearray) -> None:
        self.data = data

    def scalar(self, position: int, kind: str) -> Any:
        """Return one number.  Raises ModelError when it does not lie inside the file."""
        form = _FORMATS[kind]
        if position < 0 or position + form.size > len(self.data):
            raise ModelError(
                f"the TFLite file is damaged: it refers to byte {position}, but has "
                f"{len(self.data)} bytes"
            )
        return form.unpack_from(self.data, position)[0]

    def root(self, identifier: bytes) -> Table:
        """Return the root table of a file with the given identifier."""
        if len(self.data) < 8 or self.data[4:8] != identifier:
            found = self.data[4:8]
            raise ModelError(
                f"this is no TFLite file: bytes 4 to 7 are {found!r} instead of {identifier!r}"
            )
        return self.table(self.scalar(0, "uint"))

    def table(self, position: int) -> Table:
        """Return the table at `position`, its vtable checked."""
        vtable = position - self.scalar(position, "int")
        size = self.scalar(vtable, "short") & 0xFFFF
        if size < 4 or vtable + size > len(self.data):
            raise ModelError(
                f"the TFLite file is damaged: the table at byte {position} has no valid layout"
            )
        return Table(self, position, vtable, size)


@dataclass(frozen=True)
class Table:
    """One table: fields by number."""

    buffer: Flatbuffer
    position: int
    vtable: int
    vtable_size: int

    def _offset(self, field: int) -> int | None:
        slot = 4 + 2 * field
        if slot + 2 > self.vtable_size:
            return None
        offset = self.buffer.scalar(self.vtable + slot, "short") & 0xFFFF
        return self.position + offset if offset else None

    def _target(self, field: int) -> int | None:
        offset = self._offset(field)
        return None if offset is None else offset + self.buffer.scalar(offset, "uint")

    def scalar(self, field: int, kind: str, default: Any = 0) -> Any:
        """Return a number field, or `default` where it is absent."""
        offset = self._offset(field)
        return default if offset is None else self.buffer.scalar(offset, kind)

    def table(self, field: int) -> Table | None:
        """Return a table field, or None."""
        target = self._target(field)
        return None if target is None else self.buffer.table(target)

    def _vector(self, field: int, item_bytes: int) -> tuple[int, int]:
        """Return where a vector's elements start and how many there are."""
        target = self._target(field)
        if target is None:
            return 0, 0
        count = self.buffer.scalar(target, "uint")
        if target + 4 + count * item_bytes > len(self.buffer.data):
            raise ModelError(
                f"the TFLite file is damaged: the vector at byte {target} claims {count} elements, "
                f"which reach beyond the end of the file"
            )
        return target + 4, count

    def bytes(self, field: int) -> memoryview:
        """Return a vector of bytes without copying it; empty where it is absent."""
        start, count = self._vector(field, 1)
        return memoryview(self.buffer.data)[start : start + count]

    def text(self, field: int) -> str:
        """Return a string; bytes that are no UTF-8 are replaced."""
        return bytes(self.bytes(field)).decode(errors="replace")

    def numbers(self, field: int, kind: str) -> np.ndarray[Any, Any] | None:
        """Return a vector of numbers, None where the field is absent."""
        if self._target(field) is None:
            return None
        start, count = self._vector(field, _FORMATS[kind].size)
        return np.frombuffer(self.buffer.data, _DTYPES[kind], count, start)

    def tables(self, field: int) -> list[Table]:
        """Return a vector of tables."""
        start, count = self._vector(field, 4)
        found = []
        for offset in range(start, start + 4 * count, 4):
            found.append(self.buffer.table(offset + self.buffer.scalar(offset, "uint")))
        return found
