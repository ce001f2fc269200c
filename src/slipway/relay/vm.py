"""``relay.vm``: `compile` and its classes; `slipway.runtime.vm.VirtualMachine` runs the result."""

from __future__ import annotations

from typing import Any

from slipway.classic.names import REGIONS
from slipway.classic.placeholders import placeholder_of
from slipway.lazy import by_module, offer

_HOMES = by_module(
    {
        "slipway.compiler.vm": "VMCompiler VMExecutor compile",
        "slipway.runtime.vm": "Executable VirtualMachine",
    }
)
_offered, __dir__ = offer(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    return _offered(name) if name in _HOMES else placeholder_of(__name__, name, REGIONS)
