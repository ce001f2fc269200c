"""Tuning of models' kernels and of templates (classic), over `slipway.tuning`.

``with apply_history_best(log):`` uses what a tuner's log holds.
"""

from __future__ import annotations

from typing import Any

from slipway.arguments import COMMON, explain_all
from slipway.autotvm import (
    callback,
    database,
    env,
    graph_tuner,
    measure,
    record,
    task,
    tophub,
    tuner,
)
from slipway.autotvm.env import GLOBAL_SCOPE
from slipway.autotvm.graph_tuner import apply_graph_best
from slipway.autotvm.measure import (
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RPCRunner,
    measure_option,
)
from slipway.autotvm.record import measure_str_key
from slipway.autotvm.task import (
    ApplyHistoryBest,
    ConfigEntity,
    ConfigSpace,
    DispatchContext,
    FallbackConfigEntity,
    FallbackContext,
    apply_history_best,
    create,
    get_config,
    register_topi_compute,
    register_topi_schedule,
    template,
)
from slipway.classic.placeholders import TUNING, placeholder_of

__all__ = [
    "GLOBAL_SCOPE", "ApplyHistoryBest", "ConfigEntity", "ConfigSpace", "DispatchContext",
    "FallbackConfigEntity", "FallbackContext", "LocalBuilder", "LocalRunner", "MeasureErrorNo",
    "MeasureInput", "MeasureResult", "RPCRunner", "apply_graph_best", "apply_history_best",
    "callback", "create", "database", "env", "get_config", "graph_tuner", "measure",
    "measure_option", "measure_str_key", "record", "register_topi_compute",
    "register_topi_schedule", "task", "template", "tophub", "tuner",
]  # fmt: skip

explain_all(globals(), __all__, COMMON)


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
