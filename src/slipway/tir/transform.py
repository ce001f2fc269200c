"""Loop passes under their classic path; see `slipway.transform.loop.classic`."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    module = importlib.import_module("slipway.transform.loop.classic")
    if name not in module.__all__:
        from slipway.classic_names import missing

        raise AttributeError(missing("slipway.tir.transform", name, module.__all__))
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(importlib.import_module("slipway.transform.loop.classic").__all__)
