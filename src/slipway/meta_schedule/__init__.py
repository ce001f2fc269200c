"""Tuning (classic): `tune_tvm` and `tune_relay` of models, `tune_tir` of functions of loops.

The space of a model are the strategies of each kernel with their knobs, so that a search chooses
between algorithms too.  That of a function are schedules of its blocks: what a function of a
script's, or rules, make of it.
"""

from __future__ import annotations

from typing import Any

from slipway.arguments import COMMON, explain_all
from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.meta_schedule import (
    arg_info,
    builder,
    cost_model,
    database,
    default_config,
    feature_extractor,
    logging,
    measure_callback,
    mutator,
    postproc,
    relay_integration,
    runner,
    schedule_rule,
    search_strategy,
    space_generator,
    task_scheduler,
    tir_integration,
    tune,
    tune_context,
    utils,
)
from slipway.meta_schedule.arg_info import ArgInfo
from slipway.meta_schedule.builder import Builder
from slipway.meta_schedule.cost_model import CostModel
from slipway.meta_schedule.feature_extractor import FeatureExtractor
from slipway.meta_schedule.measure_callback import MeasureCallback
from slipway.meta_schedule.mutator import Mutator
from slipway.meta_schedule.postproc import Postproc
from slipway.meta_schedule.profiler import Profiler
from slipway.meta_schedule.relay_integration import (
    TuneConfig,
    compile_relay,
    extract_tasks,
    is_meta_schedule_enabled,
    tune_relay,
    tune_tvm,
)
from slipway.meta_schedule.runner import Runner
from slipway.meta_schedule.schedule_rule import ScheduleRule
from slipway.meta_schedule.search_strategy import MeasureCandidate, SearchStrategy
from slipway.meta_schedule.space_generator import SpaceGenerator
from slipway.meta_schedule.task_scheduler import TaskScheduler
from slipway.meta_schedule.tir_integration import compile_tir, tune_te, tune_tir
from slipway.meta_schedule.tune import (
    EvolutionarySearchConfig,
    ReplayFuncConfig,
    ReplayTraceConfig,
    tune_tasks,
)
from slipway.meta_schedule.tune_context import TuneContext
from slipway.meta_schedule.utils import derived_object

extract_task_from_relay = extract_tasks  # as TVM 0.9 calls it

__all__ = [
    "ArgInfo", "Builder", "CostModel", "EvolutionarySearchConfig", "FeatureExtractor",
    "MeasureCallback", "MeasureCandidate",
    "Mutator", "Postproc", "Profiler", "ReplayFuncConfig", "ReplayTraceConfig", "Runner",
    "ScheduleRule", "SearchStrategy", "SpaceGenerator",
    "TaskScheduler", "TuneConfig", "TuneContext", "arg_info", "builder", "compile_relay",
    "compile_tir", "cost_model", "database", "default_config", "derived_object",
    "extract_task_from_relay", "extract_tasks", "feature_extractor",
    "is_meta_schedule_enabled", "logging", "measure_callback", "mutator", "postproc",
    "relay_integration", "runner", "schedule_rule", "search_strategy", "space_generator",
    "task_scheduler", "tir_integration", "tune", "tune_context", "tune_relay", "tune_tasks",
    "tune_te", "tune_tir", "tune_tvm", "utils",
]  # fmt: skip

explain_all(globals(), __all__, COMMON)


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
