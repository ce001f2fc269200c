"""The table of a model format's operators: which function converts which.

A format's ``converters.py`` makes its table and names the families, one file each; the families'
functions enter themselves with the decorator `ConverterTable.converter`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from slipway.errors import SlipwayError

View = TypeVar("View")


class UnsupportedNode(SlipwayError):
    """A node that uses what is not supported; the importer gathers them for one report."""


class ConverterTable(Generic[View]):
    """Converters by the names of operators; `View` is what a converter sees of a node.

    `package` is the format's package, `families` the modules in it that hold converters.
    """

    def __init__(self, package: str, families: tuple[str, ...]) -> None:
        self.package = package
        self.families = families
        self.entries: dict[str, Callable[[View], Any]] = {}

    def converter(self, *names: str) -> Callable[[Callable[[View], Any]], Callable[[View], Any]]:
        """Decorator: enter a converter for the operators `names`."""

        def enter(function: Callable[[View], Any]) -> Callable[[View], Any]:
            for name in names:
                self.entries[name] = function
            return function

        return enter

    def load(self) -> dict[str, Callable[[View], Any]]:
        """Import every family and return the table, the same dictionary each time."""
        for family in self.families:
            importlib.import_module(f"{self.package}.{family}")
        return self.entries
