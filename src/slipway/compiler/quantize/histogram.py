"""What calibration gathers of one tensor, and the range that its integers get.

Entropy (Kullback-Leibler) looks for the threshold whose clipped and coarsened histogram tells
least less than the full one, as TensorRT's calibration does: 2048 bins of magnitudes, 128 levels.
That is made for the data of hundreds of inputs.  In a bin of a few elements the count is chance,
which a coarser histogram of a wider range smooths away and so seems to lose: the fewer elements,
the more would be clipped.  So bins are merged until they hold 32 elements on average, and where
fewer than 1024 are left nothing is clipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BINS = 2048
LEVELS = 128
MIN_BINS = 8 * LEVELS  # with fewer, half of the range is near to no loss whatever lies beyond
MIN_PER_BIN = 32
Range = tuple[float, float]


@dataclass
class Statistics:
    """What is gathered of one tensor."""

    low: float = np.inf
    high: float = -np.inf
    signed: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))
    magnitudes: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def see_range(self, values: Array) -> None:
        """Widen the range to hold `values`: of all data, before any is counted."""
        if values.size:
            self.low, self.high = (
                min(self.low, float(values.min())),
                max(self.high, float(values.max())),
            )

    def see_values(self, values: Array) -> None:
        """Count `values`."""
        flat = values.reshape(-1)
        self.signed += np.histogram(flat, BINS, self.bounds())[0]
        self.magnitudes += np.histogram(np.abs(flat), BINS, (0.0, self.largest()))[0]

    def largest(self) -> float:
        """Return the largest magnitude."""
        return max(abs(self.low), abs(self.high), 1e-30)

    def bounds(self) -> Range:
        """Return (smallest, largest), which differ."""
        return (self.low, self.high) if self.high > self.low else (self.low, self.low + 1e-30)


def percentile_range(counts: Array, bounds: Range, percentile: float) -> Range:
    """Return the range without (100 - percentile) % of the elements at each end."""
    edges = np.linspace(*bounds, counts.size + 1)
    total = np.cumsum(counts)
    part = total[-1] * (1.0 - percentile / 100.0)
    first = int(np.searchsorted(total, part, side="right"))
    last = int(np.searchsorted(total, total[-1] - part, side="left"))
    return float(edges[min(first, counts.size - 1)]), float(edges[min(last, counts.size - 1) + 1])


def entropy_range(counts: Array, largest: float, bounds: Range) -> Range:
    """Return the range whose magnitudes are clipped where the least information is lost.

    `counts` are of magnitudes from 0 to `largest`; `bounds` is returned where there are too few.
    """
    while counts.size >= 2 * MIN_BINS and counts.sum() < MIN_PER_BIN * counts.size:
        counts = counts.reshape(-1, 2).sum(axis=1)
    if counts.sum() < MIN_PER_BIN * counts.size:
        return bounds
    best, threshold = np.inf, counts.size
    # Exact zeros, half of what a ReLU gives, are stored exactly whatever the threshold.
    counts = np.concatenate([counts[1:2], counts[1:]])
    for stop in range(LEVELS, counts.size + 1, 4):
        loss = _divergence(counts, stop)
        if loss < best:
            best, threshold = loss, stop
    limit = largest * threshold / counts.size
    return max(bounds[0], -limit), min(bounds[1], limit)


def _divergence(counts: Array, stop: int) -> float:
    """KL(reference || quantised) of the first `stop` bins, the rest clipped into the last."""
    kept = counts[:stop].astype(np.float64)
    reference = kept.copy()
    reference[-1] += counts[stop:].sum()
    position = (np.arange(stop) * LEVELS) // stop
    filled = kept > 0
    sums = np.bincount(position, kept, LEVELS)
    used = np.bincount(position, filled, LEVELS)
    spread = np.divide(sums, used, out=np.zeros(LEVELS), where=used > 0)
    coarse = np.where(filled, spread[position], 0.0)
    if reference.sum() == 0 or coarse.sum() == 0:
        return np.inf
    p, q = reference / reference.sum(), coarse / coarse.sum()
    some = p > 0
    return float(np.sum(p[some] * np.log(p[some] / np.maximum(q[some], 1e-12))))
