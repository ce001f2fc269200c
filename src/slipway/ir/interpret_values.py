"""Arithmetic of the reference interpreter: the values of each dtype, and C's integer rules.

Scalars are Python ints and NumPy floats; vectors are NumPy arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway import dtypes
from slipway.errors import ExecutionError


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


def check_zero(b: Any) -> None:
    """Raise ExecutionError for a scalar zero divisor."""
    if type(b) is int and b == 0:
        raise ExecutionError("integer division by zero")


def floordiv(a: Any, b: Any) -> Any:
    """Return a // b, rounding down."""
    check_zero(b)
    return a // b


def floormod(a: Any, b: Any) -> Any:
    """The remainder of `floordiv`."""
    check_zero(b)
    return a % b


def scalar(dtype: str, value: Any) -> Any:
    """Return one value as the interpreter keeps it."""
    kind = numpy_dtype(dtype)
    return int(value) if kind.kind in "iu" else kind.type(value)


def truncdiv(a: Any, b: Any) -> Any:
    """Return a / b, rounding towards zero, as C does."""
    check_zero(b)
    if type(a) is int and type(b) is int:
        quotient = abs(a) // abs(b)
        return quotient if (a >= 0) == (b >= 0) else -quotient
    quotient = np.abs(a) // np.abs(b)
    return np.where((a >= 0) == (b >= 0), quotient, -quotient).astype(np.asarray(a).dtype)


def truncmod(a: Any, b: Any) -> Any:
    """The remainder of `truncdiv`."""
    return a - b * truncdiv(a, b)


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
