"""A transposed convolution becomes one convolution whose channels are then spread over pixels.

Result pixels that leave the same rest modulo the stride see the same taps of the kernel.  So the
kernel is cut into stride x stride kernels, one for each rest; one plain convolution computes them
all as channels, and a transpose puts each at its pixels::

    nn.conv2d_transpose(%x, %w, stride s)
        ->  strided_slice(reshape(transpose(reshape(nn.conv2d(%x, %v)))))

No product with zero is computed, and the work is a convolution's, which has fast schedules.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.expr import Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.ops.windows import SPATIAL
from slipway.relay.visit import rewrite

MAX_FILLING = 8  # times the taps of the kernel: with great strides most would be zeros


def subpixel_conv(function: Function) -> Function:
    """Return `function` with its transposed convolutions rewritten.

    Those with constant kernels, one group and no dilation; others stay.
    """
    return rewrite(function, _rule)  # type: ignore[no-any-return]


def _rule(call: Any) -> Expr | None:
    if not is_call_of(call, *(f"nn.conv{n}d_transpose" for n in SPATIAL)):
        return None
    attrs, kernel = call.attrs, call.args[1]
    if not isinstance(kernel, Constant) or attrs.groups != 1 or set(attrs.dilation) != {1}:
        return None
    strides, window = attrs.strides, kernel.array.shape[2:]
    full = prod(-(-k // s) * s for k, s in zip(window, strides, strict=True))
    if full > MAX_FILLING * prod(window):
        return None
    batch, channels, *size = call.tensor_type.shape
    count = len(strides)
    weight = phases(kernel.array, strides)
    taps = weight.shape[2:]
    face = op_registry.face
    with op_registry.span(call.span):
        many: Expr = face(f"nn.conv{count}d")(
            call.args[0],
            Constant(weight),
            padding=tuple(t - 1 for t in taps),
            channels=weight.shape[0],
            kernel_size=taps,
            out_dtype=attrs.out_dtype,
        )
        places = many.tensor_type.shape[2:]
        spread = face("reshape")(many, (batch, channels, *strides, *places))
        order = [axis for a in range(count) for axis in (2 + count + a, 2 + a)]
        spread = face("transpose")(spread, (0, 1, *order))
        extents = [place * stride for place, stride in zip(places, strides, strict=True)]
        whole = face("reshape")(spread, (batch, channels, *extents))
        first = attrs.padding[:count]
        ends = [begin + extent for begin, extent in zip(first, size, strict=True)]
        if any(end > extent for end, extent in zip(ends, extents, strict=True)):
            return None  # output_padding reaches beyond the last pixel that any tap touches
        if ends == extents and not any(first):
            return whole  # type: ignore[no-any-return]
        cut: Expr = face("strided_slice")(whole, (0, 0, *first), (batch, channels, *ends))
        return cut


def phases(kernel: np.ndarray[Any, Any], strides: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the kernel (C, O, ...) of a transposed convolution as (O * strides, C, taps).

    Tap t of phase r is tap r + stride * t of the whole kernel, in reverse order; taps beyond the
    kernel are zero.
    """
    inputs, outputs, *window = kernel.shape
    count = len(window)
    taps = [-(-k // s) for k, s in zip(window, strides, strict=True)]
    extents = [t * s for t, s in zip(taps, strides, strict=True)]
    full = np.zeros((inputs, outputs, *extents), kernel.dtype)
    full[(slice(None), slice(None), *(slice(k) for k in window))] = kernel
    pairs = [n for pair in zip(taps, strides, strict=True) for n in pair]
    cut = np.flip(full.reshape(inputs, outputs, *pairs), tuple(2 + 2 * a for a in range(count)))
    phase, tap = ([2 + 2 * a + b for a in range(count)] for b in (1, 0))
    done = cut.transpose(1, *phase, 0, *tap)
    return np.ascontiguousarray(done.reshape(outputs * prod(strides), inputs, *taps))
