"""``tvmc.result_utils``: what a run gave, for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from slipway.deploy.tensors import largest_first
from slipway.driver.tvmc.model import TVMCResult
from slipway.runtime.timing import BenchmarkResult

__all__ = ["format_times", "get_top_results"]


def format_times(times: BenchmarkResult | list[Any]) -> str:
    """Return the times of a run as a table."""
    return str(times)


def get_top_results(outputs: TVMCResult, max_results: int) -> np.ndarray[Any, Any]:
    """Return two rows, of the first output: the positions of its largest values, and these."""
    values = outputs.get_output("output_0")
    positions = largest_first(values, max_results)
    return np.array([positions, values.ravel()[positions]])
