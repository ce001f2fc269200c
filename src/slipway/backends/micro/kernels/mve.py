"""Kernels for cores with vectors of 16 bytes (mve.c, mve_depthwise.c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.backends.micro.kernels.constants import LayerConstants, packed_rows
from slipway.backends.micro.kernels.layer import Layer, geometry, type_of
from slipway.backends.micro.kernels.library import (
    POINTER_BYTES,
    LibraryKernel,
    definition,
    is_row,
    overlaps_of,
)
from slipway.relay.expr import Function

Array = np.ndarray[Any, Any]
# Eight channels as the depthwise kernels sum them: the even ones, the odd ones.
_EVEN_ODD = np.array([0, 2, 4, 6, 1, 3, 5, 7])


def mve_kernel(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    """Return the kernel of a matched function."""
    if layer.kind == "depthwise":
        return _depthwise(name, function, layer)
    return _convolution(name, function, layer)


def _convolution(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    row = is_row(layer)
    text = _definition(name, function, layer, "slw_dense_mve" if row else "slw_conv_mve")
    if text is None:
        return None
    size = 0 if row else 2 * _multiple(layer.depth, 16)
    overlaps = () if row else overlaps_of(layer, 2, interleaved=True)

    def arrange(constants: LayerConstants) -> dict[int, Array] | None:
        taps = constants.weight.reshape(-1, constants.weight.shape[-1])
        return _streamed(layer, constants, taps, np.arange(4), scales_first=row)

    return LibraryKernel("mve", text, size, overlaps, layer, arrange)


def _depthwise(name: str, function: Function, layer: Layer) -> LibraryKernel | None:
    _, _, (height, width), rest = geometry(layer)
    by_columns = height <= 4 and width <= 4 and rest[3] == 1
    helper = "slw_depthwise_columns" if by_columns else "slw_depthwise_mve"
    text = _definition(name, function, layer, helper)
    if text is None:
        return None
    channels = type_of(layer.sums.args[0]).shape[3]
    lanes = _multiple(channels, 16)
    if by_columns:
        size = 16 * lanes + lanes
    else:
        pointers = _multiple(layer.depth + 4, 4)
        size = 16 * _multiple(layer.depth, 16) + lanes + POINTER_BYTES * pointers

    def arrange(constants: LayerConstants) -> dict[int, Array] | None:
        weight = constants.weight.reshape(height, width, channels)
        if by_columns:
            weight = np.pad(weight, ((0, 4 - height), (0, 0), (0, 0))).transpose(1, 0, 2)
        return _streamed(layer, constants, weight.reshape(-1, channels), _EVEN_ODD)

    return LibraryKernel("mve", text, size, overlaps_of(layer, 0), layer, arrange)


def _definition(name: str, function: Function, layer: Layer, helper: str) -> str | None:
    row = helper == "slw_dense_mve"
    return definition(
        name,
        function,
        layer,
        helper,
        has_workspace=not row,
        weight_type="int32_t",
        streamed=True,
        inputs=(1, 1, layer.depth) if row else None,
    )


def _multiple(number: int, of: int) -> int:
    return -(-number // of) * of


def _streamed(
    layer: Layer,
    constants: LayerConstants,
    taps: Array,
    order: Array,
    *,
    scales_first: bool = False,
) -> dict[int, Array] | None:
    """Return the operands: the stream (mve.c) for the weights, next to nothing for the others.

    `taps` are [taps][channels]; `order` is that of the channels in each group of so many.  None
    when a shift is not to the right.
    """
    if constants.largest_shift >= 0:
        return None
    channels = taps.shape[1]
    full = _multiple(channels, len(order))
    positions = (np.arange(0, full, len(order))[:, None] + order).reshape(-1)

    def fours(array: Array | int, filler: int) -> Array:
        every = np.broadcast_to(np.asarray(array, np.int32), channels)
        return np.pad(every, (0, full - channels), constant_values=filler)[positions].reshape(-1, 4)

    padded = np.pad(taps, ((0, 0), (0, full - channels)))[:, positions]
    weights = packed_rows(padded, 4, 16, multiple=16)
    words = weights.reshape(len(weights), -1).astype(np.int8).view(np.int32)
    scales = np.concatenate([fours(constants.multiplier, 0), fours(constants.shift, -1)], axis=1)
    parts = [fours(constants.bias, 0), words]
    if scales_first:
        each = scales if isinstance(constants.multiplier, np.ndarray) else scales[:1]
        stream = np.concatenate([each.reshape(-1), np.concatenate(parts, axis=1).reshape(-1)])
    else:
        stream = np.concatenate([*parts, scales], axis=1).reshape(-1)
    nothing = np.zeros(1, np.int32)
    return LayerConstants(stream, nothing, nothing, nothing).by_operand(layer)
