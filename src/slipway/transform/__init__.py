"""Passes and their context, under classic names: a facade, each name looked up on first use."""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = {
    "slipway.transform.context": "PassContext",
    "slipway.transform.manager": ("FunctionPass ModulePass Pass PassInfo PrimFuncPass Sequential"),
    "slipway.compiler.classic_passes": "function_pass module_pass",
}
_PLACES = {
    **{name: f"{module}:{name}" for module, names in _NAMES.items() for name in names.split()},
    "PrintIR": "slipway.transform.manager:print_ir",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        from slipway.classic_names import missing

        raise AttributeError(missing("slipway.transform", name, list(_PLACES)))
    module, _, attribute = place.partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
