"""The loop language under its classic name; see `slipway.ir`."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = ("expr", "stmt", "buffer", "function", "ops", "calls", "custom")


def __getattr__(name: str) -> Any:
    if name == "ir_builder":
        return importlib.import_module("slipway.ir.builder")
    if not name.startswith("_"):
        for module in _MODULES:
            value = getattr(importlib.import_module(f"slipway.ir.{module}"), name, None)
            if value is not None:
                return value
        from slipway import te

        if name in te.__all__:  # functions of elements have the same names there
            return getattr(te, name)
    raise AttributeError(f"module 'slipway.tir' has no attribute {name!r}")
