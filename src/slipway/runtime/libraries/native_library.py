"""The C runtime in this process: loaded on first use, its errors handed to tvm-ffi."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from slipway import dtypes, errors
from slipway.errors import SlipwayError, ToolchainError
from slipway.toolchain.runtime_library import LIBRARY_NAME, compiled_runtime

_RAISE_SLOT = b"__TVMFFIErrorSetRaisedFromCStr"  # of exported libraries


def tvm_ffi() -> Any:
    """Return the tvm_ffi module, which knows our exception classes from then on."""
    return _tvm_ffi()


@lru_cache(maxsize=1)
def _tvm_ffi() -> Any:
    with _without_extras():
        import tvm_ffi

    for cls in vars(errors).values():
        if isinstance(cls, type) and issubclass(cls, SlipwayError):
            tvm_ffi.register_error(cls.__name__, cls)
    for cls in (
        *(FileNotFoundError, OSError, MemoryError, TimeoutError, ConnectionError),
        *(OverflowError, ArithmeticError, LookupError, PermissionError),
    ):
        tvm_ffi.register_error(cls.__name__, cls)
    # How it spells the types of the user's own, those of `dtypes.register_custom`.
    for name, told in (("name", dtypes.custom_type_name), ("code", dtypes.custom_code)):
        if tvm_ffi.get_global_func(f"dtype.get_custom_type_{name}", allow_missing=True) is None:
            tvm_ffi.register_global_func(f"dtype.get_custom_type_{name}", told)
    # So that errors of exported libraries are raised for its own loader, too.
    raises = address_of(tvm_ffi.LIB.TVMFFIErrorSetRaisedFromCStr)
    tvm_ffi.LIB.TVMFFIEnvModRegisterContextSymbol(_RAISE_SLOT, ctypes.c_void_p(raises))
    with suppress(OSError):  # a library of C++ or Rust has brought the runtime into this process
        _share(ctypes.CDLL(LIBRARY_NAME, mode=os.RTLD_NOW | os.RTLD_NOLOAD), tvm_ffi)
    return tvm_ffi


_FFI_PACKAGE, _FFI_LIBRARY = "apache-tvm-ffi", ("lib", "libtvm_ffi.so")
_METADATA = "importlib.metadata"


@contextmanager
def _without_extras() -> Iterator[None]:
    """Keep this thread's import of tvm_ffi from what it does not need here.

    PyTorch, wherever it is installed: about a second, and its tensors come to us by DLPack all the
    same.  `importlib.metadata`, to look its own library up in the list of its package's files: with
    e-mail, archives and sockets that is half of its import, and the library lies beside it.
    """
    finder, listing = _NoTorch(threading.get_ident()), _Metadata(_METADATA)
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, finder)
    if _METADATA not in sys.modules and _lies_beside():
        sys.modules[_METADATA] = listing
    try:
        yield
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        listing.give_way()


def _lies_beside() -> bool:
    spec = importlib.util.find_spec("tvm_ffi")
    folders = spec.submodule_search_locations if spec else None
    return any(os.path.isfile(os.path.join(folder, *_FFI_LIBRARY)) for folder in folders or ())  # noqa: PTH113, PTH118


class _NoTorch:
    """A finder by what it has: `importlib.abc` would load half of Python's library."""

    def __init__(self, thread: int) -> None:
        self.thread = thread

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname == "torch" and threading.get_ident() == self.thread:
            raise ModuleNotFoundError("PyTorch is not needed here", name=fullname)


class _Metadata(ModuleType):
    """`importlib.metadata` for whoever asks it anything but where tvm_ffi's files are.

    tvm_ffi keeps it, and so may another thread that imports the module at the same time.
    """

    PackageNotFoundError = ModuleNotFoundError  # which the real one is derived from

    def distribution(self, name: str) -> Any:
        if name == _FFI_PACKAGE:
            raise ModuleNotFoundError("its library lies beside it", name=name)
        return self.__getattr__("distribution")(name)

    def __getattr__(self, name: str) -> Any:
        self.give_way()
        return getattr(importlib.import_module(_METADATA), name)

    def give_way(self) -> None:
        if sys.modules.get(_METADATA) is self:
            del sys.modules[_METADATA]


_FFI_FUNCTIONS = (  # slw_ffi_functions of registry.h
    "TVMFFIFunctionGetGlobal",
    "TVMFFIFunctionCall",
    "TVMFFIFunctionSetGlobal",
    "TVMFFIErrorMoveFromRaised",
    "TVMFFIErrorSetRaised",
)


def _share(lib: ctypes.CDLL, ffi: Any) -> None:
    """Give the C runtime tvm-ffi's table of functions, and its errors."""
    addresses = [address_of(getattr(ffi.LIB, name)) for name in _FFI_FUNCTIONS]
    lib.slw_set_ffi_functions((ctypes.c_void_p * len(addresses))(*addresses))
    lib.slw_error_set_sink(ctypes.c_void_p(address_of(ffi.LIB.TVMFFIErrorSetRaisedFromCStr)))


def library_file() -> Path:
    """Return where the library lies; ToolchainError where there is none and none can be built."""
    found = compiled_runtime()
    if found is None:
        from slipway.toolchain import native

        found = native.host_runtime()
    return found


@lru_cache(maxsize=1)
def plain_library() -> ctypes.CDLL:
    """Return the library as it is by itself, without tvm-ffi: its errors stay in it."""
    return ctypes.CDLL(str(library_file()))


def plain_library_or_none() -> ctypes.CDLL | None:
    """Return the library by itself, or None where there is none."""
    try:
        return plain_library()
    except (ToolchainError, OSError):
        return None


class NativeRuntime:
    """The loaded library: `lib` (ctypes), and its functions in the calling convention."""

    def __init__(self) -> None:
        self.path, self.lib = library_file(), plain_library()
        _share(self.lib, tvm_ffi())
        self.lib.slw_devices_setup()

    def has_devices(self, device_type: int) -> bool:
        """Return whether there is a table of functions for a kind of device."""
        find = self.lib.slw_device_find
        find.restype = ctypes.c_void_p
        return find(ctypes.c_int32(device_type)) is not None

    def address(self, symbol: str) -> int:
        """Return the address of one of the library's functions."""
        return address_of(getattr(self.lib, symbol))

    @cache  # noqa: B019 - one instance lives as long as the process
    def packed(self, name: str) -> Any:
        """Return ``slw_packed_<name>`` as a tvm_ffi Function."""
        return tvm_ffi().Function.__from_extern_c__(self.address(f"slw_packed_{name}"))


def address_of(function: Any) -> int:
    """Return the address of a ctypes function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@lru_cache(maxsize=1)
def native_runtime() -> NativeRuntime:
    """Return the C runtime; ToolchainError when this machine has none and cannot build it."""
    return NativeRuntime()


def native_runtime_or_none() -> NativeRuntime | None:
    """Return the C runtime, or None where there is none: kernels then run on one thread."""
    try:
        return native_runtime()
    except (ToolchainError, OSError):
        return None
