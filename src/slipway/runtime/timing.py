"""What a time evaluator returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from slipway.errors import ArgumentValueError


@dataclass(frozen=True)
class BenchmarkResult:
    """Times of one run, measured `repeat` times.

    `results`: seconds, one for each measurement; `mean`, `median`, `min`, `max`, `std` of them.
    """

    results: tuple[float, ...]
    mean: float = field(init=False)
    median: float = field(init=False)
    min: float = field(init=False)
    max: float = field(init=False)
    std: float = field(init=False)

    def __init__(self, results: Sequence[float]) -> None:
        values = tuple(float(value) for value in results)
        if not values:
            raise ArgumentValueError("a benchmark result needs at least one measurement.")
        set_field = object.__setattr__
        set_field(self, "results", values)
        set_field(self, "mean", float(np.mean(values)))
        set_field(self, "median", float(np.median(values)))
        set_field(self, "min", min(values))
        set_field(self, "max", max(values))
        set_field(self, "std", float(np.std(values)))

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        unit, per_second = ("ms", 1e3) if self.max >= 1e-4 else ("us", 1e6)
        title = "".join(f"{f'{name} ({unit})':>14}" for name in names)
        line = "".join(f"{getattr(self, name) * per_second:14.4f}" for name in names)
        return f"Execution time summary:\n{title}\n{line}"

    def __repr__(self) -> str:
        return (
            f"BenchmarkResult(min={self.min}, mean={self.mean}, median={self.median}, "
            f"max={self.max}, std={self.std}, results={self.results})"
        )
