"""Arrays of MXNet's files (`.params`, `.nd`), read without MXNet.

The format is that of `NDArray::Save` of MXNet 0.8 to 1.9: a list of dense arrays, then their names.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from slipway.errors import ModelError

LIST_MAGIC = 0x112
VERSIONS = {0xF993FAC8: 1, 0xF993FAC9: 2, 0xF993FACA: 3}
DTYPES = (
    "float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool", "int16", "uint16",
    "uint32", "uint64",
)  # fmt: skip


class _Reader:
    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        self.at = 0

    def bytes(self, count: int) -> bytes:
        found = self.data[self.at : self.at + count]
        if count < 0 or len(found) != count:
            raise self.damaged(f"it ends within {count} bytes at {self.at}")
        self.at += count
        return found

    def number(self, code: str) -> int:
        return int(struct.unpack(f"<{code}", self.bytes(struct.calcsize(code)))[0])

    def damaged(self, why: str) -> ModelError:
        return ModelError(f"{self.name} is no file of MXNet's arrays: {why}")

    def array(self) -> np.ndarray[Any, Any] | None:
        magic = self.number("I")
        version = VERSIONS.get(magic, 0)
        if version >= 2 and (kind := self.number("i")) != 0:
            raise self.damaged(f"an array is sparse (storage {kind}): save it as a dense one")
        if version == 0:  # before 0.9: what stands there is the number of dimensions
            rank, code = magic, "I"
        else:
            rank, code = self.number("i"), "q"
        if rank > 32 or rank < -1:
            raise self.damaged(f"an array has {rank} dimensions")
        shape = tuple(self.number(code) for _ in range(max(rank, 0)))
        if rank < 0 or (rank == 0 and version < 3):
            return None  # an array of no shape has no numbers
        self.bytes(8)  # the device that it lay on
        flag = self.number("i")
        if not 0 <= flag < len(DTYPES):
            raise self.damaged(f"an array is of type {flag}")
        dtype = np.dtype(DTYPES[flag])
        count = int(np.prod(shape, dtype=object))
        values = np.frombuffer(self.bytes(count * dtype.itemsize), dtype)
        return values.reshape(shape).copy()


def read_parameters(path: str | Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a file by name, without "arg:" and "aux:" before the names.

    Raises ModelError for what is no such file, and for sparse arrays.
    """
    reader = _Reader(Path(path).read_bytes(), str(path))
    if reader.number("Q") != LIST_MAGIC:
        raise reader.damaged("it does not begin with 0x112")
    reader.bytes(8)
    arrays = [reader.array() for _ in range(reader.number("Q"))]
    names = [
        reader.bytes(reader.number("Q")).decode("utf-8", "replace")
        for _ in range(reader.number("Q"))
    ]
    if len(names) != len(arrays):
        raise reader.damaged(f"it has {len(arrays)} arrays and {len(names)} names")
    return {
        name.removeprefix("arg:").removeprefix("aux:"): array
        for name, array in zip(names, arrays, strict=True)
        if array is not None
    }
