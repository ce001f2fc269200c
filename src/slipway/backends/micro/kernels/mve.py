"""Kernels for cores with vectors of 16 bytes (mve.c)."""

from __future__ import annotations

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
# The channels of a sixteen as their sums come out of the multiplier: even bytes, then odd ones.
_SUMS_ORDER = np.arange(16).reshape(4, 4).T[[0, 2, 1, 3]].reshape(-1)


def mve_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel of a matched function."""
    if layer.kind == "depthwise":
        return _depthwise(name, function, layer)
    return _convolution(name, function, layer)


def _convolution(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    row = is_row(layer)
    text = definition(
        name,
        function,
        layer,
        "slw_dense_mve" if row else "slw_conv_mve",
        has_workspace=not row,
        scale_copies=4,
        inputs=(1, 1, layer.depth) if row else None,
    )
    if text is None:
        return None
    size = 0 if row else 2 * (-(-layer.depth // 16) * 16)
    overlaps = () if row else overlaps_of(layer, 2, in_turns=True)

    def arrange(constants: LayerConstants) -> dict[int, Array] | None:
        return _arrange(
            layer, constants, packed_rows(constants.weight, 4, 16, multiple=16), np.arange(4)
        )

    return LibraryKernel("mve", text, size, overlaps, layer, arrange)


def _depthwise(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    text = definition(
        name, function, layer, "slw_depthwise_mve", has_workspace=True, scale_copies=4
    )
    if text is None:
        return None
    channels = type_of(layer.sums.args[0]).shape[3]
    size = -(-channels // 16) * 16 + POINTER_BYTES * (layer.depth + layer.depth % 2)

    def arrange(constants: LayerConstants) -> dict[int, Array] | None:
        if constants.weight.min() == -128:
            return None  # two products of -128 * -128 do not fit into 16 bits
        return _arrange(
            layer, constants, packed_channels(constants.weight, 16, multiple=2), _SUMS_ORDER
        )

    return LibraryKernel("mve", text, size, overlaps_of(layer, 0), layer, arrange)


def _arrange(
    layer: Layer, constants: LayerConstants, weight: Array, order: Array
) -> dict[int, Array] | None:
    """Fill biases and scales up to full vectors; None when a shift is not to the right."""
    if constants.largest_shift >= 0:
        return None

    def full(array: Array | int, filler: int) -> Array | int:
        if isinstance(array, int):
            return array
        padded = np.pad(array, (0, -len(array) % len(order)), constant_values=filler)
        return np.asarray(padded.reshape(-1, len(order))[:, order].reshape(-1), order="C")

    bias = full(constants.bias, 0)
    assert not isinstance(bias, int)
    return LayerConstants(
        weight, bias, full(constants.multiplier, 0), full(constants.shift, -1)
    ).by_operand(layer)
