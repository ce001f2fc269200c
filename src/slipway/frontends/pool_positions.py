"""Max pools that also tell where their values come from, for every model format."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes, relay
from slipway.frontends.budget import take_table
from slipway.frontends.converter_table import UnsupportedNode
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr

MAX_WINDOW = 256  # elements of a window that is unrolled


def max_pool_with_positions(
    x: Expr, kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int],
    padding: Sequence[int], ceil_mode: bool, column_major: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """Return the largest of each window, and its position in the plane of its channel (int64).

    `padding` has the widths before, then those after.  The window is unrolled: each of its places
    is one strided slice of the padded input.
    """
    size = prod(kernel)
    if size > MAX_WINDOW:
        raise UnsupportedNode(f"a window of {size} with positions; up to {MAX_WINDOW} are served")
    count = len(kernel)
    batch, channels, *spatial = x.tensor_type.shape
    low, high = padding[:count], padding[count:]
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    padded = [e + a + b for e, a, b in zip(spatial, low, high, strict=True)]
    free = [p - s for p, s in zip(padded, span, strict=True)]
    if ceil_mode:
        out = [-(-f // s) + 1 for f, s in zip(free, strides, strict=True)]
        # A window must begin inside the input or the padding in front of it.
        out = [
            o - ((o - 1) * s >= e + a)
            for o, s, e, a in zip(out, strides, spatial, low, strict=True)
        ]
    else:
        out = [f // s + 1 for f, s in zip(free, strides, strict=True)]
    if any(extent < 0 for extent in out):
        raise UnsupportedNode(f"windows of {tuple(kernel)} are larger than {tuple(padded)}")
    dtype = x.tensor_type.dtype
    minimum = -np.inf if dtypes.is_float(dtype) else dtypes.int_range(dtype)[0]
    need = [(o - 1) * s + w for o, s, w in zip(out, strides, span, strict=True)]
    widths = [(0, 0), (0, 0)] + [
        (a, max(n - e - a, 0)) for n, e, a in zip(need, spatial, low, strict=True)
    ]
    x = relay.nn.pad(x, widths, minimum)
    take_table(size, *out)
    order = list(range(count))[:: -1 if column_major else 1]
    best: Any = None
    where: Any = None
    for indices in product(*(range(k) for k in kernel)):
        begin = [p * d for p, d in zip(indices, dilation, strict=True)]
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
    return best, where
