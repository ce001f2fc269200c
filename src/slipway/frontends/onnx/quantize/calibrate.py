"""The range of each tensor over calibration data: smallest and largest, percentiles, or by entropy.

Entropy (Kullback-Leibler) looks for the threshold whose clipped and coarsened histogram tells
least less than the full one, as TensorRT's calibration does: 2048 bins of magnitudes, 128 levels.
That is made for the data of hundreds of inputs.  In a bin of a few elements the count is chance,
which a coarser histogram of a wider range smooths away and so seems to lose: the fewer elements,
the more would be clipped.  So bins are merged until they hold 32 elements on average, and where
fewer than 1024 are left nothing is clipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slipway.compiler.relay_build import build
from slipway.errors import ModelError, did_you_mean
from slipway.frontends.onnx.importer import from_onnx
from slipway.frontends.onnx.quantize.graph import Array
from slipway.frontends.onnx.quantize.samples import Sample
from slipway.frontends.onnx.reader import onnx_package
from slipway.runtime.devices import cpu
from slipway.runtime.graph_executor import GraphModule

METHODS = ("minmax", "percentile", "entropy")
BINS = 2048
LEVELS = 128
MIN_BINS = 8 * LEVELS  # with fewer, half of the range is near to no loss whatever lies beyond
MIN_PER_BIN = 32
Range = tuple[float, float]


def run_tensors(
    proto: Any, names: Sequence[str], samples: Sequence[Sample]
) -> Iterator[dict[str, Array]]:
    """Run a model on samples; yield the values of the named tensors for each."""
    onnx = onnx_package()
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    del model.graph.output[:]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in names)
    shapes = {i.name: samples[0][i.name].shape for i in proto.graph.input}
    module, params = from_onnx(model, shape=shapes)
    library = build(module, "llvm", params=params)
    executor = GraphModule(library["default"](cpu(0)))
    for sample in samples:
        for name, value in sample.items():
            if name in shapes:
                executor.set_input(name, value)
        executor.run()
        yield {n: executor.get_output(i).numpy() for i, n in enumerate(names)}


@dataclass
class _Statistics:
    """What is gathered of one tensor."""

    low: float = np.inf
    high: float = -np.inf
    signed: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))
    magnitudes: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def see_range(self, values: Array) -> None:
        if values.size:
            self.low, self.high = (
                min(self.low, float(values.min())),
                max(self.high, float(values.max())),
            )

    def see_values(self, values: Array) -> None:
        flat = values.reshape(-1)
        self.signed += np.histogram(flat, BINS, self.bounds())[0]
        self.magnitudes += np.histogram(np.abs(flat), BINS, (0.0, self.largest()))[0]

    def largest(self) -> float:
        return max(abs(self.low), abs(self.high), 1e-30)

    def bounds(self) -> Range:
        return (self.low, self.high) if self.high > self.low else (self.low, self.low + 1e-30)


def calibrate(
    proto: Any,
    names: Sequence[str],
    samples: Sequence[Sample],
    method: str = "minmax",
    percentile: float = 99.99,
) -> dict[str, Range]:
    """Return (smallest, largest) for each named tensor, as `method` sees it.

    "minmax" takes the extremes, "percentile" cuts (100 - percentile) % off at each end, "entropy"
    clips magnitudes where that loses the least information.  Raises ModelError for an unknown
    method and for a tensor that is not finite on the calibration data.
    """
    choose = _method(method, percentile)
    found = {name: _Statistics() for name in names}
    for values in run_tensors(proto, names, samples):
        for name, array in values.items():
            found[name].see_range(array)
    for name, statistics in found.items():
        if not np.isfinite([statistics.low, statistics.high]).all():
            raise ModelError(
                f"the tensor {name!r} is not finite on the calibration data "
                f"({statistics.low} to {statistics.high}): it cannot be quantised"
            )
    if choose is None:
        return {n: (s.low, s.high) for n, s in found.items()}
    for values in run_tensors(proto, names, samples):
        for name, array in values.items():
            found[name].see_values(array)
    return {n: choose(s) for n, s in found.items()}


def _method(method: str, percentile: float) -> Callable[[_Statistics], Range] | None:
    if method not in METHODS:
        raise ModelError(
            f"method {method!r} is not one of {', '.join(METHODS)}.{did_you_mean(method, METHODS)}"
        )
    if not 50.0 < percentile <= 100.0:
        raise ModelError(f"percentile is {percentile}; it lies above 50 and is at most 100")
    if method == "minmax":
        return None
    if method == "percentile":
        return lambda s: percentile_range(s.signed, s.bounds(), percentile)
    return lambda s: entropy_range(s.magnitudes, s.largest(), s.bounds())


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
    place = (np.arange(stop) * LEVELS) // stop
    filled = kept > 0
    sums = np.bincount(place, kept, LEVELS)
    used = np.bincount(place, filled, LEVELS)
    spread = np.divide(sums, used, out=np.zeros(LEVELS), where=used > 0)
    coarse = np.where(filled, spread[place], 0.0)
    if reference.sum() == 0 or coarse.sum() == 0:
        return np.inf
    p, q = reference / reference.sum(), coarse / coarse.sum()
    some = p > 0
    return float(np.sum(p[some] * np.log(p[some] / np.maximum(q[some], 1e-12))))


def merged(ranges: Sequence[Range]) -> Range:
    """Return the range that holds all the given ones."""
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def with_zero(ranges: Mapping[str, Range]) -> dict[str, Range]:
    """Return ranges widened to hold 0, which every zero point stands for."""
    return {n: (min(low, 0.0), max(high, 0.0)) for n, (low, high) in ranges.items()}
