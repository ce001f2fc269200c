"""``relay.qnn.transform``: CanonicalizeOps and Legalize under their classic names."""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {"CanonicalizeOps": "QnnCanonicalizeOps", "Legalize": "QnnLegalize"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'slipway.relay.qnn.transform' has no attribute {name!r}")
    return getattr(importlib.import_module("slipway.compiler.classic_passes"), _PLACES[name])
