"""Windows of one point that step over rows of an image: the rows that they read, taken out first.

    nn.conv2d(%x, %w, strides=[2, 2], kernel_size=[1, 1])
        ->  nn.conv2d(strided_slice(%x, axes=[2], strides=[2]), %w, strides=[1, 2], ...)

The slice becomes a part of the copy that brings the data into blocks of channels, which then moves
half of it.  Every second point of a row would be a quarter, but is gathered point by point, where
whole rows are read as vectors.  Data that is in blocks already is read where it lies.
"""

from __future__ import annotations

from math import prod
from typing import Any

from slipway.relay import op_registry
from slipway.relay.expr import Call


def on_rows_read(call: Call) -> Call | None:
    """Return a convolution of plain layout on the rows it reads; None where it reads all rows."""
    attrs: Any = call.attrs
    data, kernel = (a.tensor_type for a in call.args)
    *outer, last = attrs.strides
    if prod(kernel.shape[2:]) != 1 or prod(outer) == 1 or any(attrs.padding):
        return None
    make: Any = op_registry.make("strided_slice")
    *image, _ = data.shape[2:]
    axes = [*range(2, data.rank - 1)]
    rows = make(call.args[0], [0] * len(image), image, strides=outer, axes=axes)
    within = attrs.replace(strides=(*[1] * len(outer), last))
    return op_registry.get(call.op.name)(rows, call.args[1], attrs=within, span=call.span)
