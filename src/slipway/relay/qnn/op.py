"""``relay.qnn.op``: quantised operators by name, without the "qnn." of the registry."""

from __future__ import annotations

from typing import Any

from slipway.errors import did_you_mean
from slipway.relay import op_registry


def __getattr__(name: str) -> Any:
    definition = None if name.startswith("_") else op_registry.load_ops().get(f"qnn.{name}")
    if definition is None:
        known = [n[4:] for n in op_registry.OPS if n.startswith("qnn.")]
        near = did_you_mean(name, known)
        raise AttributeError(f"module 'slipway.relay.qnn.op' has no attribute {name!r}.{near}")
    globals()[name] = definition.face_function
    return definition.face_function
