"""Finding a module's functions by name, here and on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MAIN = "__tvm_main__"  # the classic name of a module's entry


class FunctionTable:
    """Functions by name, each looked for once; imported modules are asked after the module's own.

    What derives from it implements `_find_function` (a callable or None) and has the attributes
    below; `entry_name` is what `MAIN` stands for.
    """

    __slots__ = ()
    entry_name: str
    imported_modules: list[Any]
    _functions: dict[str, Callable[..., Any]]

    def _find_function(self, name: str) -> Callable[..., Any] | None:
        """Return the module's own function `name`, or None."""
        raise NotImplementedError

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Return whether there is a function `name`."""
        return self._lookup(name, query_imports) is not None

    def _lookup(self, name: str, query_imports: bool) -> Callable[..., Any] | None:
        found = self._functions.get(name)
        if found is None:
            found = self._find_function(self.entry_name if name == MAIN else name)
            if found is not None:
                self._functions[name] = found
        if found is None and query_imports:
            for module in self.imported_modules:
                found = module._lookup(name, query_imports)
                if found is not None:
                    break
        return found
