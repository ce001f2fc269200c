"""``relay.transform``: graph passes under their classic names; see `slipway.compiler`."""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'slipway.relay.transform' has no attribute {name!r}")
    return getattr(importlib.import_module("slipway.compiler.classic_passes"), name)


def __dir__() -> list[str]:
    return sorted(importlib.import_module("slipway.compiler.classic_passes").__all__)
