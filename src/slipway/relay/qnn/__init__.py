"""``relay.qnn``: operators on quantised tensors."""

from __future__ import annotations

import importlib
from typing import Any

from slipway.relay.qnn import op

__all__ = ["op", "transform"]


def __getattr__(name: str) -> Any:
    """Load ``relay.qnn.transform``, which offers names of higher layers."""
    if name != "transform":
        raise AttributeError(f"module 'slipway.relay.qnn' has no attribute {name!r}")
    return importlib.import_module("slipway.relay.qnn.transform")
