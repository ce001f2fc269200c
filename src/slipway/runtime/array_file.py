"""Large arrays in files of their own, so that weights nobody reads now take no memory.

A file has no name: it goes with the last array that looks into it.  What was read of it stays
resident until `release`, and comes back from the system's cache when it is read again.  Where no
file can be had (a full disk), arrays stay where they are.
"""

from __future__ import annotations

import ctypes
import mmap
import tempfile
import weakref
from contextlib import suppress
from functools import partial
from typing import IO, Any, BinaryIO

import numpy as np

Array = np.ndarray[Any, Any]
MIN_BYTES = 1 << 20
_CHUNK = 1 << 20
_OFFSET = ctypes.c_long  # off_t
_FAILED = ctypes.c_void_p(-1).value  # MAP_FAILED


def in_file(array: Array) -> Array:
    """Return an array of the same values that lies in a file, where it is large enough."""
    if array.nbytes < MIN_BYTES or array.dtype.hasobject or _mapping(array) is not None:
        return array
    contiguous = np.asarray(array, order="C")
    with suppress(OSError), tempfile.TemporaryFile(prefix="slipway-") as file:
        file.write(contiguous.reshape(-1).view(np.uint8).data)
        file.flush()
        return _opened(file, contiguous.nbytes).view(contiguous.dtype).reshape(contiguous.shape)
    return array


def range_of(source: BinaryIO, offset: int, size: int) -> Array | None:
    """Return a copy of some bytes of an open file; None where there are fewer, or no room."""
    with suppress(OSError), tempfile.TemporaryFile(prefix="slipway-") as file:
        source.seek(offset)
        left = size
        while left:
            chunk = source.read(min(left, _CHUNK))
            if not chunk:
                return None
            file.write(chunk)
            left -= len(chunk)
        file.flush()
        return _opened(file, size)
    return None


def release(part: object) -> None:
    """Let go of the memory of an array in a file, or of bytes of one; its values stay."""
    found = _mapping(part)
    if found is not None:
        found.release()


class _Mapping:
    """A file that is seen as bytes; Python's own `mmap` would keep it open, and 1,024 are."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, _OFFSET]
        address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        if address in (None, _FAILED):
            raise OSError(ctypes.get_errno(), "a file cannot be mapped")
        whole = (ctypes.c_void_p(address), ctypes.c_size_t(size))
        self._advise = partial(libc.madvise, *whole)
        # At the end of Python others may still read; the system takes what is left.
        weakref.finalize(self, libc.munmap, *whole).atexit = False
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (size,), "data": (address, True),
        }  # fmt: skip

    def release(self) -> None:
        if hasattr(mmap, "MADV_DONTNEED"):
            self._advise(mmap.MADV_DONTNEED)


def _opened(file: IO[bytes], size: int) -> Array:
    return np.asarray(_Mapping(file, size))


def _mapping(part: object) -> _Mapping | None:
    while isinstance(part, np.ndarray | memoryview):
        part = part.base if isinstance(part, np.ndarray) else part.obj
    return part if isinstance(part, _Mapping) else None
