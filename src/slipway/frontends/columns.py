"""Columns summed back into an image (Col2Im, fold), for every model format."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_table
from slipway.frontends.converter_table import UnsupportedNode
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


def image_of_columns(
    x: Expr, image: Sequence[int], block: Sequence[int], strides: Sequence[int],
    dilation: Sequence[int], padding: Sequence[int],
) -> Any:  # fmt: skip
    """Return the image of `x` (batch, channels x block, blocks): where blocks overlap, their sum.

    A transposed convolution with unit kernels.  `padding` has the widths before, then those after.
    """
    count = len(block)
    if count not in (1, 2, 3):
        raise UnsupportedNode(f"has {count} spatial axes; 1 to 3 are served")
    size, extra = [], []
    for a in range(count):
        room = image[a] + padding[a] + padding[a + count] - (block[a] - 1) * dilation[a] - 1
        size.append(room // strides[a] + 1)
        extra.append(room % strides[a])
    taps = prod(block)
    batch, rows, _ = x.tensor_type.shape
    if min(block) < 1 or rows % taps:
        raise UnsupportedNode(f"{rows} rows are no channels of blocks {tuple(block)}")
    channels = rows // taps
    take_table(channels, taps, taps)
    unit = np.eye(taps).reshape(taps, 1, *block)
    weight = np.tile(unit, (channels, 1, *(1 for _ in block))).astype(x.tensor_type.dtype)
    function = (
        relay.nn.conv1d_transpose, relay.nn.conv2d_transpose, relay.nn.conv3d_transpose,
    )[count - 1]  # fmt: skip
    return function(
        relay.reshape(x, (batch, rows, *size)), const(weight), tuple(strides), tuple(padding),
        tuple(dilation), groups=channels, output_padding=extra,
    )  # fmt: skip
