"""A transposed convolution becomes one convolution whose channels are then spread over pixels.

Result pixels that leave the same rest modulo the stride see the same taps of the kernel.  So the
kernel is cut into stride x stride kernels, one for each rest; one plain convolution computes them
all as channels, and a transpose puts each at its pixels::

    nn.conv2d_transpose(%x, %w, stride s)
        ->  strided_slice(reshape(transpose(reshape(nn.conv2d(%x, %v)))))

No product with zero is computed, and the work is a convolution's, which has fast schedules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.relay import op_registry
from slipway.relay.expr import Constant, Expr, Function
from slipway.relay.op_registry import is_call_of
from slipway.relay.visit import rewrite

MAX_FILLING = 8  # times the taps of the kernel: with great strides most would be zeros


def subpixel_conv(function: Function) -> Function:
    """Return `function` with its two-dimensional transposed convolutions rewritten.

    Those with constant kernels, one group and no dilation; others stay.
    """
    return rewrite(function, _rule)  # type: ignore[no-any-return]


def _rule(call: Any) -> Expr | None:
    if not is_call_of(call, "nn.conv2d_transpose"):
        return None
    attrs, kernel = call.attrs, call.args[1]
    if not isinstance(kernel, Constant) or attrs.groups != 1 or tuple(attrs.dilation) != (1, 1):
        return None
    sh, sw = attrs.strides
    kh, kw = kernel.array.shape[2:]
    if -(-kh // sh) * sh * -(-kw // sw) * sw > MAX_FILLING * kh * kw:
        return None
    batch, channels, height, width = call.tensor_type.shape
    weight = phases(kernel.array, (sh, sw))
    th, tw = weight.shape[2:]
    face = op_registry.face
    with op_registry.span(call.span):
        many: Expr = face("nn.conv2d")(
            call.args[0],
            Constant(weight),
            padding=(th - 1, tw - 1),
            channels=weight.shape[0],
            kernel_size=(th, tw),
            out_dtype=attrs.out_dtype,
        )
        _, _, rows, columns = many.tensor_type.shape
        spread = face("reshape")(many, (batch, channels, sh, sw, rows, columns))
        spread = face("transpose")(spread, (0, 1, 4, 2, 5, 3))
        whole = face("reshape")(spread, (batch, channels, rows * sh, columns * sw))
        top, left = attrs.padding[0], attrs.padding[1]
        if top + height > rows * sh or left + width > columns * sw:
            return None  # output_padding reaches beyond the last pixel that any tap touches
        if (top, left, height, width) == (0, 0, rows * sh, columns * sw):
            return whole  # type: ignore[no-any-return]
        cut: Expr = face("strided_slice")(
            whole, (0, 0, top, left), (batch, channels, top + height, left + width)
        )
        return cut


def phases(kernel: np.ndarray[Any, Any], strides: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Return the kernel (C, O, H, W) of a transposed convolution as (O * sh * sw, C, th, tw).

    Tap t of phase r is tap r + stride * t of the whole kernel, in reverse order; taps beyond the
    kernel are zero.
    """
    sh, sw = strides
    inputs, outputs, height, width = kernel.shape
    th, tw = -(-height // sh), -(-width // sw)
    full = np.zeros((inputs, outputs, th * sh, tw * sw), kernel.dtype)
    full[:, :, :height, :width] = kernel
    cut = full.reshape(inputs, outputs, th, sh, tw, sw)[:, :, ::-1, :, ::-1, :]
    return np.ascontiguousarray(
        cut.transpose(1, 3, 5, 0, 2, 4).reshape(outputs * sh * sw, inputs, th, tw)
    )
