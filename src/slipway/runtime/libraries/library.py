"""Compiled code in this process: symbols with addresses, and the slots its surroundings fill."""

from __future__ import annotations

import _ctypes
import ctypes
import fcntl
import itertools
import os
import resource
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from slipway.errors import ArtifactError
from slipway.runtime.libraries.native_library import address_of, native_runtime_or_none, tvm_ffi

FUNCTION_PREFIX = "__tvm_ffi_"
METADATA_SYMBOL = "__slipway_metadata"
GRAPH_SYMBOL = "__slipway_graph"
PARAMS_SYMBOL = "__slipway_params"
MODEL_METADATA_SYMBOL = "__slipway_model_metadata"
DEVICE_CODE_SYMBOL = "__slipway_device_code"

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
_COPIES = itertools.count()  # libraries loaded from memory
# The system's table of open files is as long as the highest number: 4 MB for half a million.
_HIGH_NUMBER = 1 << 13


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
        try:
            if content is None:
                self._handle = _dlopen(str(self.path))
            else:
                self._handle = _load_copy(content)
        except OSError as error:
            if error.errno is not None:  # no room for a copy of it, say; the loader gives a text
                error.filename = error.filename or str(self.path)
                raise
            raise ArtifactError(
                f"the system cannot load {self.path}: {error}. Export the library for this system."
            ) from error
        weakref.finalize(self, _ctypes.dlclose, self._handle._handle).atexit = False

    def address(self, symbol: str) -> int | None:
        """Return the address of an exported symbol, or None."""
        try:
            return address_of(getattr(self._handle, symbol))
        except AttributeError:
            return None


def is_in_process(symbol: str) -> bool:
    """Return whether libraries that this process has opened for all export a symbol."""
    return hasattr(ctypes.CDLL(None), symbol)


def _dlopen(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_LOCAL)


def _load_copy(content: bytes) -> ctypes.CDLL:
    """Load a library from memory."""
    if hasattr(os, "memfd_create"):
        file = _at_high_number(os.memfd_create("slipway-library"))
        try:
            with os.fdopen(os.dup(file), "wb") as out:
                out.write(content)
            return _dlopen(_unused_name(file))
        except OSError:  # some systems forbid running code from nameless files
            pass
        finally:
            os.close(file)
    handle, path = tempfile.mkstemp(prefix="slipway-", suffix=".so")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        return _dlopen(path)
    finally:
        Path(path).unlink()


def _at_high_number(file: int) -> int:
    """Return an open file under a number that no later file is likely to get.

    Whoever looks for the library under its path, as a backtrace does for the names of functions,
    is to find nothing there once the file is closed, and not another file: systems give the lowest
    number that is free.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    try:
        high = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, min(limit // 2, _HIGH_NUMBER))
    except OSError:  # as many are open
        return file
    os.close(file)
    return high


def _unused_name(file: int) -> str:
    """Return a path of an open file that nothing has been loaded under.

    The loader knows a library by the path it was given, and file numbers come back once they are
    closed.  So the path counts: a bit is ``.//`` or ``./``, which the system steps over.
    """
    bits = f"{next(_COPIES):b}"
    return f"/proc/self/{''.join('.//' if bit == '1' else './' for bit in bits)}fd/{file}"


def needs_more(library: Library) -> bool:
    """Return whether a library calls functions by name, or brings kernels of a device."""
    return any(library.address(symbol) for symbol in (*_FFI_SLOTS, DEVICE_CODE_SYMBOL))


def fill_native_slots(library: Library, address: Callable[[str], int]) -> None:
    """Give a library errors, threads and workspace: functions of the C runtime, by name."""
    for slot, name in _NATIVE_SLOTS.items():
        _fill(library, slot, address(name))


def fill_slots(library: Library) -> None:
    """Give a library its surroundings: errors, threads, workspace, global functions."""
    runtime = native_runtime_or_none()
    ffi = tvm_ffi()
    if runtime is not None:
        fill_native_slots(library, runtime.address)
    else:
        raises = address_of(ffi.LIB.TVMFFIErrorSetRaisedFromCStr)
        _fill(library, "__TVMFFIErrorSetRaisedFromCStr", raises)
    for slot, name in _FFI_SLOTS.items():
        _fill(library, slot, address_of(getattr(ffi.LIB, name)))
    carried = device_records(library)
    if carried and runtime is not None:
        runtime.packed("device_code")(carried)
        weakref.finalize(library, runtime.packed("device_drop"), carried).atexit = False


def device_records(library: Library) -> bytes:
    """Return the code of devices that a library carries, as it lies there; nothing of most."""
    code = library.address(DEVICE_CODE_SYMBOL)
    if not code:
        return b""
    size = library.address(f"{DEVICE_CODE_SYMBOL}_size")
    assert size
    return ctypes.string_at(code, ctypes.c_uint64.from_address(size).value)


def _fill(library: Library, slot: str, value: int) -> None:
    address = library.address(slot)
    if address:
        ctypes.c_void_p.from_address(address).value = value
