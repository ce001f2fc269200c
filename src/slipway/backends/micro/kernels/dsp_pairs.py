"""Depthwise kernels that sum two products by one instruction (dsp_pairs.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.backends.micro.kernels import line
from slipway.backends.micro.kernels.constants import LayerConstants
from slipway.backends.micro.kernels.layer import Layer, type_of
from slipway.backends.micro.kernels.library import (
    POINTER_BYTES,
    LibraryKernel,
    definition,
    overlaps_of,
)
from slipway.backends.micro.kernels.stream import groups_of, streamed
from slipway.relay.expr import Function

Array = np.ndarray[Any, Any]
BLOCK = 4  # channels at a time


def pairs_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel of a matched depthwise convolution; None for any other layer."""
    return _kernel(name, function, layer, by_line=False)


def pairs_line_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel for outputs behind a ReLU, where the values allow it (`line`)."""
    if layer.zero != line.ZERO:
        return None
    return _kernel(name, function, layer, by_line=True)


def _kernel(name: str, function: Function, layer: Layer, *, by_line: bool) -> LibraryKernel | None:
    channels = type_of(layer.sums.args[0]).shape[-1]
    if layer.kind != "depthwise" or channels < BLOCK:
        return None
    text = definition(
        name,
        function,
        layer,
        "slw_depthwise_line" if by_line else "slw_depthwise_pairs",
        has_workspace=True,
        streamed=True,
        weight_type="int32_t",
        weight_view="uint32_t",
    )
    if text is None:
        return None
    size = -(-channels // 16) * 16 + POINTER_BYTES * layer.depth
    times = 256 if by_line else 2

    def arrange(constants: LayerConstants) -> dict[int, Array] | None:
        weight = constants.weight.reshape(-1, channels)
        sums = None
        if by_line:
            sums = line.sums_of(weight, constants.bias, constants.multiplier, constants.shift)
        groups = groups_of(channels, BLOCK, overlap=True)
        words = weight_words(weight, groups, times)
        bias = times * constants.bias.astype(np.int64)
        return streamed(constants, bias, words, layer, groups, sums)

    return LibraryKernel("dsp_pairs", text, size, overlaps_of(layer, 0), layer, arrange)


def weight_words(weight: Array, groups: Array, times: int) -> Array:
    """Return [groups][words] of a weight [taps][C]: its pairs of taps, then a single one."""
    taps = (times * weight.astype(np.int32)).astype(np.int16)[:, groups]
    last, count = len(taps) // 2 * 2, len(groups)
    pairs = taps[:last].reshape(-1, 2, count, 4).transpose(2, 0, 3, 1).reshape(count, -1)
    single = taps[last:].transpose(1, 0, 2)[..., [0, 2, 1, 3]].reshape(count, -1)
    words = np.asarray(np.concatenate([pairs, single], axis=1), order="C")
    return words.view(np.int32)
