"""How far a kernel's output may reach into an input that it is still reading.

A window kernel (depthwise convolution, pooling) over an NHWC tensor walks its output pixels in
order, and at pixel t reads a window of the input.  Laid `lead` bytes below the input, the output's
bytes up to pixel t must end at or below the lowest input byte that t or a later pixel reads::

    output_offset + end(t) <= input_offset + lowest_read(t)      for every t

so lead = max over t of end(t) - lowest_read(t).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Overlap:
    """Output `output` of a kernel may overlap its operand `operand`; see memory_plan.Share."""

    operand: int
    output: int
    lead_bytes: int
    exact: bool


def window_lead_bytes(
    input_hwc: tuple[int, int, int],
    output_hwc: tuple[int, int, int],
    strides: tuple[int, int],
    pad_top_left: tuple[int, int],
    element_bytes: int = 1,
    pixels_at_once: int = 0,
    interleaved: bool = False,
) -> int:
    """Return the least bytes that the output must start below the input, at least 0.

    Shapes are (height, width, channels) of one image; the output pixel (y, x) reads from input
    row max(0, y * stride - pad) and column max(0, x * stride - pad) on.  The kernel may visit the
    channels of one pixel in any order.  `pixels_at_once`: it reads the windows of that many pixels
    whole before it writes the first of them; 0 when it reads and writes one pixel after another.
    `interleaved`: it reads and writes those pixels in any order.
    """
    rows, columns, channels = output_hwc
    y, x = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    top = np.maximum(0, y * strides[0] - pad_top_left[0])
    left = np.maximum(0, x * strides[1] - pad_top_left[1])
    reads = ((top * input_hwc[1] + left) * input_hwc[2] * element_bytes).reshape(-1)
    lowest = np.minimum.accumulate(reads[::-1])[::-1]
    ends = (np.arange(rows * columns) + 1) * channels * element_bytes
    if pixels_at_once:
        if interleaved:
            starts = np.arange(0, rows * columns, pixels_at_once)
            last = np.minimum(starts + pixels_at_once, rows * columns) - 1
            return max(0, int(np.max(ends[last] - lowest[starts])))
        starts = np.arange(pixels_at_once, rows * columns, pixels_at_once)
        if not len(starts):
            return 0
        return max(0, int(np.max(ends[starts - 1] - lowest[starts])))
    return max(0, int(np.max(ends - lowest)))
