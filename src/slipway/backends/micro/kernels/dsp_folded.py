"""Kernels that take two weights out of one 16-bit number (dsp_folded.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.backends.micro.kernels.constants import LayerConstants, packed_rows
from slipway.backends.micro.kernels.layer import Layer, type_of
from slipway.backends.micro.kernels.library import (
    LibraryKernel,
    definition,
    is_row,
    overlaps_of,
)
from slipway.backends.micro.kernels.stream import streamed
from slipway.relay.expr import Function

Array = np.ndarray[Any, Any]
_LARGEST_SUM = 1 << 23  # sums are kept 256 times as large


def folded_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel of a matched convolution or product; None for any other layer."""
    if layer.kind == "depthwise":
        return None
    row = is_row(layer)
    block = 4 if row else 2
    whole = (layer.depth if row else type_of(layer.sums.args[0]).shape[-1]) % 4 == 0
    padded = -(-layer.depth // 4) * 4
    size = (0 if whole else padded) if row else (6 if whole else 7) * padded
    text = definition(
        name,
        function,
        layer,
        f"slw_{'dense' if row else 'conv'}_folded",
        has_workspace=size > 0,
        weight_type="int32_t",
        weight_view="uint32_t",
        streamed=True,
        inputs=(1, 1, layer.depth) if row else None,
    )
    if text is None:
        return None
    # A product writes its first outputs while it still reads the whole row: no overlap there.
    overlaps = () if row else overlaps_of(layer, 3)

    def arrange(constants: LayerConstants) -> dict[int, Array] | None:
        folded = fold(constants)
        if folded is None:
            return None
        weight, bias = folded
        words = packed_rows(weight, block, 2, multiple=2).view(np.int32)
        return streamed(constants, bias, words, layer, block)

    return LibraryKernel("dsp_folded", text, size, overlaps, layer, arrange)


def fold(constants: LayerConstants) -> tuple[Array, Array] | None:
    """Return [K / 2][O] pairs of weights as int16, K a multiple of 4, and their biases.

    None where a sum may reach 2^23, an even weight is -128, or a shift is not to the right.
    """
    wide = constants.weight.astype(np.int64).reshape(-1, constants.weight.shape[-1])
    wide = np.pad(wide, ((0, -len(wide) % 4), (0, 0)))
    even, odd = wide[::2], wide[1::2]
    bias = constants.bias.astype(np.int64)
    highest = bias + np.maximum(127 * wide, -128 * wide).sum(axis=0)
    lowest = bias + np.minimum(127 * wide, -128 * wide).sum(axis=0)
    if (
        constants.largest_shift >= 0
        or (even.size and even.min() == -128)
        or highest.max() >= _LARGEST_SUM
        or lowest.min() < -_LARGEST_SUM
    ):
        return None
    words = (-256 * even + odd).astype(np.int16)
    total = 256 * bias - (256 * even + 127 * odd).sum(axis=0)
    return words, total.astype(np.uint32).view(np.int32)
