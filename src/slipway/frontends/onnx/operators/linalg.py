"""Det, and the filter bank of a mel spectrogram."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import check_table
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.arithmetic import dtype_of
from slipway.relay.op_registry import const

MAX_ROWS = 64  # of a matrix whose elimination is unrolled


@converter("Det")
def determinant(node: NodeView) -> Any:
    """Gaussian elimination with row pivoting, unrolled; the pivot row is moved by arithmetic."""
    *lead, rows, columns = node.type().shape
    if rows != columns:
        raise node.unsupported(f"the matrices are {rows} x {columns}, not square")
    if rows > MAX_ROWS:
        raise node.unsupported(f"the matrices have {rows} rows; up to {MAX_ROWS} are served")
    batch = int(np.prod(lead, dtype=np.int64))
    zero, one = node.like(0), node.like(1)
    a = relay.reshape(node.input(0), (batch, rows, rows))
    result: relay.Expr = const(np.ones(batch), node.type().dtype)
    for size in range(rows, 0, -1):
        first = relay.reshape(relay.strided_slice(a, [0, 0, 0], [batch, size, 1]), (batch, size))
        place = relay.argmax(relay.abs(first), 1, dtype="int32")
        chosen = relay.one_hot(place, 1.0, 0.0, size, -1, node.type().dtype)
        chosen = relay.reshape(chosen, (batch, size, 1))
        pivot_row = relay.sum(relay.multiply(chosen, a), 1, keepdims=True)
        top_row = relay.strided_slice(a, [0, 0, 0], [batch, 1, size])
        moved = relay.not_equal(place, const(0, "int32"))
        pivot = relay.reshape(relay.strided_slice(pivot_row, [0, 0, 0], [batch, 1, 1]), (batch,))
        result = relay.multiply(result, relay.where(moved, relay.negative(pivot), pivot))
        if size == 1:
            break
        # The top row takes the place of the pivot row, which leaves.
        a = relay.add(a, relay.multiply(chosen, relay.subtract(top_row, pivot_row)))
        below = relay.strided_slice(a, [0, 1, 0], [batch, size, size])
        safe = relay.where(relay.equal(pivot, zero), one, pivot)
        factor = relay.divide(
            relay.strided_slice(below, [0, 0, 0], [batch, size - 1, 1]),
            relay.reshape(safe, (batch, 1, 1)),
        )
        rest = relay.strided_slice(below, [0, 0, 1], [batch, size - 1, size])
        pivot_rest = relay.strided_slice(pivot_row, [0, 0, 1], [batch, 1, size])
        a = relay.subtract(rest, relay.multiply(factor, pivot_rest))
    return relay.reshape(result, tuple(lead))


@converter("MelWeightMatrix")
def mel_weight_matrix(node: NodeView) -> Any:
    """Triangles of equal width on the mel scale, 2595 log10(1 + f / 700), over a DFT's bins."""
    names = ("the number of bands", "the DFT length", "the sample rate", "the lower edge",
             "the upper edge")  # fmt: skip
    bands, length, rate, low, high = (
        node.constant(i, name).reshape(()).item() for i, name in enumerate(names)
    )
    bins = int(length) // 2 + 1
    if bands < 0 or bins < 0 or rate <= 0 or not np.isfinite([low, high]).all():
        raise node.unsupported(f"a bank of {bands} bands over {bins} bins at the rate {rate}")
    check_table(node, bands, bins)
    edges = [2595 * np.log10(1 + f / 700) for f in (low, high)]
    mel = edges[0] + np.arange(bands + 2) * (edges[1] - edges[0]) / (bands + 2)
    hertz = 700 * (10 ** (mel / 2595) - 1)
    at = ((length + 1) * hertz // rate).astype(np.int64)
    bank = np.zeros((bins, bands))
    place = np.arange(bins)
    for band in range(bands):
        left, centre, right = at[band : band + 3]
        rising = (place >= left) & (place <= centre)
        width = centre - left
        bank[rising, band] = (place[rising] - left) / width if width else 1.0
        falling = (place >= centre) & (place < right)
        bank[falling, band] = (right - place[falling]) / max(right - centre, 1)
    return const(bank.astype(dtype_of(node, node.attr("output_datatype", 1))))
