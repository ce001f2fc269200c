"""Kernels for cores without instructions for short integers (scalar.c)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slipway.backends.micro.kernels.constants import LayerConstants
from slipway.backends.micro.kernels.layer import Layer, type_of
from slipway.backends.micro.kernels.library import (
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
        helper, overlaps = "slw_depthwise_scalar", overlaps_of(layer, 4, interleaved=True)
        size = -(-channels // 16) * 16 + 4 * POINTER_BYTES * layer.depth
    elif is_row(layer):
        # It writes its first outputs while it still reads the whole row: no overlap there.
        helper, overlaps, size = "slw_dense_scalar", (), 0
    else:
        helper, size = "slw_conv_scalar", 0 if is_direct(layer) else 4 * layer.depth
        overlaps = overlaps_of(layer, 4, interleaved=True)
    inputs = (1, 1, layer.depth) if helper == "slw_dense_scalar" else None
    scales = layer.multiplier, layer.shift
    if isinstance(layer.multiplier, tuple) and isinstance(layer.shift, tuple):
        word = scale_words(np.asarray(layer.shift[1]), layer.zero)
        if word is None:
            return None
        scales = ("constant", int(_twice(layer.multiplier[1]))), ("constant", int(word))
    told = replace(layer, multiplier=scales[0], shift=scales[1])
    text = definition(name, function, told, helper, has_workspace=size > 0, inputs=inputs)
    if text is None:
        return None

    def arrange(constants: LayerConstants) -> dict[int, Array] | None:
        bias = np.pad(constants.bias, (0, -len(constants.bias) % 4))
        weight = pack_fours(constants.weight, overlap=layer.kind == "depthwise")
        word = scale_words(np.asarray(constants.shift), layer.zero)
        if word is None:
            return None
        return LayerConstants(weight, bias, _twice(constants.multiplier), word).by_operand(layer)

    return LibraryKernel("scalar", text, size, overlaps, layer, arrange)


def _twice(multiplier: Any) -> Array:
    """Return 2 * multiplier, which is below 2^32, in the bits of an int32."""
    return (2 * np.asarray(multiplier, np.int64)).astype(np.uint32).view(np.int32)


def scale_words(shift: Array, zero: int) -> Array | None:
    """Return the zero point's term and the right shift as scalar.c wants them; None: too large."""
    right = -shift.astype(np.int64)
    if right.min() < 1 or right.max() > 30:
        return None
    words = ((((2 * zero + 1) << right) + 1) << 5) + right + 1
    return None if np.abs(words).max() >= 1 << 31 else words.astype(np.int32)


def pack_fours(weight: Array, *, overlap: bool) -> Array:
    """[K][O] to [O / 4][K][4].

    Where O is no multiple of four the last four begin with the last but three if they may `overlap`
    those before; else they are padded with zeros.
    """
    flat = weight.reshape(-1, weight.shape[-1])
    left = flat.shape[1] % 4
    if left and overlap and flat.shape[1] > 4:
        full = np.concatenate([flat[:, :-left], flat[:, -4:]], axis=1)
    else:
        full = np.pad(flat, ((0, 0), (0, -flat.shape[1] % 4)))
    return np.asarray(full.reshape(len(full), -1, 4).transpose(1, 0, 2), order="C")
