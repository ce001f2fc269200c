"""Constant matrices of few bits, as importers hand them to the compiler.

    nn.block_take(rows of blocks, 0 1 2 ...)

is the dequantised matrix, which `ConstantFolder` leaves as it is: the pass KeepBlockWeights makes a
product with it one of the blocks, and elsewhere it becomes floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.relay.expr import Call
from slipway.relay.op_registry import const
from slipway.relay.ops.packed.block_formats import GROUP
from slipway.relay.ops.packed.few_bits import stored_rows

Array = np.ndarray[Any, Any]


def dequantised(values: Array, scales: Array, zeros: Array, size: int) -> Call | None:
    """Return the matrix (`values` - `zeros`) * `scales` of float32, kept in few bits.

    A row's scales and zero points are those of `size` columns each.  None where that cannot be:
    columns in no whole blocks, scales of fewer than 16 columns, integers of more than 8 bits.
    """
    if values.ndim != 2 or values.shape[1] % GROUP:
        return None
    stored = stored_rows(values, scales, zeros, size)
    if stored is None:
        return None
    rows, name = stored
    positions = const(np.arange(len(rows), dtype=np.int32))
    made: Call = relay.nn.block_take(const(rows), positions, name)
    return made
