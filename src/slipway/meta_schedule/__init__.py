"""Tuning of whole models (classic): `tune_tvm` and `tune_relay` over `slipway.tuning`.

The space are the strategies of each kernel with their knobs, so that a search chooses between
algorithms too; what classic TVM searched instead, schedules of TensorIR, is not there.
"""

from __future__ import annotations

from typing import Any

from slipway.meta_schedule import builder, database, relay_integration, runner, tune, utils
from slipway.meta_schedule.profiler import Profiler
from slipway.meta_schedule.relay_integration import (
    TuneConfig,
    compile_relay,
    extract_tasks,
    is_meta_schedule_enabled,
    tune_relay,
    tune_tvm,
)
from slipway.meta_schedule.tune import tune_tasks
from slipway.placeholders import placeholder_of

__all__ = [
    "Profiler", "TuneConfig", "builder", "compile_relay", "database", "extract_tasks",
    "is_meta_schedule_enabled", "relay_integration", "runner", "tune", "tune_relay", "tune_tasks",
    "tune_tvm", "utils",
]  # fmt: skip

_OTHER = (
    "the search here is over the strategies of a model's kernels: tune_tvm, tune_relay and "
    "relay_integration.extract_tasks; schedules of TensorIR are not searched"
)


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, _OTHER)
