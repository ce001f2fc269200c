"""Long rows in order by the bytes of their keys, the lowest first, none of them compared.

    counts[byte of keys[i]] += 1, for each of the bytes
    for each byte of the keys but those that all have the same:
        starts[b] = how many have a lesser byte
        for i in range(length):             # in the order of the bytes before
            to[starts[byte]++] = key and position i

What has the same byte stays in its order, so that equal elements do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from slipway import dtypes
from slipway.backends.cpu.schedules.reduction import as_they_are
from slipway.backends.cpu.schedules.sort_ways import (
    BYTES,
    RowLoops,
    computed_by,
    cost_by,
    is_best,
    key_of,
)
from slipway.backends.strategy import Knobs, Problem, Space, register_strategy
from slipway.ir import calls, ops
from slipway.relay.ops.tensor.loops import WORTH_SHARING

if TYPE_CHECKING:
    from slipway.ir.buffer import Buffer
    from slipway.relay.ops.tensor.sort import TopKAttrs

_VALUES = 256  # of a byte


@dataclass(frozen=True)
class BytesKnobs(Knobs):
    """From how many elements on, in all rows, another core helps."""

    share_from: int


def _default(problem: Problem) -> BytesKnobs:
    return BytesKnobs(WORTH_SHARING)


def _space(problem: Problem) -> Space:
    return {"share_from": [WORTH_SHARING]}


class _Bytes(RowLoops):
    """Builds the loops of all rows from their buffers."""

    def __init__(
        self, attrs: TopKAttrs, data: Buffer, outs: Sequence[Buffer], knobs: BytesKnobs
    ) -> None:
        super().__init__(attrs, data, outs)
        self.knobs = knobs
        self.signed, self.kind = self.kind, f"u{self.kind}"
        self.bytes = dtypes.bits_of(self.kind) // 8

    def statements(self) -> Any:
        ib, rows = self.ib, self.around * self.inside
        shared = "parallel" if rows * self.length >= self.knobs.share_from else "serial"
        with ib.for_range(0, rows, "row", kind=shared) as row:
            outer = ops.floordiv(row, self.inside)
            inner = ops.floormod(row, self.inside)
            # Twice a row: from one half to the other.
            self.keys = ib.allocate(self.kind, (2 * self.length,), "keys")
            self.positions = ib.allocate("int32", (2 * self.length,), "positions")
            self.counts = ib.allocate("int32", (self.bytes * _VALUES,), "counts")
            self.half = ib.allocate("int32", (1,), "half", scope="local")
            self.total = ib.allocate("int32", (1,), "total", scope="local")
            self.write_keys(outer, inner)
            self.half[0] = ops.const(0, "int32")
            for number in range(self.bytes):
                # All have the byte of the first: there is nothing to move.
                here = self.byte(self.keys[self.half[0]], number)
                with ib.if_scope(self.counts[here] < self.length):
                    self.move(number)
            self.write(outer, inner)
        return ib.get()

    def byte(self, key: Any, number: int) -> Any:
        """Return the position of the count of one byte of a key."""
        moved = ops.shift_right(key, ops.const(8 * number, self.kind)) if number else key
        byte = ops.bitwise_and(moved, ops.const(_VALUES - 1, self.kind))
        return byte.astype("int32") + number * _VALUES

    def write_keys(self, outer: Any, inner: Any) -> None:
        """Write keys that rise as numbers without sign, and count all of their bytes."""
        ib = self.ib
        with ib.for_range(0, self.bytes * _VALUES, "i") as i:
            self.counts[i] = ops.const(0, "int32")
        lowest = ops.const(-(1 << dtypes.bits_of(self.signed) - 1), self.signed)
        with ib.for_range(0, self.length, "i") as i:
            signed = key_of(self.x[outer, i, inner], self.rises)
            key = ib.let("key", calls.reinterpret(self.kind, ops.bitwise_xor(signed, lowest)))
            self.keys[i] = key
            self.positions[i] = i
            for number in range(self.bytes):
                at = ib.let("at", self.byte(key, number))
                self.counts[at] = self.counts[at] + 1

    def move(self, number: int) -> None:
        """Bring keys and positions to the other half, in the order of one byte."""
        ib, length = self.ib, self.length
        self.total[0] = ops.const(0, "int32")
        begin = ib.let("begin", self.half[0])
        other = ib.let("other", length - begin)
        with ib.for_range(0, _VALUES, "i") as i:
            found = ib.let("found", self.counts[number * _VALUES + i])
            self.counts[number * _VALUES + i] = self.total[0] + other
            self.total[0] = self.total[0] + found
        with ib.for_range(0, length, "i") as i:
            key = ib.let("key", self.keys[begin + i])
            at = ib.let("at", self.byte(key, number))
            to = ib.let("to", self.counts[at])
            self.counts[at] = to + 1
            self.keys[to] = key
            self.positions[to] = self.positions[begin + i]
        self.half[0] = other

    def write(self, outer: Any, inner: Any) -> None:
        ib, (values, positions) = self.ib, self.results
        with ib.for_range(0, self.count, "i") as i:
            position = ib.let("position", self.positions[self.half[0] + i])
            values[outer, i, inner] = self.x[outer, position, inner]
            positions[outer, i, inner] = ops.cast(position, positions.dtype)


def _loops(attrs: TopKAttrs, data: Buffer, outs: list[Buffer], knobs: BytesKnobs) -> Any:
    return _Bytes(attrs, data, outs, knobs).statements()


register_strategy(
    "topk", name=BYTES, compute=computed_by(_loops), applies=partial(is_best, BYTES),
    default=_default, space=_space, cost=cost_by(BYTES),
)(as_they_are(BytesKnobs))  # fmt: skip
