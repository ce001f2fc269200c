"""Einsum, through transposes, sums and batched matrix products (`relay.einsum`)."""

from __future__ import annotations

from typing import Any

from slipway import relay
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.relay.op_registry import BadArgument


@converter("Einsum")
def einsum(node: NodeView) -> Any:
    """Any number of operands, taken two by two from the left."""
    try:
        return relay.einsum([node.input(n) for n in range(len(node.inputs))], node.attr("equation"))
    except BadArgument as error:
        raise node.unsupported(str(error).removeprefix("argument 'equation' is ")) from None
