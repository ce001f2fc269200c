"""One element of block-quantised weights as a te expression: a function for each kind of format."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.ir import expr as E
from slipway.relay.ops.packed.block_formats import FORMATS, FP4, GROUP, IQ4
from slipway.relay.ops.tensor.tensors import te

if TYPE_CHECKING:
    from slipway.ir.expr import PrimExpr
    from slipway.relay.expr import Array


def _same_bits(dtype: str, value: Any) -> Any:
    return E.Call(dtype, "reinterpret", (value,))


class _Element:
    """Element `at` of the block that holds element `k` of a row."""

    def __init__(self, name: str, weight: Any, row: PrimExpr, k: PrimExpr) -> None:
        self.name, self.kind = name, FORMATS[name]
        self.weight, self.row = weight, row
        self.start = k // self.kind.size * self.kind.bytes
        self.at: Any = k % self.kind.size

    def byte(self, position: Any) -> Any:
        return self.weight(self.row, self.start + position)

    def integer(self, position: Any) -> Any:
        return self.byte(position).astype("int32")

    def bits(self, position: Any, shift: Any, count: int) -> Any:
        """Return `count` bits of a byte from `shift` on."""
        return (self.integer(position) >> shift) & (1 << count) - 1

    def half(self, position: int) -> Any:
        low, high = self.byte(position), self.byte(position + 1)
        word = low.astype("uint16") | (high.astype("uint16") << te().const(8, "uint16"))
        return _same_bits("float16", word).astype("float32")

    def number(self, position: Any) -> Any:
        word = self.byte(position).astype("uint32")
        for i in range(1, 4):
            more = self.byte(position + i).astype("uint32")
            word = word | (more << te().const(8 * i, "uint32"))
        return _same_bits("float32", word)

    def nibble(self, head: Any, share: int = 16) -> Any:
        """Return four bits: of each 2 * `share` elements the first are low."""
        return self.bits(head + self.at % share, self.at // share % 2 * 4, 4)

    def pair(self, head: int) -> Any:
        """Return two bits: those of 32 bytes are 128 elements."""
        return self.bits(head + self.at // 128 * 32 + self.at % 32, self.at // 32 % 4 * 2, 2)

    def scaled(self, value: Any, scale: Any) -> Any:
        offset = self.kind.offset
        return (value - offset if offset else value).astype("float32") * scale


def _one_of(table: Array, index: Any) -> Any:
    """Return the byte of `table` (16 bytes) at `index`, as int32: from four words by a shift."""
    m = te()
    words = [m.const(int(word), "uint32") for word in table.view("<u4")]
    halves = m.Select(index < 4, *words[:2]), m.Select(index < 12, *words[2:])
    shifted = m.Select(index < 8, *halves) >> (index % 4 * 8).astype("uint32")
    byte = (shifted & m.const(255, "uint32")).astype("uint8")
    return (_same_bits("int8", byte) if table.dtype == np.int8 else byte).astype("int32")


def _small_block(e: _Element) -> Any:
    """Blocks of 32: a scale, a minimum where the name ends in 1, fifth bits, nibbles."""
    size = e.kind.bytes
    if e.name == "q8_0":
        return e.scaled(_same_bits("int8", e.byte(2 + e.at)), e.half(0))
    value = e.nibble(size - 16)
    if e.kind.bits == 5:
        value = value + e.bits(size - 20 + e.at // 8, e.at % 8, 1) * 16
    made = e.scaled(value, e.half(0))
    return made + e.half(2) if e.name.endswith("1") else made


def _own(e: _Element) -> Any:
    value = e.nibble(16) if e.name == "u4" else e.integer(16 + e.at)
    return e.scaled(value, e.number(e.at // 16 * 4)) - e.number(8 + e.at // 16 * 4)


def _q2_k(e: _Element) -> Any:
    factor, low = (e.bits(e.at // 16, shift, 4).astype("float32") for shift in (0, 4))
    return e.scaled(e.pair(16), e.half(80) * factor) - e.half(82) * low


def _q3_k(e: _Element) -> Any:
    value = e.pair(32) + e.bits(e.at % 32, e.at // 32, 1) * 4
    group = e.at // 16
    factor = e.bits(96 + group % 8, group // 8 * 4, 4)
    factor = factor + e.bits(104 + group % 4, group // 4 * 2, 2) * 16
    return e.scaled(value, e.half(108) * (factor - 32).astype("float32"))


def _q4_k(e: _Element) -> Any:
    """q4_k, and q5_k with fifth bits."""
    m, group = te(), e.at // GROUP
    value = e.bits(e.kind.bytes - 128 + e.at // 64 * 32 + e.at % 32, group % 2 * 4, 4)
    if e.kind.bits == 5:
        value = value + e.bits(16 + e.at % 32, group, 1) * 16
    low, mid, high = (e.integer(4 + 4 * i + group % 4) for i in range(3))
    factor = m.Select(group < 4, low & 63, (high & 15) | (low >> 6 << 4))
    minimum = m.Select(group < 4, mid & 63, (high >> 4) | (mid >> 6 << 4))
    scale, smallest = e.half(0) * factor.astype("float32"), e.half(2) * minimum.astype("float32")
    return e.scaled(value, scale) - smallest


def _q6_k(e: _Element) -> Any:
    quarter = e.at // 32 % 4
    value = e.bits(e.at // 128 * 64 + e.at % 64, quarter // 2 * 4, 4)
    high = e.bits(128 + e.at // 128 * 32 + e.at % 32, quarter * 2, 2)
    factor = _same_bits("int8", e.byte(192 + e.at // 16)).astype("float32")
    return e.scaled(value + high * 16, e.half(208) * factor)


def _iq4_nl(e: _Element) -> Any:
    return e.scaled(_one_of(IQ4, e.nibble(2)), e.half(0))


def _iq4_xs(e: _Element) -> Any:
    group = e.at // GROUP
    factor = e.bits(4 + group // 2, group % 2 * 4, 4)
    factor = factor + e.bits(2 + group // 4, group % 4 * 2, 2) * 16
    scale = e.half(0) * (factor - 32).astype("float32")
    return e.scaled(_one_of(IQ4, e.nibble(8 + group * 16)), scale)


def _mxfp4(e: _Element) -> Any:
    m, power = te(), e.integer(0)
    # Below 2 the scale is subnormal: its one bit lies in the fraction.
    bits = m.Select(power < 2, m.const(1 << 21, "int32") << power, (power - 1) << 23)
    return e.scaled(_one_of(FP4, e.nibble(1)), _same_bits("float32", bits))


def _nvfp4(e: _Element) -> Any:
    m, group = te(), e.at // 16
    power, part = e.bits(group, 3, 4), e.bits(group, 0, 3)
    whole = _same_bits("float32", ((power + 119) << 23) | (part << 20))
    small = part.astype("float32") * m.const(2.0**-10, "float32")
    scale = m.Select(power == 0, small, whole)
    scale = m.Select(e.integer(group) == 127, m.const(0.0, "float32"), scale)
    return e.scaled(_one_of(FP4, e.nibble(4 + group * 8, 8)), scale)


def _tq1_0(e: _Element) -> Any:
    """Digits to the base 3: five of each of 32 bytes, of 16, and four of each of the last 4."""
    m, at = te(), e.at

    def by_part(first: int, second: int, third: int) -> Any:
        return m.Select(at < 160, first, m.Select(at < 240, second, third))

    within, share = at - by_part(0, 160, 240), by_part(32, 16, 4)
    digit, head = within // share, by_part(0, 32, 48)
    low = m.Select(digit < 1, 1, m.Select(digit < 2, 3, 9))
    power = m.Select(digit < 3, low, m.Select(digit < 4, 27, 81))
    shifted = e.integer(head + within % share) * power & 255  # the first digits fall out
    return e.scaled(shifted * 3 >> 8, e.half(52))


def _tq2_0(e: _Element) -> Any:
    return e.scaled(e.pair(0), e.half(64))


_ELEMENTS: dict[str, Callable[[_Element], Any]] = {
    **dict.fromkeys(("q8_0", "q4_0", "q4_1", "q5_0", "q5_1"), _small_block),
    **dict.fromkeys(("q4_k", "q5_k"), _q4_k),
    **dict.fromkeys(("u4", "u8"), _own),
    "q2_k": _q2_k, "q3_k": _q3_k, "q6_k": _q6_k, "iq4_nl": _iq4_nl, "iq4_xs": _iq4_xs,
    "mxfp4": _mxfp4, "nvfp4": _nvfp4, "tq1_0": _tq1_0, "tq2_0": _tq2_0,
}  # fmt: skip


def element(name: str, weight: Any, row: PrimExpr, k: PrimExpr) -> Any:
    """Return element `k` of row `row` of weights in the format `name`."""
    return _ELEMENTS[name](_Element(name, weight, row, k))
