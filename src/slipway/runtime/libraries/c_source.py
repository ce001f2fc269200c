"""C as a module: what a code generator of the user's returns (``runtime.CSourceModuleCreate``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from slipway.errors import ExecutionError


class CSourceModule:
    """Text of C; `relay.build` compiles it where it comes from ``relay.ext.<name>``."""

    type_key = "c"
    is_dso_exportable = True

    def __init__(
        self, code: str, fmt: str, func_names: Sequence[str], const_vars: Sequence[str]
    ) -> None:
        self.format, self.const_vars = fmt, [str(name) for name in const_vars]
        self._code, self._names = str(code), [str(name) for name in func_names]
        self.imported_modules: list[object] = []

    def get_source(self, fmt: str = "") -> str:
        """Return the text; there is no other form of it."""
        if fmt not in ("", "c", self.format):
            raise ExecutionError(f"a module of C has no source in format {fmt!r}: leave it out")
        return self._code

    def function_names(self) -> list[str]:
        """Return the names of its functions, as they were given."""
        return list(self._names)

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the text to a file."""
        Path(file_name).write_text(self.get_source(fmt), encoding="utf-8")

    def __getitem__(self, name: str) -> None:
        raise ExecutionError(
            f"{name!r} is a function in C that is not compiled: return the module from a code "
            "generator, or compile what save() writes and load that with runtime.load_module"
        )

    get_function = __getitem__


def create(
    code: str, fmt: str = "c", func_names: Sequence[str] = (), const_vars: Sequence[str] | None = ()
) -> CSourceModule:
    """Return C as a module, with the names of its functions and of the constants it takes."""
    return CSourceModule(code, fmt, func_names, const_vars or ())
