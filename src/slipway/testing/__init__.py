"""What tests of scripts use, under classic names: a facade, each name looked up on first use."""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "slipway.testing.compare": "assert_allclose assert_prim_expr_equal",
    "slipway.testing.marks": (
        "device_enabled enabled_targets exclude_targets fixture known_failing_targets main "
        "parameter parameters parametrize_targets requires_arm_dot requires_cuda requires_gpu "
        "requires_hexagon requires_llvm requires_metal requires_micro requires_opencl "
        "requires_package requires_rocm requires_rpc requires_vulkan requires_x86 "
        "skip_if_32bit uses_gpu"
    ),
    "slipway.testing.processes": "identity_after install_request_hook terminate_self",
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "utils":
        return importlib.import_module("slipway.testing.utils")
    module = _PLACES.get(name)
    if module is None:
        from slipway.classic_names import missing

        raise AttributeError(missing("slipway.testing", name, list(_PLACES)))
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_PLACES, "utils"])
