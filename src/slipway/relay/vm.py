"""``relay.vm``: `compile`, whose result `slipway.runtime.vm.VirtualMachine` runs."""

from __future__ import annotations

import importlib
from typing import Any

from slipway.classic_names import REGIONS
from slipway.placeholders import placeholder_of

_PLACES = {"compile": "slipway.compiler.vm", "Executable": "slipway.compiler.vm"}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        return placeholder_of(__name__, name, REGIONS)
    value = getattr(importlib.import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_PLACES)
