"""Kernels for cores that multiply pairs of 16-bit numbers (dsp.c)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slipway.backends.micro.kernels.constants import LayerConstants, packed_channels, packed_rows
from slipway.backends.micro.kernels.layer import Layer, type_of
from slipway.backends.micro.kernels.library import (
    POINTER_BYTES,
    LibraryKernel,
    definition,
    is_row,
    overlaps_of,
)
from slipway.relay.expr import Function

Array = np.ndarray[Any, Any]
EVEN_ODD = [0, 2, 1, 3]  # of four numbers, in words of two: as sxtb16 widens four bytes


def dsp_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel of a matched function."""
    if layer.kind == "depthwise":
        return _depthwise(name, function, layer, wide=False)
    return _convolution(name, function, layer, wide=False)


def wide_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel with weights of 16 bits and larger code: fewer instructions, more flash.

    The weights of a depthwise convolution have 16 bits anyway.
    """
    if layer.kind == "depthwise":
        return _depthwise(name, function, layer, wide=True)
    return _convolution(name, function, layer, wide=True)


def _convolution(
    name: str, function: Function, layer: Layer, *, wide: bool
) -> LibraryKernel | None:
    # One row times a matrix needs no gathering.
    row = layer.depth % 8 == 0 and is_row(layer)
    text = definition(
        name,
        function,
        _told(layer),
        f"slw_{'dense' if row else 'conv'}_{'wide' if wide else 'int8'}",
        weight_type="int16_t" if wide else "int8_t",
        weight_view="uint32_t",
        has_workspace=not row,
        inputs=(1, 1, layer.depth) if row else None,
    )
    if text is None:
        return None
    whole = type_of(layer.sums.args[0]).shape[-1] % 4 == 0 and not row
    size = 0 if row else (6 if whole else 7) * (-(-layer.depth // 8) * 8)
    # A product writes its first outputs while it still reads the whole row: no overlap there.
    overlaps = () if row else overlaps_of(layer, 3)

    def arrange(constants: LayerConstants) -> dict[int, Array]:
        block = 4 if row else 2
        packed = packed_rows(constants.weight, block, 4, multiple=8)
        if wide:
            packed = np.asarray(packed[..., EVEN_ODD].astype(np.int16), order="C")
        bias = np.pad(constants.bias, (0, -len(constants.bias) % block))
        return _arranged(replace(constants, weight=packed, bias=bias), layer)

    return LibraryKernel("dsp_wide" if wide else "dsp", text, size, overlaps, layer, arrange)


def _depthwise(name: str, function: Function, layer: Layer, *, wide: bool) -> LibraryKernel | None:
    text = definition(
        name,
        function,
        _told(layer),
        "slw_depthwise_wide" if wide else "slw_depthwise_int8",
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
        return _arranged(replace(constants, weight=packed), layer)

    family = "dsp_wide" if wide else "dsp"
    return LibraryKernel(family, text, size, overlaps_of(layer, 0), layer, arrange)


def _told(layer: Layer) -> Layer:
    """Return the layer with the shift as slw_channel_of wants it."""
    if isinstance(layer.shift, tuple):
        return replace(layer, shift=("constant", ~layer.shift[1]))
    return layer


def _arranged(constants: LayerConstants, layer: Layer) -> dict[int, Array]:
    shift = constants.shift
    return replace(constants, shift=shift if isinstance(shift, int) else ~shift).by_operand(layer)


def pack_depthwise(weight: Array) -> Array:
    """[kH][kW][C] int8 to [C / 4][kH * kW][4] int16 with each four channels as 0, 2, 1, 3."""
    fours = packed_channels(weight, 4)[:, :, EVEN_ODD]
    return np.asarray(fours.astype(np.int16), order="C")
