"""Powers of integers, by squaring: what overflows wraps, as the products it stands for do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slipway import dtypes
from slipway.ir import expr as E
from slipway.ir import ops
from slipway.relay.ops.tensor.small_types import to_integer

if TYPE_CHECKING:
    from slipway.relay.expr import Array

# Bits of the exponent that count.  A power beyond them has overflowed unless the base is 0 or 1,
# and of these, of -1 and of even bases, it is that of any exponent as large and of its parity.
STEPS = 8


def _steps(dtype: str) -> int:
    return min(STEPS, dtypes.int_range(dtype)[1].bit_length())


def _last(dtype: str) -> int:
    """The largest even exponent that is computed, where larger ones exist; else 0."""
    return (1 << STEPS) - 2 if dtypes.int_range(dtype)[1] >> STEPS else 0


def integer_power(te_: Any, base: Any, exponent: Any) -> Any:
    """The te expression of a power.

    A negative exponent gives the nearest whole number: 1 and -1 of themselves, an infinity of 0.
    """
    dtype = base.dtype
    zero, one = te_.const(0, dtype), te_.const(1, dtype)
    a, b = E.Var("base", dtype), E.Var("exponent", dtype)
    count = b
    if last := _last(dtype):
        even = te_.const(last, dtype)
        count = te_.select(b > even, even + (b & one), b)
    e = E.Var("count", dtype)
    value = E.Let(e, count, _product(te_, a, e, one, 0))
    if not dtypes.is_uint(dtype):
        unit = one - (b & one) * te_.const(2, dtype)  # the power of -1
        infinite = te_.const(int(to_integer(np.array(np.inf), dtype)), dtype)
        inverse = te_.select(ops.equal(a, zero), infinite, zero)
        inverse = te_.select(ops.equal(a, zero - one), unit, inverse)
        inverse = te_.select(ops.equal(a, one), one, inverse)
        value = te_.select(b < zero, inverse, value)
    return E.Let(a, base, E.Let(b, exponent, value))


def _product(te_: Any, square: Any, count: Any, found: Any, step: int) -> Any:
    """What is found, times the squares that the bits of `count` from `step` on ask for."""
    dtype = count.dtype
    one = te_.const(1, dtype)
    bit = (count >> te_.const(step, dtype)) & one
    taken = te_.select(ops.equal(bit, one), found * square, found)
    if step + 1 == _steps(dtype):
        return taken
    following, sofar = E.Var("square", dtype), E.Var("found", dtype)
    later = _product(te_, following, count, sofar, step + 1)
    return E.Let(following, square * square, E.Let(sofar, taken, later))


def numpy_integer_power(base: Array, exponent: Array) -> Any:
    """The same of arrays."""
    dtype = base.dtype.name
    wide = np.uint64 if dtypes.is_uint(dtype) else np.int64
    a, b = np.broadcast_arrays(base.astype(wide), exponent.astype(wide))
    if last := _last(dtype):
        b = np.where(b > last, wide(last) + (b & wide(1)), b)
    value = np.power(a, np.maximum(b, 0))
    if not dtypes.is_uint(dtype):
        infinite = int(to_integer(np.array(np.inf), dtype))
        inverse = np.select([a == 0, a == 1, a == -1], [infinite, 1, 1 - 2 * (b & 1)], 0)
        value = np.where(b < 0, inverse, value)
    return value.astype(base.dtype)
