"""``relay.build_module``: `build`, `create_executor` and `bind_params_by_name`."""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "bind_params_by_name": "slipway.relay.construct:bind",
    "build": "slipway.compiler.relay_build:build",
    "create_executor": "slipway.compiler.create_executor:create_executor",
    "optimize": "slipway.compiler.classic_build:optimize",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'slipway.relay.build_module' has no attribute {name!r}")
    module, _, attribute = place.partition(":")
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
