"""Kernels for cores without instructions for short integers (scalar.c)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slipway.executor.aot.kernels.constants import LayerConstants, packed_channels
from slipway.executor.aot.kernels.layer import Layer, type_of
from slipway.executor.aot.kernels.library import (
    POINTER_BYTES,
    LibraryKernel,
    definition,
    is_direct,
    is_row,
    overlaps_of,
)
from slipway.relay.expr import Function

Array = np.ndarray[Any, Any]


def scalar_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel of a matched function."""
    channels = type_of(layer.sums.args[0]).shape[-1]
    if layer.kind == "depthwise":
        helper, overlaps = "slw_depthwise_scalar", overlaps_of(layer, 0)
        size = -(-channels // 16) * 16 + POINTER_BYTES * layer.depth
    elif is_row(layer):
        # It writes its first outputs while it still reads the whole row: no overlap there.
        helper, overlaps, size = "slw_dense_scalar", (), 0
    else:
        helper, size = "slw_conv_scalar", 0 if is_direct(layer) else 4 * layer.depth
        overlaps = overlaps_of(layer, 4, in_turns=True)
    inputs = (1, 1, layer.depth) if helper == "slw_dense_scalar" else None
    multiplier, shift = layer.multiplier, layer.shift
    if isinstance(multiplier, tuple):
        multiplier = ("constant", int(_twice(multiplier[1])))
    if isinstance(shift, tuple):
        shift = ("constant", ~shift[1])
    told = replace(layer, multiplier=multiplier, shift=shift)
    text = definition(name, function, told, helper, has_workspace=size > 0, inputs=inputs)
    if text is None:
        return None

    def arrange(constants: LayerConstants) -> dict[int, Array] | None:
        if constants.largest_shift >= 0:
            return None
        bias = np.pad(constants.bias, (0, -len(constants.bias) % 4))
        multiplier, shift = constants.multiplier, constants.shift
        if not isinstance(multiplier, int):
            multiplier = _twice(multiplier)
        if not isinstance(shift, int):
            shift = ~shift
        weight = packed_channels(constants.weight, 4)
        return LayerConstants(weight, bias, multiplier, shift).by_operand(layer)

    return LibraryKernel("scalar", text, size, overlaps, layer, arrange)


def _twice(multiplier: Any) -> Any:
    """Return 2 * multiplier, which is below 2^32, in the bits of an int32."""
    return (2 * np.asarray(multiplier, np.int64)).astype(np.uint32).view(np.int32)
