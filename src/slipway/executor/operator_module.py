"""`OperatorModule`: compiled functions, callable when they are for this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from slipway.codegen.compiled import CompiledModule
from slipway.errors import ArtifactError, ExecutionError
from slipway.executor.export import export
from slipway.runtime.artifact import check_runs_here
from slipway.runtime.module import LibraryModule, Module
from slipway.toolchain.elf import ElfFile, is_elf


class OperatorModule(Module):
    """What ``tvm.build`` returns.

    The code is loaded into this process at the first call.  Code for another machine can be looked
    at, saved and exported, but calling it raises ExecutionError.
    """

    type_key = "llvm"

    def __init__(self, compiled: CompiledModule) -> None:
        super().__init__(compiled.entry)
        self.compiled = compiled
        self.type_key = compiled.target.kind.name
        self._loaded: LibraryModule | None = None

    @property
    def target(self) -> Any:
        """The target that the code is for."""
        return self.compiled.target

    def function_names(self) -> list[str]:
        """Return the names of the compiled functions."""
        return list(self.compiled.functions)

    def _find_function(self, name: str) -> Callable[..., Any] | None:
        if name not in self.compiled.functions:
            return None
        return self.loaded()._find_function(name)

    def loaded(self) -> LibraryModule:
        """Return the code loaded into this process.

        Raises ExecutionError when it is for another kind of machine.
        """
        if self._loaded is None:
            from slipway.codegen.jit import JitLibrary

            check_callable_here(self.compiled)
            library = JitLibrary(self.compiled.objects, self.compiled.exported_symbols)
            self._loaded = LibraryModule(library, json.loads(self.compiled.metadata))
        return self._loaded

    def get_source(self, fmt: str = "") -> str:
        """Return the code as text: "ll", "asm" or "c", what the target has; default the first."""
        return self.compiled.get_source(fmt)

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write one file: an object (.o), or source (.ll, .s, .c), by its ending or `fmt`."""
        self.compiled.save(Path(file_name), fmt)

    def _export(self, path: Path, linker: Any, options: Sequence[str] | None) -> Path:
        return export(path, self.compiled, None, linker, options)


def check_callable_here(compiled: CompiledModule) -> None:
    """Raise ExecutionError unless this process can run the code."""
    first = compiled.objects[0]
    what = f"code for {compiled.target.triple}"
    if not is_elf(first):
        problem = "this process loads ELF code only"
    else:
        try:
            check_runs_here(ElfFile(first, what), json.loads(compiled.metadata), what)
            return
        except ArtifactError as error:
            problem = str(error)
    raise ExecutionError(
        f"these functions cannot be called here: {problem} To run them, export_library() and load "
        "the file on the device, over RPC for example."
    )
