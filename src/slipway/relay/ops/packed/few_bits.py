"""Matrices of few bits as rows of blocks: from integers, scales and zero points of any format."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.relay.ops.packed.block_formats import GROUP, blocks_of

Array = np.ndarray[Any, Any]
SHARE = 16  # elements with one scale in u4 and u8


def stored_rows(values: Array, scales: Array, zeros: Array, size: int) -> tuple[Array, str] | None:
    """Return rows of u4 or u8 blocks whose values are (`values` - `zeros`) * `scales`, and which.

    `values` (rows, columns) are integers, a row's scales and zero points those of `size` columns
    each.  Columns are padded with zeros to whole blocks.  None where no more than 16 columns have a
    scale of their own, or an integer has more than 8 bits.
    """
    columns = values.shape[1]
    if size % SHARE or not values.size:
        return None
    low, high = int(values.min()), int(values.max())
    for bits, signed in ((4, False), (4, True), (8, False), (8, True)):
        shift = 1 << bits - 1 if signed else 0
        if low + shift >= 0 and high + shift < 1 << bits:
            break
    else:
        return None
    whole, more = -(-columns // SHARE) * SHARE, -columns % GROUP
    positions = np.arange(0, whole, SHARE) // size
    scales, zeros = (np.take(a.astype(np.float32), positions, 1) for a in (scales, zeros))
    minimum = scales * (zeros + np.float32(shift))
    padded = np.pad(values + shift, ((0, 0), (0, more)))
    missing = padded.shape[1] // SHARE - len(positions)
    scales, minimum = (np.pad(a, ((0, 0), (0, missing))) for a in (scales, minimum))
    return blocks_of(padded, scales, minimum, bits), f"u{bits}"
