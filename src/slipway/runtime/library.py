"""Compiled code in this process: symbols with addresses, and the slots its surroundings fill."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path
from typing import IO, Protocol, runtime_checkable

from slipway.errors import ArtifactError
from slipway.runtime.native_library import address_of, native_runtime_or_none, tvm_ffi

FUNCTION_PREFIX = "__tvm_ffi_"
METADATA_SYMBOL = "__slipway_metadata"
GRAPH_SYMBOL = "__slipway_graph"
PARAMS_SYMBOL = "__slipway_params"

# Slot -> function of the native runtime that fills it.
_NATIVE_SLOTS = {
    "__TVMFFIErrorSetRaisedFromCStr": "slw_error_set",
    "__slipway_parallel_launch": "slw_parallel_launch",
    "__slipway_workspace_alloc": "slw_workspace_alloc",
    "__slipway_workspace_free": "slw_workspace_free",
}
# Slot -> function of tvm-ffi; the error slot only where there is no native runtime.
_FFI_SLOTS = {
    "__TVMFFIFunctionGetGlobal": "TVMFFIFunctionGetGlobal",
    "__TVMFFIFunctionCall": "TVMFFIFunctionCall",
}


@runtime_checkable
class Library(Protocol):
    """Code that has been loaded or compiled into this process.

    An object of this kind keeps the code in place for as long as it lives.
    """

    def address(self, symbol: str) -> int | None:
        """Return the address of an exported symbol, or None."""


class DsoLibrary:
    """A shared library opened with the system's loader.

    Given `content`, that is loaded, and `path` only names it: the system's loader takes a file
    whose name it has seen for the library it knows, even when the file is a new one.
    """

    def __init__(self, path: str | os.PathLike[str], content: bytes | None = None) -> None:
        self.path = Path(path).resolve()
        self._file: IO[bytes] | None = None
        name = str(self.path)
        if content is not None:
            self._file, name = _private_copy(content)
        try:
            self._handle = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise ArtifactError(
                f"the system cannot load {self.path}: {error}. Export the library for this system."
            ) from error

    def address(self, symbol: str) -> int | None:
        """Return the address of an exported symbol, or None."""
        try:
            return address_of(getattr(self._handle, symbol))
        except AttributeError:
            return None


def _private_copy(content: bytes) -> tuple[IO[bytes], str]:
    """Return a file with this content, and a path to it that no other library has had."""
    if hasattr(os, "memfd_create"):
        file = os.fdopen(os.memfd_create("slipway-library"), "wb")
        path = f"/proc/self/fd/{file.fileno()}"
        if os.access(path, os.R_OK):
            file.write(content)
            file.flush()
            return file, path
        file.close()
    named = tempfile.NamedTemporaryFile(prefix="slipway-", suffix=".so")  # noqa: SIM115
    named.write(content)
    named.flush()
    return named, named.name


def fill_slots(library: Library) -> None:
    """Give a library its surroundings: errors, threads, workspace, global functions."""
    runtime = native_runtime_or_none()
    ffi = tvm_ffi()
    for slot, name in _NATIVE_SLOTS.items():
        if runtime is not None:
            _fill(library, slot, runtime.address(name))
        elif slot == "__TVMFFIErrorSetRaisedFromCStr":
            _fill(library, slot, address_of(ffi.LIB.TVMFFIErrorSetRaisedFromCStr))
    for slot, name in _FFI_SLOTS.items():
        _fill(library, slot, address_of(getattr(ffi.LIB, name)))


def _fill(library: Library, slot: str, value: int) -> None:
    address = library.address(slot)
    if address:
        ctypes.c_void_p.from_address(address).value = value


def read_data(library: Library, symbol: str, size_bytes: int) -> bytes | None:
    """Return `size_bytes` bytes at a data symbol, or None if there is no such symbol."""
    address = library.address(symbol)
    return None if not address else ctypes.string_at(address, size_bytes)
