"""The discrete Fourier transform as products with constant matrices, for every model format."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_table
from slipway.frontends.product import product_of
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


def fourier(x: Expr, length: int, inverse: bool, onesided: bool) -> Any:
    """Transform the second last axis of `x` (..., n, 1 or 2); the last holds real and imaginary."""
    *lead, size, parts = x.tensor_type.shape
    dtype = x.tensor_type.dtype
    used = min(size, length)
    if used < size:
        x = relay.strided_slice(x, [0], [used], axes=[len(lead)])
    real_result = inverse and onesided
    source = np.arange(used)
    if real_result and parts == 2:
        # A half spectrum stands for its mirror image too.
        weights = np.where((source == 0) | (2 * source == length), 1.0, 2.0)
    else:
        weights = np.ones(used)
    bins = length if inverse or not onesided else length // 2 + 1
    take_table(used, parts, bins, 2)
    sign = 1 if inverse else -1
    angle = sign * 2 * np.pi * np.outer(source, np.arange(bins)) / length
    scale = 1 / length if inverse else 1.0
    cosine = np.cos(angle) * weights[:, None] * scale
    sine = np.sin(angle) * weights[:, None] * scale
    # One product: (real, imaginary) in, (real, imaginary) out, interleaved as they lie in memory.
    kernel = np.zeros((used, parts, bins, 1 if real_result else 2))
    kernel[:, 0, :, 0] = cosine
    if not real_result:
        kernel[:, 0, :, 1] = sine
    if parts == 2:
        kernel[:, 1, :, 0] = -sine
        if not real_result:
            kernel[:, 1, :, 1] = cosine
    matrix = kernel.reshape(used * parts, -1).astype(dtype)
    flat = relay.reshape(x, (prod(lead), used * parts))
    return relay.reshape(product_of(flat, const(matrix)), (*lead, bins, kernel.shape[3]))
