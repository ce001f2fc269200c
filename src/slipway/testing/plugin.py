"""The pytest plugin of classic tests: fixtures `target` and `dev`, parameters that change together.

A ``conftest.py`` asks for it with ``pytest_plugins = ["slipway.testing.plugin"]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from slipway.runtime.devices import Device, device
from slipway.testing.marks import Correlated, enabled_targets

if TYPE_CHECKING:
    from slipway.target import Target


def kind_of(target: Target | str) -> str:
    """Return the kind of a target given as text or as an object."""
    return target.split()[0] if isinstance(target, str) else str(target.kind.name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test the values of its correlated parameters, and the targets that run here."""
    groups: dict[int, list[tuple[str, Correlated]]] = {}
    for name, definitions in metafunc.definition._fixtureinfo.name2fixturedefs.items():
        parameter = getattr(definitions[-1].func, "correlated", None)
        if isinstance(parameter, Correlated):
            groups.setdefault(id(parameter.value_sets), []).append((name, parameter))
    for members in groups.values():
        first = members[0][1]
        cases = [
            tuple(values[parameter.index] for _, parameter in members)
            for values in first.value_sets
        ]
        metafunc.parametrize([name for name, _ in members], cases, ids=first.ids, indirect=True)
    if "target" in metafunc.fixturenames and not (
        "target" in metafunc.definition._fixtureinfo.name2fixturedefs
        or any("target" in argument_names(mark) for mark in
               metafunc.definition.iter_markers("parametrize"))
    ):  # fmt: skip
        metafunc.parametrize("target", [name for name, _ in enabled_targets()], scope="session")


def argument_names(mark: pytest.Mark) -> list[str]:
    """Return the names that a mark `parametrize` gives values to."""
    names = mark.args[0] if mark.args else mark.kwargs["argnames"]
    return [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)


@pytest.fixture
def dev(target: Target | str) -> Device:
    """Return the device that code for the test's target runs on."""
    return device(kind_of(target), 0)
