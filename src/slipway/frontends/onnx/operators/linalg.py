"""Det, and the filter bank of a mel spectrogram."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.frontends.budget import check_table
from slipway.frontends.linear_algebra import determinant
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.arithmetic import dtype_of
from slipway.relay.op_registry import const


@converter("Det")
def det(node: NodeView) -> Any:
    """Determinants of small matrices."""
    return determinant(node.input(0))


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
    position = np.arange(bins)
    for band in range(bands):
        left, centre, right = at[band : band + 3]
        rising = (position >= left) & (position <= centre)
        width = centre - left
        bank[rising, band] = (position[rising] - left) / width if width else 1.0
        falling = (position >= centre) & (position < right)
        bank[falling, band] = (right - position[falling]) / max(right - centre, 1)
    return const(bank.astype(dtype_of(node, node.attr("output_datatype", 1))))
