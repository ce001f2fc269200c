"""One axis of a transposed convolution: which taps and pixels meet, remainder by remainder."""

from __future__ import annotations

from dataclasses import dataclass

from slipway.relay.dims import usual


@dataclass(frozen=True)
class SubpixelAxis:
    """One axis of a transposed convolution: data at p and tap t meet at p * stride + t * dilation.

    `cut` of those pixels, before the first that is wanted, are left out.
    """

    data: int
    wanted: int
    window: int
    stride: int
    cut: int
    dilation: int

    def taps(self, phase: int) -> range:
        """The taps that wanted pixels ``m * stride + phase`` see, of a dilation prime to it."""
        first = (phase + self.cut) * pow(self.dilation, -1, self.stride) % self.stride
        return range(first, self.window, self.stride)

    def padding(self, phase: int) -> tuple[int, int]:
        """What the convolution with those taps, last first, needs around the data."""
        taps = self.taps(phase)
        reach = max(0, len(taps) - 1) * self.dilation
        before = reach - (phase + self.cut - taps.start * self.dilation) // self.stride
        return before, self.positions - self.data - before + reach

    def thinned(self, step: int) -> SubpixelAxis:
        """Return the axis of each `step`-th pixel, the only ones that taps touch."""
        cut = -(-self.cut // step)
        wanted = (self.cut + self.wanted - 1) // step - cut + 1
        stride, dilation = self.stride // step, self.dilation // step
        return SubpixelAxis(self.data, wanted, self.window, stride, cut, dilation)

    def data_end(self) -> int:
        """Return how many pixels after the last that is wanted some tap touches."""
        whole = (self.data - 1) * self.stride + (self.window - 1) * self.dilation + 1
        return whole - self.cut - self.wanted

    @property
    def positions(self) -> int:
        """The pixels of each remainder; the last may be one more than is wanted."""
        return -(-self.wanted // self.stride)

    def shares(self) -> bool:
        """Return whether the taps of every remainder begin within the data."""
        rests = range(self.stride)
        return all(not self.taps(r) or min(self.padding(r)) >= 0 for r in rests)

    def products(self) -> tuple[int, int]:
        """What is multiplied for all rests: one by one, and with taps and places as for all."""
        longest = -(-self.window // self.stride)
        one_by_one = sum(len(self.taps(r)) for r in range(self.stride))
        positions = usual(self.data) + longest - 1
        return one_by_one * usual(self.positions), longest * self.stride * positions
