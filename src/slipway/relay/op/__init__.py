"""``relay.op``: operators by name, as ``relay.op.get("nn.relu")``."""

from __future__ import annotations

import sys
from typing import Any

from slipway.relay import annotation, nn, op_registry
from slipway.relay.expr import Op
from slipway.relay.op import contrib
from slipway.relay.op_registry import OpPattern

__all__ = ["Op", "OpPattern", "annotation", "contrib", "get", "nn"]


def get(name: str) -> Op:
    """Return the operator called `name`.  Raises KeyError with a suggestion."""
    return op_registry.get(name).op


def __getattr__(name: str) -> Any:
    if name == "op":  # relay.op.op is the module itself: here there is one
        return sys.modules[__name__]
    definition = None if name.startswith("_") else op_registry.load_ops().get(name)
    if definition is None:
        raise AttributeError(f"module 'slipway.relay.op' has no attribute {name!r}")
    return definition.face_function


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in op_registry.load_ops() if "." not in name)])
