"""The loop language under its classic name; see `slipway.ir`."""

from __future__ import annotations

import importlib
import typing

from slipway.ir.offered import offered

_MODULES = ("expr", "stmt", "buffer", "function", "ops", "calls", "custom")
# Name -> "module" or "module:attribute" that holds it, where it is none of these modules.
_PLACES = {
    "Any": "slipway.relay.types:OpenDim",
    "Schedule": "slipway.blocks.schedule:Schedule",
    "ir_builder": "slipway.ir.builder",
    "schedule": "slipway.blocks.schedule",
    "stmt_functor": "slipway.tir.stmt_functor",
    "transform": "slipway.tir.transform",
}


def __getattr__(name: str) -> typing.Any:
    module, _, attribute = _PLACES.get(name, "").partition(":")
    if module:
        value = importlib.import_module(module)
        return getattr(value, attribute) if attribute else value
    if not name.startswith("_"):
        for module in _MODULES:
            own = offered(importlib.import_module(f"slipway.ir.{module}"))
            if name in own:
                return own[name]
        te = importlib.import_module("slipway.te")
        if name in te.__all__:  # functions of elements have the same names there
            return getattr(te, name)
    from slipway.classic_names import missing

    raise AttributeError(missing("slipway.tir", name))


def __dir__() -> list[str]:
    modules = [importlib.import_module(f"slipway.ir.{module}") for module in _MODULES]
    names = {name for module in modules for name in offered(module)}
    return sorted(names.union(_PLACES, importlib.import_module("slipway.te").__all__))
