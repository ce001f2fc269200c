"""Classic import paths: ``slipway.contrib.<name>`` offers what lives in lower layers."""

from __future__ import annotations

from typing import Any

from slipway.lazy import load

_MODULES = (
    "cblas", "cc", "clang", "debugger", "dlpack", "download", "graph_executor", "graph_runtime",
    "mkl", "ndk", "nvcc", "pickle_memoize", "pipeline_executor",
    "pipeline_executor_build", "random", "relay_viz", "rpc", "spirv", "tar", "target",
    "tedd", "torch", "util", "utils", "xcode",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        from slipway.classic.names import NOT_THERE, missing

        advice = NOT_THERE.get(f"tvm.contrib.{name}")
        if advice is None:
            raise AttributeError(missing("slipway.contrib", name, _MODULES))
        return load("slipway.classic.placeholders:placeholder_of")(__name__, name, advice)
    return load(f"slipway.contrib.{name}")


def __dir__() -> list[str]:
    return sorted(_MODULES)
