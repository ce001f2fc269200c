"""Classic import paths: ``slipway.contrib.<name>`` offers what lives in lower layers."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = (
    "cblas", "cc", "clang", "debugger", "dlpack", "download", "graph_executor", "graph_runtime",
    "mkl", "ndk", "random", "rpc", "tar", "util", "utils",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'slipway.contrib' has no attribute {name!r}")
    return importlib.import_module(f"slipway.contrib.{name}")


def __dir__() -> list[str]:
    return sorted(_MODULES)
