"""The constants of a layer as one stream of words (dsp_stream.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.backends.micro.kernels.constants import LayerConstants
from slipway.backends.micro.kernels.layer import Layer
from slipway.backends.micro.kernels.line import Sums, lines_of

Array = np.ndarray[Any, Any]


def groups_of(channels: int, block: int, *, overlap: bool = False) -> Array:
    """Return [groups][block] channels; what is beyond the last one is the number `channels`.

    With `overlap` the last group is the last channels, some of which the one before it has.
    """
    groups = np.arange(-(-channels // block) * block).reshape(-1, block)
    if overlap and channels % block:
        groups[-1] = np.arange(channels - block, channels)
    return np.minimum(groups, channels)


def streamed(
    constants: LayerConstants,
    bias: Array,
    words: Array,
    layer: Layer,
    groups: Array,
    sums: Sums | None = None,
    *,
    apart: bool = False,
) -> dict[int, Array] | None:
    """Return the operands: the stream for the weights, next to nothing for the others.

    For each group of channels it has their biases, their `words`, and how sums become outputs: with
    `sums` by lines, else for each channel the multiplier, the rounding term and the right shift
    less 1, which with `apart` lie behind all groups, once where all channels have the same.  None
    when a shift is not to the right, or a channel has no line.
    """
    if constants.largest_shift >= 0:
        return None
    biases = np.append(bias.astype(np.int64), 0)[groups]
    if sums is not None:
        lines = lines_of(sums.taken(groups))
        if lines is None:
            return None
        biases = biases + lines.offset
        scales = np.concatenate([lines.right[:, None], lines.multiplier], axis=1)
    else:
        scales = _exact(constants, layer, groups)
    parts = [biases, words.reshape(len(groups), -1), scales]
    if apart and sums is None:
        is_one = isinstance(constants.multiplier, int)
        parts = [np.concatenate(parts[:2], axis=1).reshape(1, -1), scales[: 1 if is_one else None]]
        parts[1] = parts[1].reshape(1, -1)
    stream = np.concatenate([_words(part) for part in parts], axis=1)
    nothing = np.zeros(1, np.int32)
    return LayerConstants(stream.reshape(-1), nothing, nothing, nothing).by_operand(layer)


def _exact(constants: LayerConstants, layer: Layer, groups: Array) -> Array:
    channels = int(constants.weight.shape[-1])
    multiplier, right = (
        np.append(np.broadcast_to(np.asarray(a, np.int64), (channels,)), 0)[groups]
        for a in (constants.multiplier, -1 - np.asarray(constants.shift, np.int64))
    )
    triples = np.stack([multiplier, (2 * layer.zero + 1) << right, right], axis=-1)
    return triples.reshape(len(groups), -1)


def _words(array: Array) -> Array:
    return array.astype(np.int64).astype(np.uint32).view(np.int32)
