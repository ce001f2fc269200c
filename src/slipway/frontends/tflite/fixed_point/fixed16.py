"""The sigmoid and the hyperbolic tangent of LiteRT's integer LSTM, in 16-bit fixed point.

They are gemmlowp's: an exponential of negative numbers by a polynomial around -1/8 and a factor for
each bit above 1/4, and a quotient by Newton's iteration, every product rounded to 16 bits.  There
are no more than 65,536 arguments, so each function is a table.  Qm has m bits before the point.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from slipway import relay
from slipway.frontends.tflite.converters import array_constant
from slipway.frontends.tflite.file_model import Array
from slipway.relay.op_registry import const
from slipway.relay.quantization import rounding_divide_by_power_of_two as divided

ONE = 32767  # in Q0
EXP_MINUS_EIGHTH = 28918  # exp(-1/8) in Q0
THIRD = 10923  # in Q0
# exp(-2**n) in Q0, from n = -2 on.
POWERS = (25520, 19875, 12055, 4435, 600, 11, 0)
NEWTON_CONSTANT, NEWTON_SLOPE = 23130, -15420  # 48/17 and -32/17 in Q2


def _wrapped(x: Array) -> Array:
    return ((x + 0x8000) & 0xFFFF) - 0x8000


def _saturated(x: Array) -> Array:
    return np.clip(x, -32768, 32767)


def _times(a: Any, b: Any) -> Array:
    """The product of Q(m) and Q(n) in Q(m + n), rounded; it is divided towards zero."""
    product = np.asarray(a, np.int64) * b
    nudged = product + np.where(product >= 0, 1 << 14, 1 - (1 << 14))
    quotient: Array = np.where(nudged >= 0, nudged >> 15, -(-nudged >> 15))
    return np.minimum(quotient, ONE)


def _exp(a: Array, bits: int) -> Array:
    """exp(a) in Q0 of numbers in Q(bits) that are not positive."""
    quarter = 1 << (15 - bits - 2)
    below = (a & (quarter - 1)) - quarter
    x = (below << bits) + (1 << 12)
    x2 = _times(x, x)
    x3, x4 = _times(x2, x), _times(x2, x2)
    tail = divided(_times(divided(x4, 2) + x3, THIRD) + x2, 1)
    found = _saturated(EXP_MINUS_EIGHTH + _times(EXP_MINUS_EIGHTH, _wrapped(x + tail)))
    remainder = _wrapped(below - a)
    for exponent, factor in enumerate(POWERS, -2):
        if bits > exponent:
            has = (remainder & (1 << (15 - bits + exponent))) != 0
            found = np.where(has, _times(found, factor), found)
    if bits > 5:
        found = np.where(a < -(1 << (20 - bits)), 0, found)
    return np.where(a == 0, ONE, found)


def _reciprocal(a: Array) -> Array:
    """2 / (1 + a) in Q2 of numbers in Q0."""
    half = (a + ONE + 1) >> 1
    x = _wrapped(NEWTON_CONSTANT + _times(half, NEWTON_SLOPE))
    for _ in range(3):
        error = _wrapped((1 << 13) - _times(half, x))
        x = _wrapped(x + _saturated(_times(x, error) << 2))
    return x


@cache
def sigmoid_table() -> Array:
    """1 / (1 + exp(-x)) in Q0 of every x in Q3, from -32768 on."""
    x = np.arange(-32768, 32768, dtype=np.int64)
    # Half of it in Q2 is the whole in Q1.
    above = _saturated(_reciprocal(_exp(-np.abs(x), 3)) << 1)
    found = np.where(x > 0, above, ONE - above)
    return np.where(x == 0, 1 << 14, found).astype(np.int16)


@cache
def tanh_table(bits: int) -> Array:
    """The hyperbolic tangent in Q0 of every x in Q(bits), from -32768 on; bits are 0 to 6."""
    x = np.arange(-32768, 32768, dtype=np.int64)
    # exp(2x): the same digits, the point one place further.
    found = _saturated(_wrapped(_reciprocal(_exp(-np.abs(x), bits + 1)) - (1 << 13)) << 2)
    return np.where(x == 0, 0, np.where(x < 0, -found, found)).astype(np.int16)


def looked_up(table: Array, value: Any) -> Any:
    """Return the entries of a table for int32 values of 16 bits, as int32."""
    position = relay.add(value, const(32768, "int32"))
    return relay.cast(relay.take(array_constant(table, "int16"), position, mode="clip"), "int32")
