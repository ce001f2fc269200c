"""Large arrays in files of their own, so that weights nobody reads now take no memory.

A file has no name: it goes with the last array that looks into it.  What was read of it stays
resident until `release`, and comes back from the system's cache when it is read again.  Where no
file can be had (a full disk), arrays stay where they are.
"""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import tempfile
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
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


def contents_of(path: Path) -> bytes | memoryview:
    """Return the bytes of a file; a large one is read where it lies, and must stay as it is."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size >= MIN_BYTES:
            with suppress(OSError):
                return _opened(file, size).data
        return file.read()


def range_of(source: BinaryIO, offset: int, size: int) -> Array | None:
    """Return a copy of some bytes of an open file; None where there are fewer, or no room."""
    with suppress(OSError), tempfile.TemporaryFile(prefix="slipway-") as file:
        done = _sent(source, offset, size, file.fileno())
        source.seek(offset + done)
        file.seek(done)
        while done < size:
            chunk = source.read(min(size - done, _CHUNK))
            if not chunk:
                return None
            file.write(chunk)
            done += len(chunk)
        file.flush()
        return _opened(file, size)
    return None


def _sent(source: BinaryIO, offset: int, size: int, into: int) -> int:
    """Let the system copy between two files, which is half the work; return how many bytes it did.

    Whatever is no file itself (one in memory, one that unpacks another), and systems that send to
    sockets only, leave all to be done.
    """
    done = 0
    if not isinstance(source, io.BufferedReader) or not isinstance(source.raw, io.FileIO):
        return done
    with suppress(OSError, AttributeError):
        while done < size:
            count = os.sendfile(into, source.fileno(), offset + done, size - done)
            if not count:
                break
            done += count
    return done


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
