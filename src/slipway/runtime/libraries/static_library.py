"""An object file as a module: what a library takes in when it is exported."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from slipway.runtime.load import load_module
from slipway.runtime.module import LibraryModule, Module


class StaticLibrary(Module):
    """The functions of an object file; imported into a module, they are exported with it."""

    type_key = "static_library"

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        super().__init__(names[0] if len(names) == 1 else None)
        self.path = path
        self.object_bytes = path.read_bytes()
        self._names = [str(name) for name in names]
        self._loaded: LibraryModule | None = None

    @property
    def is_dso_exportable(self) -> bool:
        """Whether `export_library` of what imports it links the code: it does."""
        return True

    def function_names(self) -> list[str]:
        """Return the names it was loaded with."""
        return list(self._names)

    def _find_function(self, name: str) -> Callable[..., Any] | None:
        if name not in self._names:
            return None
        if self._loaded is None:
            loaded = load_module(self.path)
            assert isinstance(loaded, LibraryModule)
            self._loaded = loaded
        return self._loaded._find_function(name)


def load_static_library(path: str | os.PathLike[str], func_names: Sequence[str]) -> StaticLibrary:
    """Return the object file at `path`, which holds the compiled functions `func_names`."""
    return StaticLibrary(Path(path), func_names)
