"""`OperatorModule`: compiled functions, callable when they are for this machine."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.arguments import file_to_write
from slipway.codegen.compiled import CompiledModule
from slipway.codegen.device_code import DeviceCode
from slipway.compiler.artifact.system_library import linkable_object
from slipway.compiler.imported import with_imports
from slipway.errors import ArtifactError, ExecutionError
from slipway.runtime.artifact import check_runs_here
from slipway.runtime.device_module import DeviceModule
from slipway.runtime.libraries.library import DsoLibrary, is_in_process
from slipway.runtime.module import LibraryModule, Module
from slipway.toolchain.elf import ElfFile, is_elf
from slipway.toolchain.link import linked_bytes


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
        self.model: Module | None = None  # whose parameters it carries
        if compiled.device is not None:
            own = compiled.device
            self.imported_modules += [device_module(code) for code in (own, *own.others)]
        self._loading = threading.Lock()

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
        """Return the code loaded into this process, as an exported file of it would be.

        The system's loader places a library as a whole, however full the process is. A loader of
        LLVM's puts code and data wherever there is room, and ends the process where they come to
        lie too far apart. C functions that the code calls by name may be those of libraries that
        were opened for all, ``ctypes.CDLL(path, ctypes.RTLD_GLOBAL)``. Raises ExecutionError when
        the code is for another kind of machine.
        """
        with self._loading:
            if self._loaded is None:
                compiled = self.compiled
                check_callable_here(compiled)
                content = linked_bytes(
                    compiled.library_objects,
                    compiled.target.triple,
                    compiled.entry,
                    may_need=is_in_process,
                )
                library = DsoLibrary(compiled.entry, content)
                self._loaded = LibraryModule(library, json.loads(compiled.metadata))
            return self._loaded

    @property
    def is_dso_exportable(self) -> bool:
        """Whether `export_library` links the module's code."""
        return True

    def get_source(self, fmt: str = "") -> str:
        """Return the code as text: "ll", "asm" or "c", what the target has; default the first."""
        return self.compiled.get_source(fmt)

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write one file: an object (.o), or source (.ll, .s, .c), by its ending or `fmt`."""
        path = file_to_write(file_name, "the file to save", "kernel.o")
        if (fmt or path.suffix.lstrip(".")) in ("o", "obj"):
            path.write_bytes(linkable_object(self.compiled))
        else:
            self.compiled.save(path, fmt)

    def _export(self, path: Path, linker: Any, options: Sequence[str] | None) -> Path:
        if self.model is not None:
            return self.model._export(path, linker, options)
        whole = with_imports(self.compiled, self.imported_modules)
        from slipway.compiler.artifact.export import export

        return export(path, whole, None, linker, options)

    def shared_params(self) -> Mapping[str, Any] | None:
        """Return the parameters of the model that the module carries."""
        return None if self.model is None else self.model.shared_params()


def device_module(code: DeviceCode) -> DeviceModule:
    """Return the code of a device as a module beside that of the host."""
    names = [kernel.name for kernel in code.kernels]
    kind = code.target.kind
    return DeviceModule(
        kind.name, kind.device_type, code.code, names, code.metadata(), code.sources
    )


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
