"""`tune_tasks` (classic): search extracted kernels; and what a search may cost, before TVM 0.9."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from slipway.errors import ArgumentTypeError, ArgumentValueError, did_you_mean
from slipway.meta_schedule.builder import Builder
from slipway.meta_schedule.database import Database, kept_in
from slipway.meta_schedule.profiler import Profiler
from slipway.meta_schedule.relay_integration import TuneConfig, expect_known, tell
from slipway.meta_schedule.runner import PyRunner
from slipway.meta_schedule.searches import SearchParts, TrialLimits, search
from slipway.meta_schedule.task_scheduler import TaskScheduler
from slipway.meta_schedule.tune_context import TuneContext
from slipway.tuning.builders import Builder as EngineBuilder
from slipway.tuning.runner import Runner
from slipway.tuning.task import TuningTask


def tune_tasks(
    *,
    tasks: Sequence[TuningTask] | Sequence[TuneContext],
    task_weights: Sequence[float],
    work_dir: str | Path,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Builder | EngineBuilder | str = "local",
    runner: Runner | PyRunner | str = "local",
    database: Database | str = "json",
    cost_model: object = "xgb",
    measure_callbacks: object = "default",
    task_scheduler: object = "gradient",
    module_equality: str = "structural",
    seed: int | None = None,
) -> Any:
    """Search the tasks of `extracted_tasks_to_tune_contexts`; return the database of all trials.

    A task may be a `TuneContext` too, of a function of loops.  `task_weights` share out the trials.
    No layouts are searched and no whole model is timed, as there is none: `tune_relay` has both.
    Raises TuningError when the device gives no results.
    """
    expect_known(
        builder=builder, runner=runner, database=database, cost_model=cost_model,
        measure_callbacks=measure_callbacks, task_scheduler=task_scheduler,
        module_equality=module_equality,
    )  # fmt: skip
    if len(tasks) != len(task_weights) or not tasks:
        raise ArgumentValueError(
            f"tune_tasks has {len(tasks)} tasks and {len(task_weights)} task_weights: give one "
            "weight for each task, and a task at least"
        )
    limits = TrialLimits(max_trials_global, max_trials_per_task or 0, num_trials_per_iter)
    parts = SearchParts(
        builder, runner, cost_model, measure_callbacks, TaskScheduler.create(task_scheduler)
    )
    with Profiler.timeit("KernelSearch"), kept_in(database, work_dir) as found:
        search(list(zip(tasks, task_weights, strict=True)), found, limits, parts, seed or 0, tell)
    return found if isinstance(database, str) else database


class _SearchConfig(TuneConfig):
    """`num_trials_total` is of each task; options of classic TVM's own search are kept."""

    STRATEGY: ClassVar[str]
    OPTIONS: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        num_trials_per_iter: int = 32,
        num_trials_total: int | None = None,
        *,
        max_trials_per_task: int | None = None,
        max_trials_global: int | None = None,
        **options: Any,
    ) -> None:
        for name in options:
            if name not in self.OPTIONS:
                raise ArgumentTypeError(
                    f"{type(self).__name__} takes no {name!r}.{did_you_mean(name, self.OPTIONS)}"
                )
        total = num_trials_total or max_trials_per_task or TuneConfig.max_trials_per_task
        super().__init__(self.STRATEGY, num_trials_per_iter, total, max_trials_global)
        object.__setattr__(self, "options", options)


class ReplayTraceConfig(_SearchConfig):
    """Takes numbers at random."""

    STRATEGY = "replay_trace"


class ReplayFuncConfig(_SearchConfig):
    """Calls the function of the space for each candidate."""

    STRATEGY = "replay_func"


class EvolutionarySearchConfig(_SearchConfig):
    """The engine's search."""

    STRATEGY = "evolutionary"
    OPTIONS = (
        "population", "population_size", "init_measured_ratio", "init_min_unmeasured",
        "genetic_num_iters", "genetic_mutate_prob", "genetic_max_fail_count", "eps_greedy",
    )  # fmt: skip
