"""Modules: things that hand out functions by name, and can be saved or exported."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from slipway.arguments import path_of, text_of
from slipway.errors import ArgumentTypeError, ArgumentValueError, ExecutionError, did_you_mean
from slipway.runtime.devices import Device
from slipway.runtime.function_table import MAIN, FunctionTable
from slipway.runtime.graph.input_values import call_kernel
from slipway.runtime.libraries.library import FUNCTION_PREFIX, Library, fill_slots
from slipway.runtime.libraries.native_library import (
    native_runtime,
    native_runtime_or_none,
    tvm_ffi,
)
from slipway.runtime.packed_func import (
    PackedFunc,
    get_global_func,
    register_library_functions,
    to_ffi_function,
)
from slipway.runtime.timing import BenchmarkResult


class Module(FunctionTable):
    """Base of all modules: compiled libraries, graph executors, remote modules.

    A kind implements `_find_function` (a callable or None) and `function_names`; `type_key` names
    the kind, `entry_name` is what calling the module itself calls.
    """

    type_key = "module"

    def __init__(self, entry_name: str | None = None) -> None:
        self.entry_name = entry_name or MAIN
        self.imported_modules = []
        self._functions = {}

    def __tvm_ffi_object__(self) -> Any:
        """Return a module of the C runtime that C++ and Rust can take, and that asks this one."""

        def finder(name: str) -> Any:
            return self._lookup(name, query_imports=True)

        return native_runtime().packed("module_wrap")(self.type_key, to_ffi_function(finder))

    def function_names(self) -> list[str]:
        """Return the names of the module's own functions."""
        return []

    def shared_params(self) -> Mapping[str, Any] | None:
        """Return the parameters of the model that the module carries, None where it has none."""
        return None

    def get_function(self, name: str, query_imports: bool = False) -> Callable[..., Any]:
        """Return the function `name`; with `query_imports` also look into imported modules.

        Raises AttributeError if there is none.
        """
        text_of(name, "the name of a function", "'main'")
        found = self._lookup(name, query_imports)
        if found is None:
            names = self.function_names()
            known = f" It has: {', '.join(names)}." if names else ""
            raise AttributeError(
                f"the module has no function {name!r}.{did_you_mean(name, names)}{known}"
            )
        return found

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if not isinstance(name, str):
            raise ArgumentValueError("functions of a module are found by name: module['name'].")
        return self.get_function(name)

    def __call__(self, *args: Any) -> Any:
        """Call the entry function."""
        entry = self._functions.get(MAIN) or self.get_function(MAIN)
        return entry(*args)

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Return whether the module has a function `name`."""
        return self._lookup(name, query_imports) is not None

    @property
    def is_dso_exportable(self) -> bool:
        """Whether `export_library` links the module's code: it is not in a library yet."""
        return False

    def import_module(self, module: Module) -> None:
        """Make another module's functions available through `query_imports`."""
        if not isinstance(module, Module):
            raise ArgumentTypeError(f"only modules can be imported, not {type(module).__name__}.")
        self.imported_modules.append(module)

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str | Callable[..., Any] = "",
        ctx: Device | None = None,
    ) -> Callable[..., BenchmarkResult]:
        """Return a function that takes `func_name`'s arguments and measures its runs.

        One run warms up; then `repeat` measurements of `number` runs each, where `number` grows
        until a measurement lasts `min_repeat_ms`.  `f_preproc`, a function or the name of a global
        one, is called with the arguments before each measurement.  Times are in seconds, taken in
        C next to the call.
        """
        dev = ctx if dev is None else dev  # `ctx` is its name in TVM 0.6
        if dev is None:
            raise ArgumentTypeError("time_evaluator needs the device that it times on, as cpu(0).")
        if not isinstance(dev, Device):
            raise ArgumentTypeError(f"time_evaluator times on a device, as cpu(0); got {dev!r}.")
        dev.check()
        function = to_ffi_function(self.get_function(func_name, query_imports=True))
        preproc = None
        if f_preproc:
            before = get_global_func(f_preproc) if isinstance(f_preproc, str) else f_preproc
            assert before is not None
            preproc = to_ffi_function(before)
        options = (
            number,
            repeat,
            min_repeat_ms,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
            preproc,
        )
        evaluate = PackedFunc(native_runtime().packed("time_evaluate"))

        def evaluator(*args: Any) -> BenchmarkResult:
            blob = call_kernel(partial(evaluate, function, *options), args)
            return BenchmarkResult(struct.unpack(f"<{len(blob) // 8}d", blob))

        return evaluator

    def get_source(self, fmt: str = "") -> str:
        """Return the module's source in a format ("ll", "asm", "c"); "" if it has none."""
        return ""

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the module's code to a file, in the format that its suffix or `fmt` names."""
        raise ExecutionError(
            f"a module of kind {self.type_key!r} has no source code or object to save; use "
            "export_library on what tvm.build returned."
        )

    def export_library(
        self,
        file_name: str | os.PathLike[str],
        fcompile: Any = None,
        cc: Any = None,
        options: Sequence[str] | None = None,
        params_file: str | os.PathLike[str] | None = None,
        **_: Any,
    ) -> Path:
        """Write the module to a library or an artifact that `load_module` reads.

        The name's ending says which: `executor.export.export` lists them.  `fcompile` and `cc` both
        replace the linker: a compiler's path, or a function ``f(output, objects, options=None)``.
        A ``.wasm`` of a model may leave its parameters to `params_file`, which a page loads apart.
        """
        path = path_of(file_name, "the library to write", "model.tar")
        if params_file is not None:
            apart = path_of(params_file, "params_file", "model.params")
            return self._export_apart(path, apart, fcompile or cc, options)
        return self._export(path, fcompile or cc, options)

    def _export(self, path: Path, linker: Any, options: Sequence[str] | None) -> Path:
        """Write the module to `path`.  Raises ExecutionError for a kind that cannot be written."""
        raise ExecutionError(
            f"a module of kind {self.type_key!r} cannot be exported; use export_library on what "
            "tvm.build or relay.build returned."
        )

    def _export_apart(
        self, path: Path, params_file: Path, linker: Any, options: Sequence[str] | None
    ) -> Path:
        """Write the module to `path`, and its parameters to `params_file`."""
        raise ExecutionError(
            f"params_file={str(params_file)!r}: a module of kind {self.type_key!r} has no "
            "parameters to write apart; a model that relay.build compiled for "
            '"llvm -mtriple=wasm32" has.'
        )

    def __repr__(self) -> str:
        return f"<Module {self.type_key} with {', '.join(self.function_names()) or 'no functions'}>"


class KernelFunction(PackedFunc):
    """A compiled function; arrays of NumPy's default dtypes are converted to what it takes."""

    __slots__ = ()

    def __call__(self, *args: Any) -> Any:
        """Call it; see `call_kernel`."""
        return call_kernel(super().__call__, args)


class LibraryModule(Module):
    """The compiled functions of a `Library` (a loaded file, or code just compiled).

    `metadata` is the library's ``__slipway_metadata`` as a dictionary.
    """

    type_key = "library"

    def __init__(self, library: Library, metadata: dict[str, Any] | None = None) -> None:
        self.metadata = metadata or {}
        names = [str(name) for name in self.metadata.get("functions", ())]
        entry = self.metadata.get("entry") or (names[0] if len(names) == 1 else None)
        super().__init__(entry)
        self.library = library
        self._names = names
        if library.address("__TVMFFIFunctionGetGlobal"):  # code that calls functions by name
            register_library_functions()
        fill_slots(library)

    def function_names(self) -> list[str]:
        """Return the names that the metadata lists."""
        return list(self._names)

    def _find_function(self, name: str) -> Callable[..., Any] | None:
        address = self.library.address(FUNCTION_PREFIX + name)
        if not address:
            return None
        make = tvm_ffi().Function.__from_extern_c__
        needed = (self.library, self.imported_modules)  # the latter hold the kernels of a device
        function = make(address, keep_alive_object=needed)
        runtime = native_runtime_or_none()
        if runtime is not None:  # it says so of code that fails and sets no error
            function = runtime.packed("function")(address, function)
        return KernelFunction(function)

    def _export(self, path: Path, linker: Any, options: Sequence[str] | None) -> Path:
        """Write a loaded library again; only a plain copy of its file is possible."""
        own = getattr(self.library, "path", None)
        if own is None or Path(own).suffix != path.suffix:
            return super()._export(path, linker, options)
        from slipway.toolchain.link import write_file

        try:
            content = Path(own).read_bytes()
        except OSError as error:
            raise ExecutionError(
                f"cannot export the module again: the file {own} that it was loaded from is gone "
                f"({error.strerror})"
            ) from error
        write_file(path, content)
        return path
