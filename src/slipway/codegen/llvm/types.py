"""Spelling of dtypes and constants in LLVM IR."""

from __future__ import annotations

import struct
from functools import cache

from slipway import dtypes

_FLOATS = {("float", 16): "half", ("float", 32): "float", ("float", 64): "double"}


@cache
def scalar_type(dtype: str, soft_half: bool, memory: bool = False) -> str:
    """Return the LLVM type of one lane; `memory` is the form in buffers (bool is a byte there).

    bfloat16, and float16 where `soft_half`, are carried as their 16 bits, smaller types as a byte.
    """
    code, bits, _ = dtypes.parse(dtype)
    if code == "bool":
        return "i8" if memory else "i1"
    if code == "handle":
        return "ptr"
    if code == "bfloat" or (code == "float" and bits == 16 and soft_half):
        return "i16"
    if code == "float":
        return _FLOATS[code, bits]
    if dtypes.is_carried(dtype):
        return "i8"
    return f"i{bits}"


@cache
def llvm_type(dtype: str, soft_half: bool, memory: bool = False) -> str:
    """Return the LLVM type of `dtype`, lanes included."""
    lanes = dtypes.lanes_of(dtype)
    inner = scalar_type(dtypes.scalar_of(dtype), soft_half, memory)
    return inner if lanes == 1 else f"<{lanes} x {inner}>"


def half_bits(value: float) -> int:
    """Return the IEEE half precision bits of `value`, rounded to nearest even."""
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0xFC00 if value < 0 else 0x7C00


def float_bits(value: float) -> int:
    """Return the single precision bits of `value`, rounded to nearest even."""
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:
        return 0xFF800000 if value < 0 else 0x7F800000


def bfloat_bits(value: float) -> int:
    """Return the bfloat16 bits of `value`, rounded to nearest even."""
    bits = float_bits(value)
    if value != value:
        return (bits >> 16) | 0x40
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def float_text(value: float, dtype: str, soft_half: bool) -> str:
    """Return the constant `value` of a scalar float dtype, exactly."""
    code, bits, _ = dtypes.parse(dtype)
    if code == "bfloat":
        return str(bfloat_bits(value))
    if bits == 16:
        return str(half_bits(value)) if soft_half else f"0xH{half_bits(value):04X}"
    if bits == 32:
        value = struct.unpack("<f", struct.pack("<I", float_bits(value)))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
