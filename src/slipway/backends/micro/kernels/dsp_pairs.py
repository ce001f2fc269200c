"""Depthwise kernels that sum two products by one instruction (dsp_pairs.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.backends.micro.kernels.constants import LayerConstants
from slipway.backends.micro.kernels.layer import Layer, type_of
from slipway.backends.micro.kernels.library import (
    POINTER_BYTES,
    LibraryKernel,
    definition,
    overlaps_of,
)
from slipway.backends.micro.kernels.stream import streamed
from slipway.relay.expr import Function

Array = np.ndarray[Any, Any]


def pairs_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel of a matched depthwise convolution; None for any other layer."""
    if layer.kind != "depthwise":
        return None
    text = definition(
        name,
        function,
        layer,
        "slw_depthwise_pairs",
        has_workspace=True,
        streamed=True,
        weight_type="int32_t",
        weight_view="uint32_t",
    )
    if text is None:
        return None
    channels = type_of(layer.sums.args[0]).shape[3]
    size = -(-channels // 16) * 16 + POINTER_BYTES * layer.depth

    def arrange(constants: LayerConstants) -> dict[int, Array] | None:
        words = weight_words(constants.weight.reshape(-1, channels))
        return streamed(constants, 2 * constants.bias, words, layer, 4)

    return LibraryKernel("dsp_pairs", text, size, overlaps_of(layer, 0), layer, arrange)


def weight_words(weight: Array) -> Array:
    """Return [C / 4][words] of a weight [taps][C]: its pairs of taps, then a single one."""
    full = np.pad(2 * weight.astype(np.int16), ((0, 0), (0, -weight.shape[1] % 4)))
    taps = full.reshape(len(full), -1, 4)
    last, fours = len(taps) // 2 * 2, taps.shape[1]
    pairs = taps[:last].reshape(-1, 2, fours, 4).transpose(2, 0, 3, 1).reshape(fours, -1)
    single = taps[last:].transpose(1, 0, 2)[..., [0, 2, 1, 3]].reshape(fours, -1)
    words = np.asarray(np.concatenate([pairs, single], axis=1), order="C")
    return words.view(np.int32)
