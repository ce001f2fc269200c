"""Marks of tests for pytest: what a test needs, and which values it runs for (classic names).

A mark is put with or without brackets: ``@requires_llvm`` and ``@requires_llvm()``.
"""

from __future__ import annotations

import importlib.util
import platform
import struct
import sys
from collections.abc import Callable
from typing import Any

from slipway.runtime.devices import Device, device
from slipway.runtime.features import enabled


def _pytest() -> Any:
    import pytest

    return pytest


class Requirement:
    """A mark that skips a test where something is not there."""

    def __init__(self, name: str, is_there: Callable[[], bool]) -> None:
        self.name = name
        self.is_there = is_there

    def __call__(self, *functions: Any) -> Any:
        """Mark a test (or return the mark, when called without one)."""
        marked = _pytest().mark.skipif(not self.is_there(), reason=f"needs {self.name}")
        return marked(functions[0]) if functions else marked

    def marks(self) -> list[Any]:
        """Return the marks to put on a case of pytest's parametrize."""
        return [_pytest().mark.skipif(not self.is_there(), reason=f"needs {self.name}")]


def _of(name: str) -> Requirement:
    return Requirement(name, lambda: enabled(name))


requires_llvm, requires_rpc, requires_micro = _of("llvm"), _of("rpc"), _of("micro")
requires_cuda, requires_opencl, requires_vulkan = _of("cuda"), _of("opencl"), _of("vulkan")
requires_metal, requires_rocm, requires_hexagon = _of("metal"), _of("rocm"), _of("hexagon")
requires_gpu = uses_gpu = _of("gpu")
requires_x86 = Requirement("an x86 processor", lambda: platform.machine() in ("x86_64", "AMD64"))
requires_arm_dot = Requirement(
    "an ARM processor", lambda: platform.machine() in ("aarch64", "arm64")
)


def requires_package(*packages: str) -> Requirement:
    """Return a mark for tests that need Python packages."""
    return Requirement(
        ", ".join(packages),
        lambda: all(importlib.util.find_spec(package) is not None for package in packages),
    )


def skip_if_32bit(reason: str) -> Any:
    """Return a mark that skips where pointers have 32 bits."""
    return _pytest().mark.skipif(struct.calcsize("P") == 4, reason=reason)


def device_enabled(target: Any) -> bool:
    """Return whether code for a target can run in this process."""
    kind = target if isinstance(target, str) else target.kind.name
    return enabled(kind.split()[0])


def enabled_targets() -> list[tuple[str, Device]]:
    """Return (target, device) of what can run in this process."""
    return [(name, device(name, 0)) for name in ("llvm",) if enabled(name)]


def parametrize_targets(*targets: Any) -> Any:
    """Run a test once for each target that can run here, with arguments `target` and `dev`."""

    def mark(function: Any, names: tuple[Any, ...] = ()) -> Any:
        chosen = names or tuple(name for name, _ in enabled_targets())
        cases = [
            _pytest().param(name, device(str(name).split()[0], 0), id=str(name).split()[0],
                            marks=_of(str(name).split()[0]).marks())
            for name in chosen
        ]  # fmt: skip
        return _pytest().mark.parametrize(("target", "dev"), cases)(function)

    if len(targets) == 1 and callable(targets[0]):
        return mark(targets[0])
    return lambda function: mark(function, targets)


def exclude_targets(*targets: str) -> Any:
    """Return a mark that skips a test where it is to leave out every target that can run here."""
    here = [name for name, _ in enabled_targets()]
    return _pytest().mark.skipif(set(here) <= set(targets), reason=f"not for {', '.join(targets)}")


def known_failing_targets(*targets: str) -> Any:
    """Return a mark that lets a test fail which is known to, on a target that can run here."""
    here = {name for name, _ in enabled_targets()}
    return _pytest().mark.xfail(bool(here & set(targets)), reason="known to fail", strict=False)


def parameter(*values: Any, ids: Any = None, by_dict: dict[str, Any] | None = None) -> Any:
    """Return a fixture with each of the values; `by_dict` gives them names."""
    if by_dict is not None:
        ids, values = list(by_dict), tuple(by_dict.values())
    return _pytest().fixture(params=list(values), ids=ids)(lambda request: request.param)


def parameters(*value_sets: Any, ids: Any = None) -> list[Any]:
    """Return fixtures that change together: one for each place of the sets."""
    numbers = list(range(len(value_sets)))

    def fixture_of(place: int) -> Any:
        chosen = _pytest().fixture(params=numbers, ids=ids)
        return chosen(lambda request: value_sets[request.param][place])

    return [fixture_of(place) for place in range(len(value_sets[0]))]


def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
    """Return a pytest fixture; with `cache_return_value`, one that is made once a module."""
    scope = "module" if cache_return_value else "function"
    made = _pytest().fixture(scope=scope)
    return made if func is None else made(func)


def main() -> None:
    """Run the tests of the file that calls this, and end the process."""
    caller = sys._getframe(1).f_globals["__file__"]
    sys.exit(_pytest().main([caller, *sys.argv[1:]]))
