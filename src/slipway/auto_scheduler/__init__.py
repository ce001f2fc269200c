"""Schedules without templates (classic): sketches of a te computation, searched on the device.

``task.tune(options)`` searches, ``task.apply_best(log)`` returns the best schedule.  Kernels of
models are tasks too: their candidates are the strategies that apply to them (`extract_tasks`).
"""

from __future__ import annotations

from typing import Any

from slipway.arguments import COMMON, explain_all
from slipway.auto_scheduler import (
    _ffi_api,
    compute_dag,
    cost_model,
    loop_state,
    measure,
    relay_integration,
    search_policy,
    search_task,
    task_scheduler,
    utils,
    workload_registry,
)
from slipway.auto_scheduler import records as measure_record
from slipway.auto_scheduler.compute_dag import ComputeDAG, LayoutRewriteOption
from slipway.auto_scheduler.cost_model import RandomModel, XGBModel
from slipway.auto_scheduler.measure import (
    LocalBuilder,
    LocalRPCMeasureContext,
    LocalRunner,
    MeasureInput,
    MeasureResult,
    RPCRunner,
    recover_measure_input,
)
from slipway.auto_scheduler.records import (
    RecordReader,
    RecordToFile,
    distill_record_file,
    load_best_record,
    load_records,
    save_records,
)
from slipway.auto_scheduler.relay_integration import (
    ApplyHistoryBest,
    extract_tasks,
    is_auto_scheduler_enabled,
)
from slipway.auto_scheduler.search_policy import (
    EmptyPolicy,
    PreloadCustomSketchRule,
    PreloadMeasuredStates,
    SketchPolicy,
)
from slipway.auto_scheduler.search_task import (
    HardwareParams,
    SearchTask,
    TuningOptions,
    auto_schedule,
    create_task,
)
from slipway.auto_scheduler.task_inputs import register_task_input_check_func
from slipway.auto_scheduler.task_scheduler import TaskScheduler
from slipway.auto_scheduler.workload_registry import make_workload_key, register_workload
from slipway.classic.placeholders import TUNING, placeholder_of

__all__ = [
    "ApplyHistoryBest", "ComputeDAG", "EmptyPolicy", "HardwareParams", "LayoutRewriteOption",
    "LocalBuilder", "LocalRPCMeasureContext",
    "LocalRunner", "MeasureInput", "MeasureResult", "PreloadCustomSketchRule",
    "PreloadMeasuredStates", "RPCRunner", "RandomModel", "RecordReader", "RecordToFile",
    "SearchTask", "SketchPolicy", "TaskScheduler", "TuningOptions", "XGBModel", "_ffi_api",
    "auto_schedule",
    "compute_dag", "cost_model", "create_task", "distill_record_file", "extract_tasks",
    "is_auto_scheduler_enabled",
    "load_best_record", "load_records", "loop_state", "make_workload_key", "measure",
    "measure_record", "recover_measure_input", "register_task_input_check_func",
    "register_workload", "relay_integration", "save_records", "search_policy", "search_task",
    "task_scheduler", "utils", "workload_registry",
]  # fmt: skip

explain_all(globals(), __all__, COMMON)


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
