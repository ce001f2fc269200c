"""Outputs by one multiplication and one shift, where that gives each sum the same (dsp_stream.c).

The reference rounds twice, to the nearest and away from zero, adds the zero point and clips: a step
function with at most 255 steps.  With a zero point of -128, as behind a ReLU, all steps lie at
positive values, at equal distances but for the rounding.  So a line through them is looked for
whose numbers fit into 32 bits::

    output = clip((256 * sum + offset) * multiplier >> 32 >> right)

and each step is checked, for all sums that the layer can have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
ZERO = -128  # the zero point for which lines are looked for
_FURTHEST = 23  # right shifts: 127 << (32 + 23) is below 2^62
_TRIED = 800  # multipliers on either side of the nearest one
_FAR = 1 << 40  # beyond any offset


@dataclass(frozen=True)
class Sums:
    """What the sums of channels are, and how they are rescaled; arrays by channel, or in groups."""

    lowest: Array
    highest: Array
    multiplier: Array
    right: Array

    def taken(self, channels: Array) -> Sums:
        """Return those of some channels; one that is not there has no sums but 0."""

        def some(values: Array, none: int) -> Array:
            return np.append(values, none)[channels]

        return Sums(
            some(self.lowest, 0), some(self.highest, 0), some(self.multiplier, 1 << 30),
            some(self.right, 8),
        )  # fmt: skip


@dataclass(frozen=True)
class Lines:
    """The line of each channel: the right shift is one for a group of them."""

    right: Array
    multiplier: Array
    offset: Array


def sums_of(weight: Array, bias: Array, multiplier: Array | int, shift: Array | int) -> Sums:
    """Return the sums of weights [elements][channels] with int8 data; shifts are negative."""
    wide = weight.astype(np.int64)
    start = bias.astype(np.int64)
    lowest = start + np.minimum(127 * wide, -128 * wide).sum(axis=0)
    highest = start + np.maximum(127 * wide, -128 * wide).sum(axis=0)
    whole = [
        np.broadcast_to(np.asarray(a, np.int64), start.shape)
        for a in (multiplier, -np.asarray(shift))
    ]
    return Sums(lowest, highest, *whole)


def lines_of(sums: Sums) -> Lines | None:
    """Return the lines of channels in groups [groups][channels]; None where one has none."""
    flat = Sums(*(np.asarray(a).reshape(-1) for a in vars(sums).values()))
    if flat.right.min() < 1 or flat.multiplier.min() <= 0:
        return None
    steps = _steps(flat)
    # What is always clipped, as a dead channel's sums are, may have any shift.
    clipped = (steps[:, 0] > flat.highest) | (steps[:, -1] <= flat.lowest)
    right = np.where(clipped, _FURTHEST, flat.right).reshape(sums.right.shape).min(axis=1)
    right = np.where(clipped.reshape(sums.right.shape).all(axis=1), 0, right)
    right = np.minimum(right + 7, _FURTHEST)
    every = np.broadcast_to(right[:, None], sums.right.shape).reshape(-1)
    nearest = (flat.multiplier / 2.0 ** (flat.right + 7 - every)).round().astype(np.int64)
    nearest[clipped] = (1 << 31) - 1
    # What moves the furthest step by a twelfth of what an offset's unit does.
    unit = np.maximum(nearest // (12 * 256 * np.maximum(np.abs(steps[:, -1]), 1)), 1)
    multiplier, offset = nearest.copy(), np.zeros_like(nearest)
    left = np.arange(len(nearest))
    for tried in range(2 * _TRIED + 1):
        other = nearest[left] + unit[left] * ((tried + 1) // 2 * (1 if tried % 2 else -1))
        smallest, largest = _offsets(other, every[left], steps[left], flat, left)
        found = (smallest <= largest) & (other > 0) & (other < 1 << 31)
        multiplier[left[found]] = other[found]
        offset[left[found]] = np.clip(0, smallest[found], largest[found])
        left = left[~found]
        if not len(left):
            break
    ends = (256 * flat.lowest + offset, 256 * flat.highest + offset)
    if len(left) or ends[0].min() < -(1 << 31) or ends[1].max() >= 1 << 31:
        return None
    shape = sums.right.shape
    return Lines(right, multiplier.reshape(shape), offset.reshape(shape))


_LEVELS = np.arange(-127, 128, dtype=np.int64)


def _steps(sums: Sums) -> Array:
    """Return [channels][255]: the smallest sum that the reference gives that level."""
    right = sums.right[:, None]
    rounded = ((_LEVELS - ZERO) << right) - (1 << (right - 1))
    return _ceil_div((rounded << 31) - (1 << 30), sums.multiplier[:, None])


def _offsets(
    multiplier: Array, right: Array, steps: Array, sums: Sums, left: Array
) -> tuple[Array, Array]:
    """Return the smallest and the largest offset with which a multiplier serves every sum."""
    lowest, highest = sums.lowest[left, None], sums.highest[left, None]
    reached = _ceil_div(_LEVELS << (32 + right[:, None]), np.maximum(multiplier, 1)[:, None])
    smallest = np.where(steps <= highest, reached - 256 * np.maximum(steps, lowest), -_FAR)
    largest = np.where(
        steps > lowest, reached - 1 - 256 * (np.minimum(steps, highest + 1) - 1), _FAR
    )
    return smallest.max(axis=1), largest.min(axis=1)


def _ceil_div(a: Array, b: Array) -> Array:
    return -(-a // b)
