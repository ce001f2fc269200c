"""The largest magnitude of each stored value: one for all, or as calibration data shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from slipway.compiler.quantize.config import QConfig
from slipway.compiler.quantize.histogram import Array, Statistics, entropy_range
from slipway.compiler.quantize.plan import Plan
from slipway.compiler.relay_build import build
from slipway.errors import ArgumentValueError
from slipway.ir.function import IRModule
from slipway.relay.expr import Expr, Function, Tuple
from slipway.runtime.devices import device
from slipway.runtime.graph.graph_executor import GraphModule
from slipway.target.target import Target

PERCENTILE = 0.99999
Sample = Mapping[str, Any]


def magnitudes(
    function: Function, plan: Plan, config: QConfig, dataset: Iterable[Sample] | None
) -> dict[int, float]:
    """Return by id, for each value with a scale of its own, the magnitude that is still stored."""
    roots = plan.roots()
    if config.calibrate_mode == "global_scale":
        return {id(root): float(config.global_scale) for root in roots}
    samples = list(dataset) if dataset is not None else []
    if not samples:
        raise ArgumentValueError(
            f"quantize: calibrate_mode {config.calibrate_mode!r} needs dataset=, a list of "
            "dictionaries from the names of the inputs to arrays"
        )
    found = [Statistics() for _ in roots]
    for values in _run(function, roots, samples, config.calibrate_chunk_by):
        for statistics, value in zip(found, values, strict=True):
            statistics.see_range(value)
    for statistics in found:
        if not np.isfinite([statistics.low, statistics.high]).all():
            raise ArgumentValueError(
                "quantize: a tensor is not finite on the calibration data "
                f"({statistics.low} to {statistics.high})"
            )
    for values in _run(function, roots, samples, config.calibrate_chunk_by):
        for statistics, value in zip(found, values, strict=True):
            statistics.see_values(value)
    choose = _percentile if config.calibrate_mode == "percentile" else _entropy
    return {id(root): choose(s) for root, s in zip(roots, found, strict=True)}


def _percentile(statistics: Statistics) -> float:
    """Return the magnitude that all but one in 100,000 elements do not exceed."""
    total = np.cumsum(statistics.magnitudes)
    position = int(np.searchsorted(total, total[-1] * PERCENTILE, side="left"))
    return statistics.largest() * (position + 1) / total.size


def _entropy(statistics: Statistics) -> float:
    low, high = entropy_range(
        statistics.magnitudes, statistics.largest(), (statistics.low, statistics.high)
    )
    return max(abs(low), abs(high), 1e-30)


def _run(
    function: Function, values: Sequence[Expr], samples: Sequence[Sample], chunk_by: int
) -> Iterator[list[Array]]:
    """Yield for each sample the values; `chunk_by` limits how many are computed in one run."""
    target = Target.current(allow_none=True) or Target("llvm")
    size = len(values) if chunk_by <= 0 else chunk_by
    models = []
    for first in range(0, len(values), size):
        body = Tuple(tuple(values[first : first + size]))
        module = IRModule.from_expr(Function(function.params, body, None, function.attrs))
        library = build(module, target)
        models.append(GraphModule(library["default"](device(target.kind.name, 0))))
    for sample in samples:
        found: list[Array] = []
        for model in models:
            for name, value in sample.items():
                model.set_input(name, value)
            model.run()
            found += [model.get_output(i).numpy() for i in range(model.get_num_outputs())]
        yield found
