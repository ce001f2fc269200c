"""Where blocked channels do not pay: what the layout pass and the schedules both ask."""

from __future__ import annotations

from typing import Any

from slipway.relay.types import TensorType


def few_filters(attrs: Any, data: TensorType, kernel: TensorType, lanes: int) -> bool:
    """Return whether a 2-D convolution has so few filters that rows fill vectors better.

    A quarter of the lanes at most, which are 8 or more, and rows of as many without gaps.
    """
    if data.rank != 4 or attrs.groups != 1 or attrs.strides[-1] != 1:
        return False
    span = (kernel.shape[-1] - 1) * attrs.dilation[-1]
    width = data.shape[-1] + attrs.padding[1] + attrs.padding[3] - span
    return bool(max(8, 4 * kernel.shape[0]) <= lanes <= width)
