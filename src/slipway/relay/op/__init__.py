"""``relay.op``: operators by name, as ``relay.op.get("nn.relu")``."""

from __future__ import annotations

from typing import Any

from slipway.classic.names import missing
from slipway.lazy import paths
from slipway.relay import annotation, composites, image, nn, op_registry, vision
from slipway.relay.expr import Op
from slipway.relay.op import contrib, strategy
from slipway.relay.op_registry import OpPattern
from slipway.relay.op_rules import (
    OpImplementation,
    OpStrategy,
    register_alter_op_layout,
    register_convert_op_layout,
    register_legalize,
    register_strategy,
)
from slipway.relay.ops.explained import explained

__all__ = [
    "Op", "OpImplementation", "OpPattern", "OpStrategy", "annotation", "contrib", "get",
    "image", "nn", "register_alter_op_layout", "register_convert_op_layout", "register_legalize",
    "register_strategy", "strategy", "vision",
]  # fmt: skip

paths(__name__, {name: f"slipway.relay.{name}" for name in ("annotation", "image", "nn", "vision")})


def get(name: str) -> Op:
    """Return the operator called `name`.  Raises KeyError with a suggestion."""
    return op_registry.get(name).op


def __getattr__(name: str) -> Any:
    if name == "op":  # relay.op.op is the module itself: here there is one
        from slipway.relay import op

        return op
    definition = None if name.startswith("_") else op_registry.load_ops().get(name)
    found = getattr(composites, name, None) if definition is None else definition.make_function
    if found is None:
        raise AttributeError(missing(__name__, name, __dir__()))
    return explained(found)


def __dir__() -> list[str]:
    names = (name for name in op_registry.load_ops() if "." not in name)
    return sorted([*__all__, *names, *dir(composites)])
