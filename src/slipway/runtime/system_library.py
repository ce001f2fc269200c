"""The functions that are linked into this process, or into libraries it has opened for all."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from slipway.runtime.library import fill_slots
from slipway.runtime.module import LibraryModule
from slipway.runtime.native_library import address_of


class ProcessSymbols:
    """What the process's own loader finds: a `Library` of everything that is exported."""

    def __init__(self) -> None:
        self._handle = ctypes.CDLL(None)

    def address(self, symbol: str) -> int | None:
        """Return the address of an exported symbol, or None."""
        try:
            return address_of(getattr(self._handle, symbol))
        except AttributeError:
            return None


class SystemLibrary(LibraryModule):
    """Compiled functions by name, wherever in the process they are."""

    type_key = "library"

    def _find_function(self, name: str) -> Callable[..., Any] | None:
        fill_slots(self.library)  # of a library that was opened since
        return super()._find_function(name)


def system_lib() -> SystemLibrary:
    """Return the module of the compiled functions that the process exports.

    Those of a library are among them once ``ctypes.CDLL(path, ctypes.RTLD_GLOBAL)`` has opened it.
    """
    return SystemLibrary(ProcessSymbols())
