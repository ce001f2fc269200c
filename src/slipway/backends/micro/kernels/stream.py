"""The constants of a layer as one stream of words (dsp_stream.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.backends.micro.kernels.constants import LayerConstants
from slipway.backends.micro.kernels.layer import Layer

Array = np.ndarray[Any, Any]


def streamed(
    constants: LayerConstants, bias: Array, words: Array, layer: Layer, block: int
) -> dict[int, Array] | None:
    """Return the operands: the stream for the weights, next to nothing for the others.

    It goes by groups of `block` channels: biases, and `words` of weights, which begin with the axis
    of groups.  Behind all of them stands for each channel, or for one group where all channels have
    the same, the multiplier, the rounding term, and the right shift less 1.  None when a shift is
    not to the right.
    """
    if constants.largest_shift >= 0:
        return None
    groups = len(words)

    def grouped(array: Array) -> Array:
        return np.pad(array, (0, groups * block - len(array))).reshape(groups, block)

    scale = np.broadcast_arrays(
        np.asarray(constants.multiplier, np.int64), -1 - np.asarray(constants.shift, np.int64)
    )
    multiplier, right = (grouped(a) if a.ndim else np.full(block, a) for a in scale)
    scales = np.stack([multiplier, (2 * layer.zero + 1) << right, right], axis=-1)
    parts = [grouped(bias), words.reshape(groups, -1)]
    stream = np.concatenate([part.astype(np.int32) for part in parts], axis=1)
    whole = np.concatenate([stream.reshape(-1), scales.reshape(-1).astype(np.int32)])
    nothing = np.zeros(1, np.int32)
    return LayerConstants(whole, nothing, nothing, nothing).by_operand(layer)
