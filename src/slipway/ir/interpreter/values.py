"""Arithmetic of the reference interpreter: the values of each dtype, and C's integer rules.

Scalars are Python ints and NumPy floats; vectors are NumPy arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import dtypes


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type in which the interpreter keeps values of a scalar dtype."""
    code, bits, _ = dtypes.parse(dtype)
    if code == "bool":
        return np.dtype(bool)
    if code == "bfloat":
        return np.dtype(np.float32)
    if code == "handle":
        return np.dtype(np.int64)
    if dtypes.is_carried(dtype):
        return np.dtype(dtypes.carrier_of(dtype))
    if dtypes.is_custom(dtype):
        return np.dtype(dtypes.custom_carrier(dtype))
    return np.dtype(f"{code}{max(bits, 8)}")


def storage_dtype(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type of an array that holds elements of `dtype`."""
    return np.dtype(np.uint16) if dtypes.code_of(dtype) == "bfloat" else numpy_dtype(dtype)


def round_bfloat16(value: Any) -> Any:
    """Round float32 values to the nearest bfloat16, halves to even."""
    wide = np.asarray(value, dtype=np.float32)
    bits = wide.view(np.uint32)
    rounded = (bits + (np.uint32(0x7FFF) + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(wide), wide, rounded.view(np.float32))[()]


def wrap_small(value: Any, dtype: str) -> Any:
    """Wrap values held in 8 bits into the 2 or 4 of `dtype`."""
    bits = dtypes.bits_of(dtype)
    low = value & ((1 << bits) - 1)
    if dtypes.is_int(dtype):
        return np.where(low >> (bits - 1), low - (1 << bits), low).astype(value.dtype)
    return low


def floordiv(a: Any, b: Any) -> Any:
    """Return a // b, rounding down; 0 for b = 0."""
    if type(a) is int and type(b) is int:
        return a // b if b else 0
    with np.errstate(divide="ignore", over="ignore"):  # the smallest integer by -1 is itself
        return np.floor_divide(a, b)


def floormod(a: Any, b: Any) -> Any:
    """The remainder of `floordiv`; 0 for b = 0."""
    if type(a) is int and type(b) is int:
        return a % b if b else 0
    with np.errstate(divide="ignore"):
        return np.mod(a, b)


def scalar(dtype: str, value: Any) -> Any:
    """Return one value as the interpreter keeps it."""
    kind = numpy_dtype(dtype)
    return int(value) if kind.kind in "iu" else kind.type(value)


def truncdiv(a: Any, b: Any) -> Any:
    """Return a / b, rounding towards zero, as C does; 0 for b = 0."""
    quotient = floordiv(a, b)
    if type(quotient) is int:
        return quotient + (b != 0 and quotient < 0 and quotient * b != a)
    upwards = ((a < 0) ^ (b < 0)) & (b != 0) & (quotient * b != a)
    return quotient + upwards.astype(quotient.dtype)


def truncmod(a: Any, b: Any) -> Any:
    """The remainder of `truncdiv`; 0 for b = 0."""
    if type(a) is int and type(b) is int:
        return a - b * truncdiv(a, b) if b else 0
    with np.errstate(divide="ignore"):
        return np.fmod(a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two scalars or of each pair of lanes; a NaN on either side is the result."""
    if type(a) is int and type(b) is int:
        return min(a, b)
    return np.minimum(a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two scalars or of each pair of lanes; a NaN on either side is the result."""
    if type(a) is int and type(b) is int:
        return max(a, b)
    return np.maximum(a, b)
