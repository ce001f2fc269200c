"""The discrete Fourier transform as products with constant matrices, for every model format.

One product of n by n for short ones.  Longer ones of n = a b take two, over a and over b::

    X[k + a m] = sum over v < b of e(v (k + a m) / n) times the sum over u < a of
                 x[b u + v] e(u k / a),    e(t) = exp(-2 pi i t)
"""

from __future__ import annotations

from math import isqrt, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import relay
from slipway.frontends.budget import take_table
from slipway.frontends.product import product_of
from slipway.relay.op_registry import const

if TYPE_CHECKING:
    from slipway.relay.expr import Expr


LONG = 256  # from which on two products are worth the moves between them


def fourier(x: Expr, length: int, inverse: bool, onesided: bool) -> Any:
    """Transform the second last axis of `x` (..., n, 1 or 2); the last holds real and imaginary."""
    *lead, size, parts = x.tensor_type.shape
    dtype = x.tensor_type.dtype
    used = min(size, length)
    first = _first_factor(length)
    if first and used == length and not (inverse and onesided):
        if used < size:
            x = relay.strided_slice(x, [0], [used], axes=[len(lead)])
        return _in_two(x, length, first, inverse, onesided)
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


def _first_factor(length: int) -> int:
    """Return the a of n = a b that takes the fewest products; 0 where one product is as good."""
    if length < LONG:
        return 0
    root = isqrt(length)
    first = next(a for a in range(root, 0, -1) if length % a == 0)
    return first if 4 * (first + length // first) <= length else 0


def _in_two(x: Expr, length: int, first: int, inverse: bool, onesided: bool) -> Any:
    """Transform by two products: over `first` elements, and over the others."""
    *lead, _, parts = x.tensor_type.shape
    dtype, rows, second = x.tensor_type.dtype, prod(lead), length // first
    bins = second // 2 + 1 if onesided else second  # of the second product
    take_table(first, parts, first, 2)
    take_table(first, second, 2, bins, 2)
    sign = 2j * np.pi * (1 if inverse else -1)
    u, v, k, m = (np.arange(extent) for extent in (first, second, first, bins))
    one = np.exp(sign * np.outer(u, k) / first)
    phases = v[None, :, None] * (k[:, None, None] + first * m[None, None, :])
    other = np.exp(sign * (phases % length) / length) / (length if inverse else 1)
    x = relay.transpose(relay.reshape(x, (rows, first, second, parts)), (0, 2, 1, 3))
    flat = relay.reshape(x, (rows * second, first * parts))
    made = product_of(flat, const(_pairs(one, parts).astype(dtype)))
    made = relay.transpose(relay.reshape(made, (rows, second, first, 2)), (2, 0, 1, 3))
    made = relay.reshape(made, (first, rows, second * 2))
    matrices = np.stack([_pairs(part, 2).T for part in other]).astype(dtype)
    made = relay.nn.batch_matmul(made, const(matrices))
    made = relay.transpose(relay.reshape(made, (first, rows, bins, 2)), (1, 2, 0, 3))
    made = relay.reshape(made, (*lead, bins * first, 2))
    wanted = length // 2 + 1 if onesided else length
    if wanted < bins * first:
        made = relay.strided_slice(made, [0], [wanted], axes=[len(lead)])
    return made


def _pairs(matrix: Any, parts: int) -> Any:
    """Return complex (m, n) as reals (m parts, 2 n), of adjacent (real, imaginary)."""
    rows, columns = matrix.shape
    kernel = np.zeros((rows, parts, columns, 2))
    kernel[:, 0, :, 0], kernel[:, 0, :, 1] = matrix.real, matrix.imag
    if parts == 2:
        kernel[:, 1, :, 0], kernel[:, 1, :, 1] = -matrix.imag, matrix.real
    return kernel.reshape(rows * parts, -1)
