"""WHERE of one input: positions whose number the run tells."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.found_positions import coordinates, positions_in_room
from slipway.frontends.tflite.converters import NodeView, converter
from slipway.relay.dims import SymbolDim
from slipway.relay.op_registry import const


@converter("WHERE")
def where(node: NodeView) -> Any:
    """The positions of what is not zero, one a row."""
    if node.program.depth:
        raise node.unsupported("its result is as long as values say, in a branch or a loop")
    x = node[0]
    type_ = x.tensor_type
    if not type_.rank:
        raise node.unsupported("a scalar has no axis to find positions along")
    mask = x
    if type_.dtype != "bool":
        mask = relay.not_equal(x, const(np.zeros((), type_.dtype)))
    positions, count = positions_in_room(relay.reshape(mask, (-1,)))
    most = type_.size.high if isinstance(type_.size, SymbolDim) else type_.size
    if most is None:
        raise node.unsupported(f"nothing bounds how many there are in {type_}")
    dim = relay.Dim(f"found{node.program.found}", 0, most)
    node.program.found += 1
    return relay.stack(coordinates(relay.sized(positions, count, dim), mask), 1)
