"""Object code loaded into this process: a `Library` without a file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from slipway.codegen.llvm.machine import _llvm

_NUMBERS = itertools.count()


@lru_cache(maxsize=1)
def _jit() -> Any:
    """Return the process-wide ORC engine."""
    llvm = _llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()


class JitLibrary:
    """Loaded object code; `address(symbol)` looks an exported symbol up.

    The code lives as long as this object does.
    """

    def __init__(self, objects: Iterable[bytes], symbols: Iterable[str]) -> None:
        llvm = _llvm()
        builder = llvm.JITLibraryBuilder()
        for data in objects:
            builder.add_object_img(data)
        self._symbols = set(symbols)
        for symbol in self._symbols:
            builder.export_symbol(symbol)
        self._tracker = builder.link(_jit(), f"slipway{next(_NUMBERS)}")

    def address(self, symbol: str) -> int | None:
        """Return the address of an exported symbol, or None where there is none."""
        return int(self._tracker[symbol]) if symbol in self._symbols else None
