"""MaxPool that also tells where its values come from, and MaxUnpool, which puts them back."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from slipway import dtypes, relay
from slipway.frontends.budget import check_table
from slipway.frontends.onnx.converters import NodeView, converter
from slipway.frontends.onnx.operators.conv import padding_of
from slipway.relay.op_registry import const

MAX_WINDOW = 256  # elements of a window that is unrolled


def max_pool_with_indices(node: NodeView) -> list[Any]:
    """Return the largest of each window and its position in the flattened input.

    The window is unrolled: each of its places is one strided slice of the padded input.
    """
    kernel = tuple(node.attr("kernel_shape"))
    size = int(np.prod(kernel, dtype=np.int64))
    if size > MAX_WINDOW:
        raise node.unsupported(f"a window of {size} with Indices; up to {MAX_WINDOW} are served")
    count = len(kernel)
    ones = (1,) * count
    strides, dilation = tuple(node.attr("strides", ones)), tuple(node.attr("dilations", ones))
    batch, channels, *spatial = node.type().shape
    padding = padding_of(node, tuple(spatial), kernel, strides, dilation)
    low, high = padding[:count], padding[count:]
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    padded = [e + a + b for e, a, b in zip(spatial, low, high, strict=True)]
    free = [p - s for p, s in zip(padded, span, strict=True)]
    if node.attr("ceil_mode", 0):
        out = [-(-f // s) + 1 for f, s in zip(free, strides, strict=True)]
        # A window must begin inside the input or the padding in front of it.
        out = [
            o - ((o - 1) * s >= e + a)
            for o, s, e, a in zip(out, strides, spatial, low, strict=True)
        ]
    else:
        out = [f // s + 1 for f, s in zip(free, strides, strict=True)]
    check_table(node, *out)
    dtype = node.type().dtype
    least = -np.inf if dtypes.is_float(dtype) else dtypes.int_range(dtype)[0]
    need = [(o - 1) * s + w for o, s, w in zip(out, strides, span, strict=True)]
    widths = [(0, 0), (0, 0)] + [
        (a, max(n - e - a, 0)) for n, e, a in zip(need, spatial, low, strict=True)
    ]
    x = relay.nn.pad(node.input(0), widths, least)
    check_table(node, prod(kernel), *out)
    order = list(range(count))[:: -1 if node.attr("storage_order", 0) else 1]
    best: Any = None
    where: Any = None
    for place in product(*(range(k) for k in kernel)):
        begin = [p * d for p, d in zip(place, dilation, strict=True)]
        end = [b + (o - 1) * s + 1 for b, o, s in zip(begin, out, strides, strict=True)]
        part = relay.strided_slice(x, begin, end, list(strides), axes=list(range(2, 2 + count)))
        position: Any = np.zeros(out, np.int64)
        for axis in order:
            at = begin[axis] - low[axis] + np.arange(out[axis]) * strides[axis]
            view = [1] * count
            view[axis] = -1
            position = position * spatial[axis] + at.reshape(view)
        index = const(position[None, None])
        if best is None:
            best, where = part, relay.broadcast_to(index, (batch, channels, *out))
        else:
            better = relay.greater(part, best)
            best, where = relay.where(better, part, best), relay.where(better, index, where)
    offset = np.arange(batch * channels, dtype=np.int64) * int(np.prod(spatial, dtype=np.int64))
    return [best, relay.add(where, const(offset.reshape(batch, channels, *ones)))]


@converter("MaxUnpool")
def max_unpool(node: NodeView) -> Any:
    """Values put back where MaxPool took them from, zero elsewhere."""
    kernel = tuple(node.attr("kernel_shape"))
    count = len(kernel)
    strides = tuple(node.attr("strides", (1,) * count))
    pads = tuple(node.attr("pads", (0,) * (2 * count)))
    batch, channels, *spatial = node.type().shape
    extents = [
        (e - 1) * s - pads[a] - pads[a + count] + k
        for a, (e, s, k) in enumerate(zip(spatial, strides, kernel, strict=True))
    ]
    inferred = (batch, channels, *extents)
    total = int(np.prod(inferred, dtype=np.int64))
    flat = relay.scatter_elements(
        relay.zeros((total,), node.type().dtype),
        relay.reshape(node.input(1), (-1,)),
        relay.reshape(node.input(0), (-1,)),
        0,
    )
    result = relay.reshape(flat, inferred)
    if not node.has(2):
        return result
    wanted = node.ints(2, "the output shape")
    widths = [(0, w - d) for w, d in zip(wanted, inferred, strict=True)]
    if any(after < 0 for _, after in widths):
        raise node.unsupported(f"the output shape {wanted} is smaller than {inferred}")
    return relay.nn.pad(result, widths, 0.0)
