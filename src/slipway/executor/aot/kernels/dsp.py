"""Kernels for cores that multiply pairs of 16-bit numbers (dsp.c)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slipway.executor.aot.kernels.constants import LayerConstants
from slipway.executor.aot.kernels.layer import Layer, type_of
from slipway.executor.aot.kernels.library import (
    POINTER_BYTES,
    LibraryKernel,
    definition,
    is_row,
    overlap_of,
)
from slipway.relay.expr import Function

Array = np.ndarray[Any, Any]


def dsp_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel of a matched function."""
    if layer.kind == "depthwise":
        return _depthwise(name, function, layer)
    return _convolution(name, function, layer)


def _convolution(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    # One row times a matrix needs no gathering.
    row = layer.depth % 4 == 0 and is_row(layer)
    text = definition(
        name,
        function,
        layer,
        "slw_dense_int8" if row else "slw_conv_int8",
        weight_view="uint32_t",
        has_workspace=not row,
        inputs=(1, 1, layer.depth) if row else None,
    )
    if text is None:
        return None
    size = 0 if row else 5 * (-(-layer.depth // 4) * 4)
    # A product writes its first outputs while it still reads the whole row: no overlap there.
    overlap = None if row else overlap_of(layer, 2)

    def arrange(constants: LayerConstants) -> dict[int, Array]:
        packed = pack_convolution(constants.weight)
        return replace(constants, weight=packed).by_operand(layer)

    return LibraryKernel("dsp", text, size, overlap, layer, arrange)


def _depthwise(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    text = definition(
        name,
        function,
        layer,
        "slw_depthwise_int8",
        weight_type="int16_t",
        weight_view="uint32_t",
        has_workspace=True,
    )
    if text is None:
        return None
    channels = type_of(layer.sums.args[0]).shape[3]
    size = -(-channels // 16) * 16 + POINTER_BYTES * layer.depth

    def arrange(constants: LayerConstants) -> dict[int, Array]:
        packed = pack_depthwise(constants.weight)
        return replace(constants, weight=packed).by_operand(layer)

    return LibraryKernel("dsp", text, size, overlap_of(layer, 0), layer, arrange)


def pack_convolution(weight: Array) -> Array:
    """[K][O] to [O / 2][K / 4][2][4], both filled up with zeros."""
    rows = np.ascontiguousarray(weight.reshape(-1, weight.shape[-1]).T)
    units, depth = rows.shape
    full = np.pad(rows, ((0, units % 2), (0, -depth % 4)))
    pairs = full.reshape(full.shape[0] // 2, 2, full.shape[1] // 4, 4)
    return np.ascontiguousarray(pairs.transpose(0, 2, 1, 3))


def pack_depthwise(weight: Array) -> Array:
    """[kH][kW][C] int8 to [C / 4][kH * kW][4] int16 with each four channels as 0, 2, 1, 3."""
    flat = weight.reshape(-1, weight.shape[-1])
    full = np.pad(flat, ((0, 0), (0, -flat.shape[1] % 4)))
    rows = full.reshape(len(flat), -1, 4)[:, :, [0, 2, 1, 3]]
    return np.ascontiguousarray(rows.transpose(1, 0, 2).astype(np.int16))
