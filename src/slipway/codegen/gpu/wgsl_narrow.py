"""Integers of 8 and 16 bits in WGSL, which has none: 32 bits in registers, packed in memory.

A value is an ``i32`` or ``u32`` that the dtype holds.  Tensors and shared memory are words of two
or four elements; threads that write into one word at a time do so by atomic operations, each to
bits of its own.  A thread's own memory has a word for each element.
"""

from __future__ import annotations

from slipway import dtypes

NARROW = {"int8": "i32", "int16": "i32", "uint8": "u32", "uint16": "u32"}
_AFTER = ("add", "sub", "mul", "div", "shl")  # what may leave the range


def wrapped(dtype: str, text: str) -> str:
    """Return an expression of 32 bits as the number that its low bits are in `dtype`."""
    bits = dtypes.bits_of(dtype)
    if NARROW[dtype] == "u32":
        return f"({text}) & {(1 << bits) - 1}u"
    return f"(({text}) << {32 - bits}u) >> {32 - bits}u"


def after(op: str, dtype: str, text: str) -> str:
    """Return the result of an operation on two numbers of `dtype`."""
    return wrapped(dtype, text) if op in _AFTER else text


def constant(dtype: str, value: float) -> str:
    """Return a number."""
    bits = dtypes.bits_of(dtype)
    low = int(value) & ((1 << bits) - 1)
    if NARROW[dtype] == "u32":
        return f"{low}u"
    signed = low - (1 << bits) if low >> (bits - 1) else low
    return f"i32({signed})" if signed < 0 else f"{signed}i"


def words(dtype: str, count: int) -> int:
    """Return how many words hold so many elements."""
    return -(-count * dtypes.bits_of(dtype) // 32)


def element(dtype: str, index: str) -> tuple[str, str]:
    """Return the word of an element, and the first of its bits there, of an i32 or u32 index."""
    bits = dtypes.bits_of(dtype)
    each = 32 // bits
    position = f"u32({index})"
    return f"{position} / {each}u", f"({position} % {each}u) * {bits}u"


def load(dtype: str, word: str, shift: str) -> str:
    """Return the element at some bits of a word."""
    kind = NARROW[dtype]
    moved = f"{word} >> ({shift})"
    return wrapped(dtype, moved if kind == "u32" else f"bitcast<i32>({moved})")


def store(dtype: str, word: str, shift: str, value: str) -> list[str]:
    """Return statements that set the element at some bits of an atomic word."""
    mask = f"{(1 << dtypes.bits_of(dtype)) - 1}u"
    given = value if NARROW[dtype] == "u32" else f"bitcast<u32>({value})"
    return [
        f"atomicAnd(&{word}, ~({mask} << ({shift})));",
        f"atomicOr(&{word}, (({given}) & {mask}) << ({shift}));",
    ]
