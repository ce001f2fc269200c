"""The largest value of a window, or its sum, as one expression: a tree over its taps.

There is no first value: nothing is compared with a lowest number, and where a NaN takes a test of
its own, few are tested (`codegen.extremes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slipway import te
from slipway.relay.dims import is_open

if TYPE_CHECKING:
    from slipway.relay.ops.nn.pool import PoolAttrs


@dataclass(frozen=True)
class Along:
    """Windows along one axis: how many, and where they lie in the data."""

    extent: int
    stride: int
    dilation: int
    before: int  # padding
    size: int  # of the data
    after: int  # padding, and how far a window may pass it; of use where the size is open

    @classmethod
    def of(cls, attrs: PoolAttrs, number: int, extent: int, size: int) -> Along:
        """Return those of a pool along its axis `number`."""
        stride, after = attrs.strides[number], attrs.padding[len(attrs.pool_size) + number]
        if attrs.ceil_mode:
            after += stride - 1
        return cls(extent, stride, attrs.dilation[number], attrs.padding[number], size, after)

    def shift(self, tap: int) -> int:
        """Return where a tap of the first window lies."""
        return tap * self.dilation - self.before

    @property
    def last(self) -> int:
        """Where the last window begins, as seen from the first one."""
        return (self.extent - 1) * self.stride

    def beyond(self, shift: int, last: int) -> int:
        """Return how many positions a tap may be behind the data; `last` is the last tap's shift.

        Exact where the size is known, else what the padding allows.
        """
        if is_open(self.extent) or is_open(self.size):
            return self.after - (last - shift)
        return self.last + shift + 1 - self.size


def largest(
    taps: Sequence[tuple[int, ...]],
    windows: Sequence[tuple[Any, Along]],
    read: Callable[[Sequence[Any]], Any],
    merge: Callable[[Any, Any], Any] = te.max,
    neutral: Callable[[str], Any] = te.lowest,
) -> Any:
    """Return the largest of what is read at `taps` of a window, those in the padding left out.

    `windows` has, for each axis, the index of the window; `read` takes positions in the data.
    What `merge` makes of two values need not be the largest; `neutral` changes nothing in it.
    """
    values = []
    ends = [max(tap[i] for tap in taps) for i in range(len(windows))]
    lasts = [axis.shift(end) for end, (_, axis) in zip(ends, windows, strict=True)]
    for tap in taps:
        indices, tests = [], []
        for at, (index, axis), last in zip(tap, windows, lasts, strict=True):
            shift = axis.shift(at)
            position = index * axis.stride + shift
            indices.append(position)
            if shift < 0:
                tests.append(position >= 0)
            if axis.beyond(shift, last) > 0:
                tests.append(position < axis.size)
        value = read(indices)
        if tests:
            value = te.if_then_else(te.all(*tests), value, neutral(value.dtype))
        values.append(value)
    while len(values) > 1:
        pairs = [merge(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = [*pairs, *values[2 * len(pairs) :]]
    return values[0]
