"""The classic binary format of parameters: ``save_param_dict`` and ``load_param_dict``.

Little-endian: u64 0xF7E58D4F05049CB7, u64 0, u64 n, n names (u64 length, UTF-8), u64 n, n tensors
(u64 0xDD5E40F096B4A13F, u64 0, device i32 i32, ndim i32, dtype u8 u8 u16, i64 shape[ndim],
i64 bytes, data).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.arguments import table_of
from slipway.errors import ArgumentTypeError, ArtifactError
from slipway.runtime.ndarray import (
    PACKED,
    NDArray,
    empty,
    numpy_dtype,
    pack_halves,
    unpack_halves,
)

if TYPE_CHECKING:
    import numpy.typing as npt

_LIST_MAGIC = 0xF7E58D4F05049CB7
_TENSOR_MAGIC = 0xDD5E40F096B4A13F
_MAX_NDIM = 16
_MIN_NAME, _MIN_TENSOR = 8, 40  # bytes that the shortest of each takes


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """Return the bytes of named arrays (NDArray or NumPy), in the mapping's order."""
    return bytearray().join(param_pieces(params))


def param_pieces(params: Mapping[str, Any]) -> list[Any]:
    """Return what `save_param_dict` joins: the arrays are read where they lie."""
    params = table_of(params, "params", "{'weight': array}")
    head = bytearray(struct.pack("<QQQ", _LIST_MAGIC, 0, len(params)))
    for name in params:
        encoded = name.encode()
        head += struct.pack("<Q", len(encoded)) + encoded
    head += struct.pack("<Q", len(params))
    pieces: list[Any] = [head]
    for value in params.values():
        values = value._read() if isinstance(value, NDArray) else np.asarray(value)
        values = np.asarray(values, order="C")
        code, bits, lanes = dtypes.parse(dtypes.canonical(values.dtype))
        pieces.append(
            struct.pack("<QQii", _TENSOR_MAGIC, 0, 1, 0)
            + struct.pack("<iBBH", values.ndim, dtypes.DLPACK_CODE[code], bits, lanes)
            + struct.pack(f"<{values.ndim}q", *values.shape)
            + struct.pack("<q", values.nbytes)
        )
        pieces.append(_raw(values))
    return pieces


def _raw(values: npt.NDArray[Any]) -> Any:
    """Return the bytes as kernels read them.

    Four-bit integers are packed, and zeros fill their tensor up: the device's runtime counts a
    byte for each.
    """
    if values.dtype.name in PACKED:
        return pack_halves(values).tobytes().ljust(values.nbytes, b"\0")
    return values.reshape(-1).view(np.uint8)


class _Reader:
    """Takes fields off the front of the bytes; ArtifactError when they end too soon."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ArgumentTypeError(
                f"parameters are read from the bytes of save_param_dict, not from {data!r:.80}"
            )
        self._data = memoryview(data).cast("B")
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes were not taken yet."""
        return len(self._data) - self._at

    def take(self, size: int) -> memoryview:
        if size < 0 or self._at + size > len(self._data):
            raise ArtifactError(
                "the parameters are truncated: the data ends before what it announces. Write them "
                "again with save_param_dict, and copy them in binary mode."
            )
        piece = self._data[self._at : self._at + size]
        self._at += size
        return piece

    def need(self, count: int, size: int) -> None:
        """Raise ArtifactError unless so many pieces of at least `size` bytes can follow."""
        if count * size > len(self._data) - self._at:
            self.take(count * size)

    def unpack(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))


def _damaged(why: str) -> ArtifactError:
    return ArtifactError(
        f"the parameters cannot be read: {why}. They must come from save_param_dict."
    )


def read_params(data: bytes | bytearray | memoryview) -> dict[str, npt.NDArray[Any]]:
    """Return the named arrays as NumPy views of `data`; ArtifactError if it is damaged."""
    reader = _Reader(data)
    magic, _, count = reader.unpack("<QQQ")
    if magic != _LIST_MAGIC:
        raise _damaged("they do not begin as parameters do")
    reader.need(count, _MIN_NAME + _MIN_TENSOR)
    names: list[str] = []
    for _ in range(count):
        (length,) = reader.unpack("<Q")
        try:
            names.append(str(reader.take(length), "utf-8"))
        except UnicodeDecodeError as error:
            raise _damaged("a name is no UTF-8 text") from error
    if reader.unpack("<Q")[0] != count:
        raise _damaged("names and tensors differ in number")
    if len(set(names)) != count:
        raise _damaged("two tensors have one name")
    found = {name: _read_tensor(reader) for name in names}
    if left := reader.left:
        raise _damaged(f"{left} bytes follow the last tensor, which belong to none")
    return found


def _read_tensor(reader: _Reader) -> npt.NDArray[Any]:
    magic, _, _, _, ndim, code, bits, lanes = reader.unpack("<QQiiiBBH")
    if magic != _TENSOR_MAGIC or not 0 <= ndim <= _MAX_NDIM:
        raise _damaged("a tensor does not begin as tensors do")
    shape = reader.unpack(f"<{ndim}q")
    (size_bytes,) = reader.unpack("<q")
    try:
        dtype = dtypes.from_dlpack(code, bits, lanes)
        numpy_dtype(dtype)
    except (KeyError, ValueError, TypeError) as error:
        raise _damaged("a tensor has an unknown dtype") from error
    if lanes != 1:
        raise _damaged(f"a tensor has vectors of {lanes} lanes as elements")
    expected = dtypes.bytes_of(dtype)
    for extent in shape:
        expected *= extent
    if min(shape, default=0) < 0 or expected != size_bytes:
        raise _damaged("a tensor's size does not fit its shape")
    data = reader.take(size_bytes)
    if dtype in PACKED:
        packed = np.frombuffer(data, np.uint8, dtypes.array_bytes(expected, dtype))
        return unpack_halves(packed, shape, dtype)
    return np.frombuffer(data, dtype=numpy_dtype(dtype)).reshape(shape)


def load_param_dict(data: bytes | bytearray | memoryview) -> dict[str, NDArray]:
    """Return the named arrays in `data` as NDArrays; ArtifactError if it is damaged."""
    loaded: dict[str, NDArray] = {}
    for name, values in read_params(data).items():
        loaded[name] = empty(values.shape, dtypes.canonical(values.dtype)).copyfrom(values)
    return loaded


def save_param_dict_to_file(params: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write ``save_param_dict(params)`` to a file."""
    Path(path).write_bytes(save_param_dict(params))


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, NDArray]:
    """Read what `save_param_dict_to_file` wrote."""
    return load_param_dict(Path(path).read_bytes())
