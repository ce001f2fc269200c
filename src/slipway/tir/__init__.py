"""The loop language under its classic name; see `slipway.ir`."""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "schedule": "slipway.blocks.schedule",
    "ir_builder": "slipway.ir.builder",
    "stmt_functor": "slipway.tir.stmt_functor",
    "transform": "slipway.tir.transform",
}
_MODULES = ("expr", "stmt", "buffer", "function", "ops", "calls", "custom")


def __getattr__(name: str) -> Any:
    if name == "Schedule":
        return importlib.import_module("slipway.blocks.schedule").Schedule
    if name in _PLACES:
        return importlib.import_module(_PLACES[name])
    if not name.startswith("_"):
        for module in _MODULES:
            value = getattr(importlib.import_module(f"slipway.ir.{module}"), name, None)
            if value is not None:
                return value
        from slipway import te

        if name in te.__all__:  # functions of elements have the same names there
            return getattr(te, name)
    from slipway.classic_names import missing

    raise AttributeError(missing("slipway.tir", name))
