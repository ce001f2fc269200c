"""Names that are looked up on first use (PEP 562): the facades of packages, and `Late` functions.

A facade is a module without code of its own: a table of names, each with the module that holds it.
A name that stands for a module can also be imported: ``from slipway.te.hybrid import script``.
Nothing is loaded before a name is used::

    _HOMES = {**by_module({"slipway.te.declare": "compute var"}), "build": "slipway.driver:build"}
    __getattr__, __dir__ = offer(__name__, _HOMES)
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar


def by_module(table: Mapping[str, str]) -> dict[str, str]:
    """Return name -> "module:name" for a table module -> names between blanks."""
    return {name: f"{module}:{name}" for module, names in table.items() for name in names.split()}


def load(home: str) -> Any:
    """Return the module "module", or what it holds, "module:attribute"."""
    module, _, attribute = home.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


_FACADES: dict[str, Mapping[str, str]] = {}  # package -> its table


def offered(package: str, name: str) -> Any:
    """Return what a loaded package has, or its table says it has, under a name; None if nothing."""
    home = _FACADES.get(package, {}).get(name, "")
    found = vars(sys.modules[package]).get(name) if package in sys.modules else None
    return load(home) if found is None and ":" in home else found


class _Offered:
    """Finds ``package.name`` for a module that a facade offers under that name.

    A finder and a loader by what it has: `importlib.abc` would load pathlib, shutil and tempfile.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return how to load what the table of a facade names; None for any other module."""
        package, _, last = name.rpartition(".")
        home = _FACADES.get(package, {}).get(last, name)
        if home == name or ":" in home:
            return None
        module = importlib.import_module(home)
        loader: Any = self
        spec = importlib.machinery.ModuleSpec(name, loader, is_package=hasattr(module, "__path__"))
        spec.loader_state = (module, module.__spec__)
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module itself: it has two names, and is loaded once."""
        module: ModuleType = spec.loader_state[0]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification back."""
        state = module.__spec__.loader_state  # type: ignore[union-attr]
        module.__spec__ = state[1]


def paths(facade: str, homes: Mapping[str, str]) -> None:
    """Let the modules of a table be imported as ``facade.name``, whatever the facade looks up."""
    _FACADES[facade] = {**_FACADES.get(facade, {}), **homes}


sys.meta_path.append(_Offered())  # last: asked only for what is no file


class MissingName(AttributeError):
    """What a facade lacks.  Python asks for such names too, and reads no message."""

    def __init__(self, facade: str, name: str, known: list[str]) -> None:
        super().__init__(facade, name, known)
        self.name = name

    def __str__(self) -> str:
        from slipway.classic.names import missing

        return missing(*self.args)


def offer(
    facade: str, homes: Mapping[str, str], submodules: bool = False, explain: bool = False
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of the module `facade`, which offers the names of `homes`.

    With `submodules` an attribute is also a module of that name in the package, and with `explain`
    functions say which of their arguments was wrong (`slipway.arguments.explained`).
    """
    paths(facade, homes)

    def get(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            if submodules and not name.startswith("_"):
                try:
                    return importlib.import_module(f"{facade}.{name}")
                except ModuleNotFoundError as error:
                    if error.name != f"{facade}.{name}":  # it is there, and lacks something
                        raise
            raise MissingName(facade, name, list(homes))
        value = load(home)
        if explain:
            value = load("slipway.arguments:explained")(value, load("slipway.arguments:COMMON"))
        setattr(sys.modules[facade], name, value)
        return value

    return get, lambda: sorted(homes)


class Late:
    """Functions that a low module calls although they are written in terms of what it defines.

    A subclass annotates them.  The facade of its package, which may name any module, says in its
    table ``LATE`` in which modules they are, under the subclass's name; the first call loads those.
    """

    _package: ClassVar[str]

    def __init_subclass__(cls, package: str) -> None:
        cls._package = package

    def __getattr__(self, name: str) -> Any:
        for home in sys.modules[self._package].LATE[type(self).__name__]:
            module = importlib.import_module(home)
            if name in vars(module):
                setattr(self, name, vars(module)[name])
                return vars(module)[name]
        raise AttributeError(f"{type(self).__name__} has no function {name!r}")
