"""Large weights of a model's file, taken aside before the rest is parsed.

protobuf copies a file several times while it reads it; weights are most of the file.  So its outer
messages are walked here, the bytes of large initializers go into files of their own, and protobuf
gets the model without them:

    ModelProto.graph (7) > GraphProto.initializer (5) > TensorProto.raw_data (9)

Whatever looks unusual leaves the file to protobuf alone, and to its errors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from slipway.runtime.arrays.array_file import MIN_BYTES, range_of

Array = np.ndarray[Any, Any]
GRAPH, INITIALIZER, RAW_DATA, DATA_LOCATION = 7, 5, 9, 14
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_HEAD = 24  # bytes that hold a field's key and length


class _Unusual(Exception):
    """The file is not laid out as models are."""


@dataclass(frozen=True)
class _Field:
    number: int
    kind: int
    start: int  # of the key
    body: int  # of what follows key and length
    end: int


def without_large_weights(path: Path) -> tuple[bytes, list[Array]] | None:
    """Return a model's bytes without the data of large initializers, and these data in order.

    None for a file that protobuf should judge.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        found: list[Array] = []
        try:
            rest = b"".join(_message(file, 0, size, (GRAPH, INITIALIZER), found))
        except _Unusual:
            return None
    return rest, found


def _message(
    file: BinaryIO, start: int, end: int, path: tuple[int, ...], found: list[Array]
) -> Iterator[bytes]:
    """Yield the bytes of a message whose fields of the number path[0] are shortened."""
    for field in _fields(file, start, end):
        if field.number != path[0] or field.end - field.body < MIN_BYTES:
            yield _read(file, field.start, field.end)
            continue
        if field.kind != _BYTES:
            raise _Unusual
        inner = (
            _message(file, field.body, field.end, path[1:], found)
            if len(path) > 1
            else _tensor(file, field, found)
        )
        body = b"".join(inner)
        yield _varint(field.number << 3 | _BYTES) + _varint(len(body)) + body


def _tensor(file: BinaryIO, tensor: _Field, found: list[Array]) -> Iterator[bytes]:
    fields = list(_fields(file, tensor.body, tensor.end))
    raw = [f for f in fields if f.number == RAW_DATA]
    if len(raw) != 1 or raw[0].end - raw[0].body < MIN_BYTES or raw[0].kind != _BYTES:
        raw = []
    elif any(f.number == DATA_LOCATION for f in fields):
        raise _Unusual
    for field in fields:
        if field not in raw:
            yield _read(file, field.start, field.end)
    for field in raw:
        data = range_of(file, field.body, field.end - field.body)
        if data is None:
            raise _Unusual
        found.append(data)
        yield _varint(DATA_LOCATION << 3 | _VARINT) + _varint(1)


def _fields(file: BinaryIO, start: int, end: int) -> Iterator[_Field]:
    at = start
    while at < end:
        head = _read(file, at, min(at + _HEAD, end))
        key, used = _number(head, 0)
        kind, body = key & 7, at + used
        if kind == _VARINT:
            _, after = _number(head, used)
            stop = at + after
        elif kind == _BYTES:
            size, after = _number(head, used)
            body = at + after
            stop = body + size
        elif kind in (_FIXED64, _FIXED32):
            stop = body + (8 if kind == _FIXED64 else 4)
        else:
            raise _Unusual
        if stop > end:
            raise _Unusual
        yield _Field(key >> 3, kind, at, body, stop)
        at = stop


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    data = os.pread(file.fileno(), end - start, start)
    if len(data) != end - start:
        raise _Unusual
    return data


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint, and where what follows it begins."""
    value = 0
    for position in range(10):
        if at + position >= len(data):
            raise _Unusual
        byte = data[at + position]
        value |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            return value, at + position + 1
    raise _Unusual


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
