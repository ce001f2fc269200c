"""Block-quantised weights: the formats of GGUF files and one of our own, as bytes of each row.

| format | elements of a block | its bytes | value |
| --- | --- | --- | --- |
| q8_0 | 32 | float16 d, 32 int8 | d q |
| q4_0 | 32 | float16 d, 16 bytes: element i low in byte i, 16 + i high | d (q - 8) |
| q4_1 | 32 | float16 d and m, 16 bytes as q4_0 | d q + m |
| q5_0 | 32 | float16 d, 4 bytes of fifth bits, 16 bytes as q4_0 | d (q - 16) |
| q5_1 | 32 | float16 d and m, then as q5_0 | d q + m |
| q4_k | 256 | float16 d and m, 12 bytes of 6-bit factors, 128 bytes | d f q - m g |
| q5_k | 256 | as q4_k, with 32 bytes of fifth bits before the last 128 | d f q - m g |
| q6_k | 256 | 128 bytes low, 64 bytes high, 16 int8 factors, float16 d | d f (q - 32) |
| q2_k | 256 | 16 bytes: f low, g high, 64 bytes, float16 d and m | d f q - m g |
| q3_k | 256 | 32 bytes (third bits), 64, 12 of 6-bit factors, float16 d | d (f - 32) (q - 4) |
| iq4_nl | 32 | as q4_0 | d IQ4[q] |
| iq4_xs | 256 | float16 d, 2 and 4 bytes of 6-bit factors, 128 bytes | d (f - 32) IQ4[q] |
| mxfp4 | 32 | byte e, 16 bytes as q4_0 | 2^(e - 128) FP4[q] |
| nvfp4 | 64 | 4 bytes of float8 e, 4 times 8 bytes: element i low, 8 + i high | e / 2 FP4[q] |
| tq1_0 | 256 | 48 and 4 bytes of five or four digits to the base 3, float16 d | d (q - 1) |
| tq2_0 | 256 | 64 bytes, float16 d | d (q - 1) |
| u4 | 32 | 2 float32 scales, 2 float32 minima, 16 bytes as q4_0 | scale q - least |
| u8 | 32 | 2 float32 scales, 2 float32 minima, 32 bytes | scale q - least |

`share` elements have one scale and one minimum in each of them: value = scale q - least.  u4 and u8
hold what other files have in arrays of their own (ONNX's MatMulNBits).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slipway.errors import ArgumentValueError, ModelError, did_you_mean

Array = np.ndarray[Any, Any]
GROUP = 32  # elements of data with one scale
# What four bits stand for: llama.cpp's steps, and twice the numbers of FP4 (E2M1) with 12 added.
IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
FP4 = np.array([12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0], np.uint8)


@dataclass(frozen=True)
class BlockFormat:
    """One format: a block's elements and bytes, its bits, and what bytes mean.

    `parts` takes blocks (..., bytes) apart: integers (..., size), scales and minima (..., size /
    share) as float32.  `offset` is what is taken from integers before scaling; with it the minima
    are zero.  `encode` makes blocks of floats (..., size), None where nobody has to.
    """

    name: str
    size: int
    bytes: int
    bits: int
    offset: int
    parts: Callable[[Array], tuple[Array, Array, Array]]
    encode: Callable[[Array], Array] | None = None
    share: int = GROUP

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


def _fifth(data: Array) -> Array:
    return np.unpackbits(data, axis=-1, bitorder="little") << 4


def _q5_0(blocks: Array) -> tuple[Array, Array, Array]:
    scale = _half(blocks[..., :2])[..., None]
    return _nibbles(blocks[..., 6:]) | _fifth(blocks[..., 2:6]), scale, np.zeros_like(scale)


def _q5_1(blocks: Array) -> tuple[Array, Array, Array]:
    return (
        _nibbles(blocks[..., 8:]) | _fifth(blocks[..., 4:8]),
        _half(blocks[..., :2])[..., None],
        -_half(blocks[..., 2:4])[..., None],
    )


def _factors(blocks: Array) -> tuple[Array, Array]:
    """Return the scales and minima of eight groups from the first 16 bytes."""
    d, m = _half(blocks[..., :2])[..., None], _half(blocks[..., 2:4])[..., None]
    packed = blocks[..., 4:16]
    low, mid, high = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6 << 4)], -1)
    minimum = np.concatenate([mid & 63, (high >> 4) | (mid >> 6 << 4)], -1)
    return d * scales, m * minimum


def _by_64(data: Array) -> Array:
    """Return the nibbles of 64 elements in 32 bytes: 32 low, then 32 high."""
    words = data.reshape(*data.shape[:-1], -1, 32)
    return np.stack([words & 15, words >> 4], -2).reshape(*data.shape[:-1], -1)


def _q4_k(blocks: Array) -> tuple[Array, Array, Array]:
    return _by_64(blocks[..., 16:]), *_factors(blocks)


def _q5_k(blocks: Array) -> tuple[Array, Array, Array]:
    fifth = blocks[..., None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    fifth = fifth.reshape(*blocks.shape[:-1], 256)
    return _by_64(blocks[..., 48:]) | fifth << 4, *_factors(blocks)


def _q6_k(blocks: Array) -> tuple[Array, Array, Array]:
    shape = blocks.shape[:-1]
    low = blocks[..., :128].reshape(*shape, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], -2).reshape(*shape, 256)
    high = blocks[..., 128:192].reshape(*shape, 2, 1, 32)
    high = (high >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & 3).reshape(*shape, 256)
    scales = _half(blocks[..., 208:])[..., None] * blocks[..., 192:208].copy().view(np.int8)
    return low | high << 4, scales, np.zeros_like(scales)


def _by_128(data: Array, bits: int) -> Array:
    """Return integers of 2 bits (1 bit): 32 bytes hold 128 (256), each byte every 32nd."""
    words = data.reshape(*data.shape[:-1], -1, 1, 32)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    return (words >> shifts & (1 << bits) - 1).reshape(*data.shape[:-1], -1)


def _q2_k(blocks: Array) -> tuple[Array, Array, Array]:
    d, m = _half(blocks[..., 80:82])[..., None], _half(blocks[..., 82:84])[..., None]
    factors = blocks[..., :16]
    return _by_128(blocks[..., 16:80], 2), d * (factors & 15), m * (factors >> 4)


def _q3_k(blocks: Array) -> tuple[Array, Array, Array]:
    low, high = blocks[..., 96:104], blocks[..., None, 104:108]
    above = high >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & 3
    factors = _nibbles(low) | above.reshape(*low.shape[:-1], 16) << 4
    scales = _half(blocks[..., 108:])[..., None] * (factors.astype(np.float32) - 32)
    values = _by_128(blocks[..., 32:96], 2) | _by_128(blocks[..., :32], 1) << 2
    return values, scales, np.zeros_like(scales)


def _iq4_nl(blocks: Array) -> tuple[Array, Array, Array]:
    scale = _half(blocks[..., :2])[..., None]
    return IQ4[_nibbles(blocks[..., 2:])], scale, np.zeros_like(scale)


def _iq4_xs(blocks: Array) -> tuple[Array, Array, Array]:
    low = blocks[..., 4:8, None] >> np.array([0, 4], np.uint8) & 15
    high = blocks[..., 2:4, None] >> np.arange(0, 8, 2, dtype=np.uint8) & 3
    shape = (*blocks.shape[:-1], 8)
    factors = low.reshape(shape) | high.reshape(shape) << 4
    scales = _half(blocks[..., :2])[..., None] * (factors.astype(np.float32) - 32)
    nibbles = _nibbles(blocks[..., 8:].reshape(*shape, 16)).reshape(*blocks.shape[:-1], 256)
    return IQ4[nibbles], scales, np.zeros_like(scales)


def _mxfp4(blocks: Array) -> tuple[Array, Array, Array]:
    scale = np.ldexp(np.float32(1), blocks[..., :1].astype(np.int32) - 128)
    return FP4[_nibbles(blocks[..., 1:])], scale, np.zeros_like(scale)


def _nvfp4(blocks: Array) -> tuple[Array, Array, Array]:
    given = blocks[..., :4]
    power, part = (given >> 3 & 15).astype(np.int32), (given & 7).astype(np.float32)
    scale = np.ldexp(np.where(power, 8 + part, 2 * part), power - 11).astype(np.float32)
    scale = np.where(given == 127, np.float32(0), scale)
    nibbles = _nibbles(blocks[..., 4:].reshape(*given.shape, 8))
    return FP4[nibbles.reshape(*given.shape[:-1], 64)], scale, np.zeros_like(scale)


def _tq1_0(blocks: Array) -> tuple[Array, Array, Array]:
    values = []
    for first, last, digits in ((0, 32, 5), (32, 48, 5), (48, 52, 4)):
        powers = 3 ** np.arange(digits, dtype=np.uint8)[:, None]
        shifted = (blocks[..., None, first:last] * powers).astype(np.uint8)  # the first digits fall
        values.append((shifted.astype(np.uint16) * 3 >> 8).reshape(*blocks.shape[:-1], -1))
    scale = np.repeat(_half(blocks[..., 52:])[..., None], 8, -1)
    return np.concatenate(values, -1).astype(np.uint8), scale, np.zeros_like(scale)


def _tq2_0(blocks: Array) -> tuple[Array, Array, Array]:
    scale = np.repeat(_half(blocks[..., 64:])[..., None], 8, -1)
    return _by_128(blocks[..., :64], 2), scale, np.zeros_like(scale)


def _u4(blocks: Array) -> tuple[Array, Array, Array]:
    given = blocks[..., :16].copy().view("<f4")
    return _nibbles(blocks[..., 16:]), given[..., :2], given[..., 2:]


def _u8(blocks: Array) -> tuple[Array, Array, Array]:
    given = blocks[..., :16].copy().view("<f4")
    return blocks[..., 16:], given[..., :2], given[..., 2:]


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
        BlockFormat("q5_0", 32, 22, 5, 16, _q5_0),
        BlockFormat("q5_1", 32, 24, 5, 0, _q5_1),
        BlockFormat("q4_k", 256, 144, 4, 0, _q4_k),
        BlockFormat("q5_k", 256, 176, 5, 0, _q5_k),
        BlockFormat("q6_k", 256, 210, 6, 32, _q6_k, share=16),
        BlockFormat("q2_k", 256, 84, 4, 0, _q2_k, share=16),
        BlockFormat("q3_k", 256, 110, 4, 4, _q3_k, share=16),
        BlockFormat("iq4_nl", 32, 18, 8, 0, _iq4_nl),
        BlockFormat("iq4_xs", 256, 136, 8, 0, _iq4_xs),
        BlockFormat("mxfp4", 32, 17, 5, 12, _mxfp4),
        BlockFormat("nvfp4", 64, 36, 5, 12, _nvfp4, share=16),
        BlockFormat("tq1_0", 256, 54, 4, 1, _tq1_0),
        BlockFormat("tq2_0", 256, 66, 4, 1, _tq2_0),
        BlockFormat("u4", 32, 32, 4, 0, _u4, share=16),
        BlockFormat("u8", 32, 48, 8, 0, _u8, share=16),
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
    """Return the integers (rows, columns), scales and minima (rows, columns / share) of rows."""
    kind = format_of(name)
    rows = data.shape[0]
    values, scales, minimum = kind.parts(data.reshape(rows, -1, kind.bytes))
    return values.reshape(rows, -1), scales.reshape(rows, -1), minimum.reshape(rows, -1)


def decode(name: str, data: Array, dtype: Any = np.float32) -> Array:
    """Return the numbers (rows, columns) that rows of blocks stand for."""
    values, scales, minimum = parts_of(name, data)
    kind = format_of(name)
    whole = values.reshape(len(values), -1, kind.share).astype(dtype) - dtype(kind.offset)
    made: Array = whole * scales[..., None].astype(dtype) - minimum[..., None].astype(dtype)
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


def blocks_of(values: Array, scales: Array, minimum: Array, bits: int) -> Array:
    """Return rows of u4 or u8: integers (rows, columns), scales and minima (rows, columns / 16)."""
    rows, columns = values.shape
    heads = [a.astype("<f4").reshape(rows, -1, 2) for a in (scales, minimum)]
    head = np.asarray(np.concatenate(heads, -1), order="C").view(np.uint8)
    whole: Array = values.astype(np.uint8).reshape(rows, columns // 32, 32)
    if bits == 4:
        whole = whole[..., :16] | whole[..., 16:] << 4
    return np.concatenate([head, whole], -1).reshape(rows, -1)
