"""The constants of a quantised layer, so that a kernel's fast arithmetic is exact for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.backends.micro.kernels.layer import Layer

Array = np.ndarray[Any, Any]
_FURTHEST_RIGHT = 22  # 255 * 2^22, twice a zero point, is below 2^30


@dataclass(frozen=True)
class LayerConstants:
    """Weights (channels last), biases, and scales: an array, or one number for all channels."""

    weight: Array
    bias: Array
    multiplier: Array | int
    shift: Array | int

    @property
    def largest_shift(self) -> int:
        """The largest exponent; a right shift is negative."""
        return int(np.max(self.shift))

    def by_operand(self, layer: Layer) -> dict[int, Array]:
        """Return the arrays by the number of their operand."""
        found = {layer.weight: self.weight}
        for number, value in (
            (layer.bias, self.bias),
            (layer.multiplier, self.multiplier),
            (layer.shift, self.shift),
        ):
            if isinstance(number, int):
                assert not isinstance(value, int)
                found[number] = value
        return found


def packed_rows(weight: Array, rows: int, depth: int, multiple: int) -> Array:
    """[K][O] to [O / rows][K / depth][rows][depth]; K is padded to a multiple with zeros."""
    matrix = np.asarray(weight.reshape(-1, weight.shape[-1]).T, order="C")
    full = np.pad(matrix, ((0, -matrix.shape[0] % rows), (0, -matrix.shape[1] % multiple)))
    blocks = full.reshape(full.shape[0] // rows, rows, full.shape[1] // depth, depth)
    return np.asarray(blocks.transpose(0, 2, 1, 3), order="C")


def packed_channels(weight: Array, lanes: int, multiple: int = 1) -> Array:
    """[K][C] to [C / lanes][K][lanes]; K is padded to a multiple with zeros."""
    flat = weight.reshape(-1, weight.shape[-1])
    full = np.pad(flat, ((0, -len(flat) % multiple), (0, -flat.shape[1] % lanes)))
    return np.asarray(full.reshape(len(full), -1, lanes).transpose(1, 0, 2), order="C")


def settle_constants(layer: Layer, operands: Sequence[Array | None]) -> LayerConstants | None:
    """Return the layer's constants with all sums below 2^29; None when that is not possible.

    With an exponent above 0 it is the shifted sums.  A channel whose sums may be larger, or whose
    zero point shifted left would not fit into 32 bits beside them, must have a constant output, as
    the dead channels of pruned models do; its weights and scale are replaced by ones that give that
    output.
    """

    def value(number: Any) -> Array | int | None:
        return operands[number] if isinstance(number, int) else int(number[1])

    weight, bias = operands[layer.weight], value(layer.bias)
    multiplier, shift = value(layer.multiplier), value(layer.shift)
    if weight is None or bias is None or multiplier is None or shift is None:
        return None
    if isinstance(bias, int):
        bias = np.full(weight.shape[-1], bias, np.int32)
    products = 128 * np.abs(weight.astype(np.int64)).reshape(-1, weight.shape[-1]).sum(axis=0)
    left = np.maximum(np.asarray(shift), 0)
    large = (products + np.abs(bias.astype(np.int64))) << left >= 1 << 29
    large |= np.asarray(shift) < -_FURTHEST_RIGHT
    if not large.any():
        return LayerConstants(weight, bias, multiplier, shift)
    if isinstance(multiplier, int) or isinstance(shift, int) or not isinstance(layer.bias, int):
        return None
    weight, bias, multiplier, shift = (a.copy() for a in (weight, bias, multiplier, shift))
    for c in np.flatnonzero(large):
        ends = {
            _output(
                int(bias[c]) + sign * int(products[c]), int(multiplier[c]), int(shift[c]), layer
            )
            for sign in (-1, 1)
        }
        if len(ends) != 1:
            return None
        weight[..., c] = 0
        bias[c], multiplier[c], shift[c] = 4 * (ends.pop() - layer.zero), 1 << 30, -1
    return LayerConstants(weight, bias, multiplier, shift)


def _output(total: int, multiplier: int, shift: int, layer: Layer) -> int:
    """Requantise one sum in exact arithmetic, as the reference kernels do."""
    total = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    total = (total << max(shift, 0)) + (1 << 31)
    total = total % (1 << 32) - (1 << 31)
    value = (total * multiplier + (1 << 30)) >> 31
    right = max(-shift, 0)
    mask = (1 << right) - 1
    value = (value >> right) + ((value & mask) > (mask >> 1) + (value < 0)) + layer.zero
    return max(layer.low, min(layer.high, value))
