"""Reading the options of custom operators: a flexbuffer that holds a map of numbers and vectors.

Every offset is checked against the bytes; what is no map of scalars raises ModelError.
"""

from __future__ import annotations

import struct
from typing import Any

from slipway.errors import ModelError

INT, UINT, FLOAT, KEY, MAP, BOOL = 1, 2, 3, 4, 9, 26
VECTORS = {11: INT, 12: UINT, 13: FLOAT}  # of one type, by the type of their elements
_CODES = {
    INT: {1: "b", 2: "h", 4: "i", 8: "q"},
    UINT: {1: "B", 2: "H", 4: "I", 8: "Q"},
    FLOAT: {2: "e", 4: "f", 8: "d"},
    BOOL: {1: "B", 2: "H", 4: "I", 8: "Q"},
}
MAX_ENTRIES = 1024


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def number(self, position: int, kind: int, width: int) -> Any:
        code = _CODES[kind].get(width)
        if code is None or position < 0 or position + width > len(self.data):
            raise ModelError("the options of a custom operator are damaged")
        return struct.unpack_from("<" + code, self.data, position)[0]

    def vector(self, position: int, kind: int, width: int) -> tuple[Any, ...]:
        count = self.number(position - width, UINT, width)
        if position + count * width > len(self.data):
            raise ModelError("the options of a custom operator are damaged")
        return tuple(self.number(position + i * width, kind, width) for i in range(count))

    def text(self, position: int) -> str:
        end = self.data.find(b"\0", position)
        if position < 0 or end < 0:
            raise ModelError("the options of a custom operator are damaged")
        return self.data[position:end].decode(errors="replace")


def read_map(data: bytes) -> dict[str, Any]:
    """Return the numbers of a flexbuffer map, and tuples of them, by name.

    Entries of other types are left out.
    """
    if len(data) < 3:
        raise ModelError("the options of a custom operator are missing")
    reader = _Reader(data)
    root_width, root_type = data[-1], data[-2]
    if root_type >> 2 != MAP or root_width not in (1, 2, 4, 8):
        raise ModelError("the options of a custom operator are no map")
    offset = len(data) - 2 - root_width
    values = offset - reader.number(offset, UINT, root_width)
    width = 1 << (root_type & 3)
    count = reader.number(values - width, UINT, width)
    keys_offset = values - 3 * width
    keys = keys_offset - reader.number(keys_offset, UINT, width)
    key_width = reader.number(values - 2 * width, UINT, width)
    if count > MAX_ENTRIES or key_width not in (1, 2, 4, 8):
        raise ModelError("the options of a custom operator are damaged")
    found: dict[str, Any] = {}
    for entry in range(count):
        name_offset = keys + entry * key_width
        name = reader.text(name_offset - reader.number(name_offset, UINT, key_width))
        packed = reader.number(values + count * width + entry, UINT, 1)
        kind = packed >> 2
        if kind in _CODES:
            found[name] = reader.number(values + entry * width, kind, width)
        elif kind in VECTORS:
            offset = values + entry * width
            offset -= reader.number(offset, UINT, width)
            found[name] = reader.vector(offset, VECTORS[kind], 1 << (packed & 3))
    return found
