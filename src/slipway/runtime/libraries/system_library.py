"""The functions that are linked into this process, or into libraries it has opened for all."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slipway.runtime.libraries.library import FUNCTION_PREFIX, METADATA_SYMBOL, fill_slots
from slipway.runtime.libraries.native_library import address_of
from slipway.runtime.module import LibraryModule

_MAPS = Path("/proc/self/maps")  # of Linux: the files that are mapped into this process


class ProcessSymbols:
    """What the libraries of this process export: a `Library` of all of them."""

    def __init__(self) -> None:
        self._handles: dict[str, ctypes.CDLL] = {"": ctypes.CDLL(None)}

    def address(self, symbol: str) -> int | None:
        """Return the address of an exported symbol, or None."""
        found = self._address(symbol)
        if found is None and symbol.startswith(FUNCTION_PREFIX) and self._look_again():
            found = self._address(symbol)
        return found

    def _address(self, symbol: str) -> int | None:
        for handle in self._handles.values():
            with contextlib.suppress(AttributeError):
                return address_of(getattr(handle, symbol))
        return None

    def _look_again(self) -> bool:
        """Take in libraries that were opened for one user only since; return whether any were."""
        if not _MAPS.is_file():
            return False
        paths = {line.split(None, 5)[5] for line in _MAPS.read_text().splitlines()
                 if line.endswith(".so") and len(line.split(None, 5)) == 6}  # fmt: skip
        known = len(self._handles)
        for path in paths - self._handles.keys():
            with contextlib.suppress(OSError):
                handle = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
                if hasattr(handle, METADATA_SYMBOL):
                    self._handles[path] = handle
        return len(self._handles) > known


class SystemLibrary(LibraryModule):
    """Compiled functions by name, wherever in the process they are."""

    type_key = "library"

    def _find_function(self, name: str) -> Callable[..., Any] | None:
        found = super()._find_function(name)
        fill_slots(self.library)  # of a library that was opened since
        return found


def system_lib() -> SystemLibrary:
    """Return the module of the compiled functions that the process exports.

    Those of a library are among them once ``ctypes.CDLL(path)`` has opened it; on systems other
    than Linux with ``ctypes.RTLD_GLOBAL``.
    """
    return SystemLibrary(ProcessSymbols())
