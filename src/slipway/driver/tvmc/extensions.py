"""``tvmc.extensions``: accelerators that a package of the user's brings.

A folder given with ``--experimental-tvm-extension`` holds a package ``tvm_extension``; each class
in it, or in its modules, that derives from `TVMCExtension` tells UMA backends. A target begins with
their names: ``--target "my_ai_hw,c"``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from types import ModuleType

from slipway.compiler.accelerators.uma import UMABackend
from slipway.driver.tvmc.model import TVMCException
from slipway.errors import reason_of

__all__ = ["TVMCExtension", "get_extensions", "load_extensions"]

_PACKAGE = "tvm_extension"
_loaded: dict[type[TVMCExtension], TVMCExtension] = {}
_backends: dict[str, UMABackend] = {}


class TVMCExtension(ABC):
    """Base of what a package adds to tvmc."""

    @abstractmethod
    def uma_backends(self) -> list[UMABackend]:
        """Return the accelerators, which are registered when the extension is loaded."""


def get_extensions() -> Iterator[TVMCExtension]:
    """Return the extensions that are loaded."""
    yield from _loaded.values()


def backends() -> dict[str, UMABackend]:
    """Return the accelerators of all extensions by the names that targets begin with."""
    return _backends


def load_extensions(paths: Sequence[str]) -> None:
    """Import the packages ``tvm_extension`` of these folders, and register their accelerators.

    Raises TVMCException for a folder without such a package, and with the reason for one whose
    import or extension fails.
    """
    for path in paths:
        found = [one.name for one in pkgutil.iter_modules([path]) if one.name == _PACKAGE]
        if not found:
            raise TVMCException(
                f"--experimental-tvm-extension {path}: it holds no package {_PACKAGE}; give the "
                f"folder that {_PACKAGE}/ lies in"
            )
        for kind in _classes(path):
            _load(kind)


def _classes(path: str) -> list[type[TVMCExtension]]:
    """Return the extensions' classes in a folder's package and its modules."""
    sys.path.insert(0, path)
    for name in [m for m in sys.modules if m == _PACKAGE or m.startswith(f"{_PACKAGE}.")]:
        del sys.modules[name]  # of another folder
    try:
        package = importlib.import_module(_PACKAGE)
        modules = [package]
        if hasattr(package, "__path__"):
            inner = pkgutil.walk_packages(package.__path__, f"{_PACKAGE}.")
            modules += [importlib.import_module(one.name) for one in inner]
        return list(dict.fromkeys(kind for m in modules for kind in _extensions_of(m)))
    except Exception as error:  # the user's own code
        raise TVMCException(f"{path}/{_PACKAGE} cannot be imported: {reason_of(error)}") from error
    finally:
        sys.path.remove(path)


def _extensions_of(module: ModuleType) -> Iterator[type[TVMCExtension]]:
    for _, kind in inspect.getmembers(module, inspect.isclass):
        if issubclass(kind, TVMCExtension) and not inspect.isabstract(kind):
            yield kind


def _load(kind: type[TVMCExtension]) -> None:
    try:
        extension = kind()
        told = extension.uma_backends()
        for backend in told:
            backend.register()
    except Exception as error:
        raise TVMCException(f"the extension {kind.__name__} fails: {reason_of(error)}") from error
    _loaded[kind] = extension
    _backends.update({backend.target_name: backend for backend in told})
