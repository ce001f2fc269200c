"""Block-quantised weights: the formats of GGUF files, as bytes of each row.

| format | elements of a block | its bytes | value |
| --- | --- | --- | --- |
| q8_0 | 32 | float16 d, 32 int8 | d q |
| q4_0 | 32 | float16 d, 16 bytes: element i low in byte i, 16 + i high | d (q - 8) |
| q4_1 | 32 | float16 d and m, 16 bytes as q4_0 | d q + m |
| q4_k | 256 | float16 d and m, 12 bytes of 6-bit factors, 128 bytes | d f q - m g |

A sub-block of 32 elements has one scale and one minimum in each of them: value = scale q - least.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.errors import ArgumentValueError, ModelError, did_you_mean

Array = np.ndarray[Any, Any]
GROUP = 32  # elements with one scale


@dataclass(frozen=True)
class BlockFormat:
    """One format: a block's elements and bytes, its bits, and what bytes mean.

    `parts` takes blocks (..., bytes) apart: integers (..., size), scales and minima (..., size /
    32) as float32.  `offset` is what is taken from integers before scaling; with it the minima are
    zero.  `encode` makes blocks of floats (..., size), None where nobody has to.
    """

    name: str
    size: int
    bytes: int
    bits: int
    offset: int
    parts: Callable[[Array], tuple[Array, Array, Array]]
    encode: Callable[[Array], Array] | None = None

    def row_bytes(self, columns: int) -> int:
        """Return the bytes of a row of `columns` elements."""
        return columns // self.size * self.bytes


def _half(two: Array) -> Array:
    return two.copy().view("<f2")[..., 0].astype(np.float32)


def _nibbles(data: Array) -> Array:
    return np.concatenate([data & 15, data >> 4], -1)


def _q8_0(blocks: Array) -> tuple[Array, Array, Array]:
    scale = _half(blocks[..., :2])[..., None]
    return blocks[..., 2:].copy().view(np.int8), scale, np.zeros_like(scale)


def _q4_0(blocks: Array) -> tuple[Array, Array, Array]:
    scale = _half(blocks[..., :2])[..., None]
    return _nibbles(blocks[..., 2:]), scale, np.zeros_like(scale)


def _q4_1(blocks: Array) -> tuple[Array, Array, Array]:
    return (
        _nibbles(blocks[..., 4:]),
        _half(blocks[..., :2])[..., None],
        -_half(blocks[..., 2:4])[..., None],
    )


def _q4_k(blocks: Array) -> tuple[Array, Array, Array]:
    d, m = _half(blocks[..., :2])[..., None], _half(blocks[..., 2:4])[..., None]
    packed = blocks[..., 4:16]
    low, mid, high = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], -1)
    least = np.concatenate([mid & 63, (high >> 4) | (mid >> 6 << 4)], -1)
    words = blocks[..., 16:].reshape(*blocks.shape[:-1], 4, 32)
    values = np.stack([words & 15, words >> 4], -2)  # 64 elements: 32 low, then 32 high
    return values.reshape(*blocks.shape[:-1], 256), d * scales, m * least


def _scaled(values: Array, scale: Array) -> Array:
    over = np.zeros_like(scale)
    np.divide(1.0, scale, out=over, where=scale != 0)
    return (values * over).astype(np.float32)


def _to_q8_0(values: Array) -> Array:
    scale = (np.abs(values).max(-1, keepdims=True) / 127).astype(np.float32)
    whole = _scaled(values, scale)
    rounded = np.trunc(whole + np.copysign(np.float32(0.5), whole)).astype(np.int8)
    return np.concatenate([scale.astype("<f2").view(np.uint8), rounded.view(np.uint8)], -1)


def _to_q4_0(values: Array) -> Array:
    at = np.abs(values).argmax(-1, keepdims=True)
    scale = (np.take_along_axis(values, at, -1) / -8).astype(np.float32)
    q = np.clip(np.trunc(_scaled(values, scale) + np.float32(8.5)), 0, 15).astype(np.uint8)
    return np.concatenate([scale.astype("<f2").view(np.uint8), q[..., :16] | q[..., 16:] << 4], -1)


FORMATS = {
    f.name: f
    for f in (
        BlockFormat("q8_0", 32, 34, 8, 0, _q8_0, _to_q8_0),
        BlockFormat("q4_0", 32, 18, 4, 8, _q4_0, _to_q4_0),
        BlockFormat("q4_1", 32, 20, 4, 0, _q4_1),
        BlockFormat("q4_k", 256, 144, 4, 0, _q4_k),
    )
}


def format_of(name: str) -> BlockFormat:
    """Return a format by name.  Raises ArgumentValueError for one that there is not."""
    if name not in FORMATS:
        raise ArgumentValueError(
            f"there is no block format {name!r}.{did_you_mean(name, FORMATS)} "
            f"Known: {', '.join(FORMATS)}"
        )
    return FORMATS[name]


def parts_of(name: str, data: Array) -> tuple[Array, Array, Array]:
    """Return the integers (rows, columns), scales and minima (rows, columns / 32) of rows."""
    kind = format_of(name)
    rows = data.shape[0]
    values, scales, least = kind.parts(data.reshape(rows, -1, kind.bytes))
    return values.reshape(rows, -1), scales.reshape(rows, -1), least.reshape(rows, -1)


def decode(name: str, data: Array, dtype: Any = np.float32) -> Array:
    """Return the numbers (rows, columns) that rows of blocks stand for."""
    values, scales, least = parts_of(name, data)
    shape = (values.shape[0], -1, GROUP)
    whole = values.reshape(shape).astype(dtype) - dtype(format_of(name).offset)
    made: Array = whole * scales[..., None].astype(dtype) - least[..., None].astype(dtype)
    return made.reshape(values.shape)


def encode(name: str, values: Array) -> Array:
    """Return rows of blocks that stand for the numbers `values` (rows, columns)."""
    kind = format_of(name)
    if kind.encode is None:
        can = ", ".join(n for n, f in FORMATS.items() if f.encode)
        raise ArgumentValueError(f"weights cannot be quantised to {name} here, but to {can}")
    rows, columns = values.shape
    if columns % kind.size:
        raise ModelError(
            f"a row of {columns} weights is no whole number of {name} blocks of {kind.size}: "
            "leave this weight as it is"
        )
    blocks = kind.encode(values.astype(np.float32).reshape(rows, -1, kind.size))
    return blocks.reshape(rows, -1)
