"""``tvm.support``: what this installation has, and a module of Python functions (classic names)."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from typing import Any

from slipway.runtime.features import enabled
from slipway.runtime.module import Module
from slipway.version import VERSION

# Name of an option of TVM's build -> the feature that it asks for here.
_OPTIONS = {
    "USE_LLVM": "llvm", "USE_OPENCL": "opencl", "USE_CUDA": "cuda", "USE_METAL": "metal",
    "USE_VULKAN": "vulkan", "USE_ROCM": "rocm", "USE_MICRO": "micro", "USE_RPC": "rpc",
    "USE_GRAPH_EXECUTOR": "graph_executor",
}  # fmt: skip


def libinfo() -> dict[str, str]:
    """Return "ON" or "OFF" for options of TVM's build, and the version; others are not there."""
    found = {name: "ON" if enabled(feature) else "OFF" for name, feature in _OPTIONS.items()}
    return {**found, "USE_AOT_EXECUTOR": "ON", "USE_PROFILER": "ON", "TVM_VERSION": VERSION}


def describe() -> None:
    """Print the versions of Slipway, Python and the system, and what `libinfo` returns."""
    print(f"Slipway {VERSION}")
    print(f"Python {sys.version.splitlines()[0]} ({sys.maxsize.bit_length() + 1} bit)")
    print(" ".join(platform.uname()))
    for name, value in libinfo().items():
        print(f"  {name}: {value}")


class FrontendTestModule(Module):
    """A module whose functions are Python's: ``module["add"] = function``."""

    type_key = "frontend_test"

    def __init__(self, entry_name: str | None = None) -> None:
        super().__init__(entry_name)
        self._own: dict[str, Callable[..., Any]] = {}

    def function_names(self) -> list[str]:
        """Return the names that functions were given."""
        return list(self._own)

    def add_function(self, name: str, func: Callable[..., Any]) -> None:
        """Give a function a name."""
        self._own[name] = func
        self._functions.pop(name, None)

    __setitem__ = add_function

    def _find_function(self, name: str) -> Callable[..., Any] | None:
        return self._own.get(name)
