"""Measure calls of a Python function by the rules of a time evaluator."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from slipway.runtime.libraries.native_library import native_runtime
from slipway.runtime.packed_func import to_ffi_function
from slipway.runtime.timing import BenchmarkResult

_ORDER = (
    "number", "repeat", "min_repeat_ms", "limit_zero_time_iterations", "cooldown_interval_ms",
    "repeats_to_cooldown",
)  # fmt: skip


def timed_calls(function: Callable[[], None], options: Mapping[str, int]) -> BenchmarkResult:
    """Return the times of calls in seconds; `options` are all that `time_evaluator` takes."""
    evaluate = native_runtime().packed("time_evaluate")
    blob = bytes(evaluate(to_ffi_function(function), *(options[n] for n in _ORDER), None))
    return BenchmarkResult(struct.unpack(f"<{len(blob) // 8}d", blob))
