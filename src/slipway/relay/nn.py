"""``relay.nn``: the neural network operators under their classic names."""

from __future__ import annotations

import importlib
from typing import Any

from slipway.errors import did_you_mean
from slipway.relay import op_registry

_COMPOSITES = {
    "deformable_conv2d": ("image.regions", "deformable_conv2d"),
    "l2_normalize": ("nn.norm", "l2_normalize"),
    "group_norm": ("nn.norm", "group_norm"),
    "upsampling": ("image.resize", "upsampling"),
}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'slipway.relay.nn' has no attribute {name!r}")
    definition = op_registry.load_ops().get(f"nn.{name}")
    if definition is not None:
        value: Any = definition.face_function
    elif name in _COMPOSITES:
        family, function = _COMPOSITES[name]
        value = getattr(importlib.import_module(f"slipway.relay.ops.{family}"), function)
    else:
        known = [n[3:] for n in op_registry.OPS if n.startswith("nn.")]
        near = did_you_mean(name, [*known, *_COMPOSITES])
        raise AttributeError(f"module 'slipway.relay.nn' has no attribute {name!r}.{near}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    names = [n[3:] for n in op_registry.load_ops() if n.startswith("nn.")]
    return sorted([*names, *_COMPOSITES])
