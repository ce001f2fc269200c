"""The range of each tensor over calibration data: extremes, percentiles, or by entropy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from slipway.compiler.quantize.histogram import (
    Range,
    Statistics,
    entropy_range,
    percentile_range,
)
from slipway.compiler.relay_build import build
from slipway.errors import ModelError, did_you_mean
from slipway.frontends.onnx.importer import from_onnx
from slipway.frontends.onnx.quantize.graph import Array
from slipway.frontends.onnx.quantize.samples import Sample
from slipway.frontends.onnx.reader import onnx_package
from slipway.runtime.devices import cpu
from slipway.runtime.graph.graph_executor import GraphModule

METHODS = ("minmax", "percentile", "entropy")


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
    found = {name: Statistics() for name in names}
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


def _method(method: str, percentile: float) -> Callable[[Statistics], Range] | None:
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


def merged(ranges: Sequence[Range]) -> Range:
    """Return the range that holds all the given ones."""
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def with_zero(ranges: Mapping[str, Range]) -> dict[str, Range]:
    """Return ranges widened to hold 0, which every zero point stands for."""
    return {n: (min(low, 0.0), max(high, 0.0)) for n, (low, high) in ranges.items()}
