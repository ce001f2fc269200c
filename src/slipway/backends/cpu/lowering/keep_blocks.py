"""KeepBlockWeights: products with dequantised constants read the integers.

    nn.dense(%x, nn.block_take(blocks, 0 1 2 ...))         ->  nn.block_dense(%x, blocks, exact)
    nn.dense(%x, qnn.dequantize(integers, scales, zeros))  ->  the same, the integers in blocks

where the weight may be transposed before or after.  The data stays float, so the numbers are those
of the product with floats; a quarter or an eighth of the bytes are held and read.  Integers of a
byte stay so beside one row of data, which reads every weight once: more rows, or an open number of
them, take longer with integers than with the floats that they are folded to.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.dims import is_open
from slipway.relay.expr import Call, Constant, Expr, Function
from slipway.relay.op_registry import const, is_call_of
from slipway.relay.ops.packed.block_formats import GROUP
from slipway.relay.ops.packed.few_bits import stored_rows
from slipway.relay.visit import rewrite

Stored = tuple[Any, str]


def keep_blocks(function: Function) -> Function:
    """Return `function` with the weights of few bits of its products kept so."""

    def keep(call: Expr) -> Expr | None:
        if not is_call_of(call, "nn.dense") or not isinstance(call, Call):
            return None
        data, weight = call.args
        if call.attrs.out_dtype not in ("", "float32") or data.tensor_type.dtype != "float32":
            return None
        rows = prod(data.tensor_type.shape[:-1])
        found = _stored(weight, not is_open(rows) and rows == 1)
        if found is None:
            return None
        made: Expr = op_registry.make("nn.block_dense")(data, const(found[0]), found[1], exact=True)
        return made

    result: Function = rewrite(function, keep)
    return result


def _stored(weight: Expr, is_row: bool) -> Stored | None:
    """Return a weight (units, depth) as rows of blocks, and their format."""
    swapped = False
    while is_call_of(weight, "transpose") and isinstance(weight, Call):
        weight, swapped = weight.args[0], not swapped  # of two axes
    if not isinstance(weight, Call) or not all(isinstance(a, Constant) for a in weight.args):
        return None
    arrays = [a.array for a in weight.args if isinstance(a, Constant)]
    if is_call_of(weight, "nn.block_take") and not swapped:
        rows, positions = arrays
        is_whole = np.array_equal(positions, np.arange(len(rows)))
        return (rows, weight.attrs.format) if is_whole else None
    if not is_row or not is_call_of(weight, "qnn.dequantize"):
        return None
    if weight.attrs.out_dtype == "float32":
        return _of_channels(arrays, weight.attrs.axis % 2, swapped)
    return None


def _of_channels(arrays: list[Any], axis: int, swapped: bool) -> Stored | None:
    """Return integers with a scale for all, or for each row, as rows of blocks."""
    values, scales, zeros = arrays
    if values.ndim != 2 or values.dtype.itemsize != 1:
        return None
    if scales.ndim + zeros.ndim and axis != int(swapped):
        return None  # scales along the depth
    values = values.T if swapped else values
    units, depth = values.shape
    if depth % GROUP:
        return None
    scales, zeros = (np.broadcast_to(a.reshape(-1, 1), (units, 1)) for a in (scales, zeros))
    return stored_rows(values.astype(np.int32), scales, zeros, depth)
