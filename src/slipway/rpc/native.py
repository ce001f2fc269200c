"""The C client of the runtime library, bound with ctypes."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import sys
from functools import lru_cache
from typing import Any

from slipway.toolchain import native

DONE = 0
FAILED = 1
NEEDS_MEMORY = 2
CALLBACK = 3
OUTPUT = 4
UNFIT = 5
INTERRUPTED = -1
TIMEOUT = -2
LOST = -3

_U16, _U32, _U64, _INT, _PTR = (
    ctypes.c_uint16,
    ctypes.c_uint32,
    ctypes.c_uint64,
    ctypes.c_int,
    ctypes.c_void_p,
)
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "slw_rpc_client_new": (_PTR, [_INT, _U32, _U32]),
    "slw_rpc_client_free": (None, [_PTR]),
    "slw_rpc_client_request": (_PTR, [_PTR, ctypes.POINTER(_U32)]),
    "slw_rpc_client_reply": (_PTR, [_PTR]),
    "slw_rpc_client_buffer": (_PTR, [_PTR, ctypes.POINTER(_U64)]),
    "slw_rpc_client_set_timeout": (None, [_PTR, _U32]),
    "slw_rpc_client_post": (_U32, [_PTR, _U16, _U16, _U32]),
    "slw_rpc_client_collect": (_INT, [_PTR, _U32]),
    "slw_rpc_client_call": (_INT, [_PTR, _U16, _U32]),
    "slw_rpc_client_send_data": (_INT, [_PTR, _U16, _U32, _U32, _PTR, _U64]),
    "slw_rpc_client_receive_data": (_INT, [_PTR, _U16, _U32, _PTR, _U64]),
    "slw_rpc_client_data_size": (_U64, [_PTR]),
    "slw_rpc_client_set_memory": (None, [_PTR, _PTR, _U64]),
    "slw_rpc_client_answer": (_INT, [_PTR, _U16, _U32, _U32, _U32]),
    "slw_rpc_client_collect_data": (_INT, [_PTR, _U32, _PTR, _U64]),
    "slw_rpc_client_take_ids": (_U32, [_PTR, _U32]),
    "slw_rpc_client_exchange": (_INT, [_PTR, _PTR, _U64, _U32, _U32]),
    "slw_rpc_client_batch": (_PTR, [_PTR, ctypes.POINTER(_U64)]),
    "slw_rpc_client_continue": (_INT, [_PTR]),
}
STATUS_BASE = 16  # of what `call_plain` returns in an opaque pointer
_CALLS_BEFORE_FFI = 64
_LARGE_BYTES = 1 << 28
_WRITABLE = 0x200  # PyBUF_WRITE


@lru_cache(maxsize=1)
def library() -> Any:
    """Return the runtime library with the client's functions declared."""
    loaded = ctypes.CDLL(str(native.host_runtime()))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded


_asked = itertools.count(1)


def call_plain() -> Any | None:
    """Return the client's call with plain numbers, as a function of the calling convention.

    It takes the client, the function's handle, timeout_ms and the arguments, several times faster
    than ctypes would; other threads run meanwhile.  None as long as it would not pay: it needs
    tvm-ffi's package, which imports what frameworks there are, and that may take a second.
    """
    if "tvm_ffi" not in sys.modules and next(_asked) < _CALLS_BEFORE_FFI:
        return None
    return _call_plain()


@lru_cache(maxsize=1)
def _call_plain() -> Any:
    import tvm_ffi

    address = ctypes.cast(library().slw_rpc_client_call_plain, _PTR).value
    function = tvm_ffi.Function.__from_extern_c__(address)
    function.release_gil = True
    return function


def memory_at(address: int, size: int) -> memoryview:
    """Return `size` bytes of memory at `address`, writable, owned by someone else."""
    # An array of ctypes would be a type for each size, kept for ever.
    make = ctypes.pythonapi.PyMemoryView_FromMemory
    make.restype, make.argtypes = ctypes.py_object, [_PTR, ctypes.c_ssize_t, _INT]
    made: memoryview = make(address, size, _WRITABLE)
    return made


def unfilled(size: int) -> bytearray:
    """Return `size` bytes that take memory as they are written; MemoryError if that many cannot be.

    A device that announces much and sends little costs nothing.
    """
    make = ctypes.pythonapi.PyByteArray_FromStringAndSize
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_char_p, ctypes.c_ssize_t]
    if size >= _LARGE_BYTES:  # where making it fails, CPython leaves a half-made object behind
        try:
            mmap.mmap(-1, size).close()
        except (OSError, OverflowError, ValueError) as error:
            raise MemoryError from error
    made: bytearray = make(None, size)
    return made
