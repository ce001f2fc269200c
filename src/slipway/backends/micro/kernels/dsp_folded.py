"""Kernels that take two weights out of one 16-bit number (dsp_folded.c)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slipway.backends.micro.kernels import line
from slipway.backends.micro.kernels.constants import LayerConstants, packed_rows
from slipway.backends.micro.kernels.layer import Layer, geometry, type_of
from slipway.backends.micro.kernels.library import (
    LibraryKernel,
    definition,
    is_row,
    overlaps_of,
)
from slipway.backends.micro.kernels.stream import groups_of, streamed
from slipway.relay.expr import Function

Array = np.ndarray[Any, Any]
_LARGEST_SUM = 1 << 23  # sums are kept 256 times as large
_COPY_COST = 8  # SLW_COPY_COST
_FEW = 64  # elements of a row, behind more of which scales of each channel do not pay


def folded_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel of a matched convolution or product; None for any other layer."""
    return _kernel(name, function, layer, by_line=False)


def folded_line_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel for outputs behind a ReLU, where the values allow it (`line`)."""
    if layer.zero != line.ZERO or (is_row(layer) and layer.depth > _FEW):
        return None
    return _kernel(name, function, layer, by_line=True)


def _kernel(name: str, function: Function, layer: Layer, *, by_line: bool) -> LibraryKernel | None:
    if layer.kind == "depthwise":
        return None
    row = is_row(layer)
    block = 4 if row else 2
    whole = (layer.depth if row else type_of(layer.sums.args[0]).shape[-1]) % 4 == 0
    rows, of_row = (1, 0) if row or whole else _padded_rows(layer)
    padded = rows * of_row or -(-layer.depth // 4) * 4
    copied = 0 if whole else of_row or padded
    size = copied if row else 6 * padded + copied
    text = definition(
        name,
        function,
        layer,
        f"slw_{'dense' if row else 'conv'}_{'line' if by_line else 'folded'}",
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
        weight: Array = constants.weight.reshape(-1, constants.weight.shape[-1])
        sums = None
        if by_line:
            sums = line.sums_of(weight, constants.bias, constants.multiplier, constants.shift)
        if of_row:
            apart = weight.reshape(rows, -1, weight.shape[-1])
            weight = np.pad(apart, ((0, 0), (0, of_row - apart.shape[1]), (0, 0)))
        folded = fold(replace(constants, weight=weight.reshape(-1, weight.shape[-1])))
        if folded is None:
            return None
        words, bias = folded
        packed = packed_rows(words, block, 2, multiple=2).view(np.int32)
        groups = groups_of(len(bias), block)
        return streamed(constants, bias, packed, layer, groups, sums, apart=row)

    return LibraryKernel("dsp_folded", text, size, overlaps, layer, arrange)


def _padded_rows(layer: Layer) -> tuple[int, int]:
    """Return a window's rows and their padded bytes as slw_row_bytes has them; (1, 0) for none."""
    inputs, outputs, (rows, columns), rest = geometry(layer)
    size = columns * inputs[2]
    padded = -(-size // 4) * 4
    more = rows * padded // 4 - -(-rows * size // 4)
    if more * outputs[2] > _COPY_COST * rows or rest[3] != 1:
        return 1, 0
    return rows, padded


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
