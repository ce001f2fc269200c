"""Operators that move elements: RESHAPE and its kin."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.tflite.converters import NodeView, converter
from slipway.relay.expr import Constant


@converter("RESHAPE")
def reshape(node: NodeView) -> Any:
    """The new shape is the second input, or the option."""
    wanted = node.option("new_shape", None)
    if node.has(1) and isinstance(node[1], Constant):
        wanted = node.integers(1)
    if wanted is None:
        wanted = node.out().shape
    return relay.reshape(node[0], wanted, True)
