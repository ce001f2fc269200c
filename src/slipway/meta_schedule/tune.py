"""`tune_tasks` (classic): search kernels that were extracted, by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from slipway.errors import ArgumentValueError
from slipway.meta_schedule.builder import LocalBuilder
from slipway.meta_schedule.database import JSONDatabase
from slipway.meta_schedule.profiler import Profiler
from slipway.meta_schedule.relay_integration import TuneConfig, expect_known, tell
from slipway.meta_schedule.runner import LocalRunner
from slipway.meta_schedule.search_strategy import SearchStrategy
from slipway.meta_schedule.tune_context import TuneContext
from slipway.toolchain.tempdir import tempdir
from slipway.transform.context import PassContext
from slipway.tuning.builders import Builder
from slipway.tuning.runner import Runner
from slipway.tuning.task import TuningTask
from slipway.tuning.tune import Budget, share_trials
from slipway.tuning.tune import tune_tasks as search_tasks


def tune_tasks(
    *,
    tasks: Sequence[TuningTask] | Sequence[TuneContext],
    task_weights: Sequence[float],
    work_dir: str | Path,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: LocalBuilder | Builder | str = "local",
    runner: Runner | str = "local",
    database: JSONDatabase | str = "json",
    cost_model: object = "xgb",
    measure_callbacks: object = "default",
    task_scheduler: object = "gradient",
    module_equality: str = "structural",
    seed: int | None = None,
) -> JSONDatabase:
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
    found = JSONDatabase(work_dir=work_dir) if isinstance(database, str) else database
    limit = TuneConfig(
        num_trials_per_iter=num_trials_per_iter,
        max_trials_per_task=max_trials_per_task or max_trials_global,
        max_trials_global=max_trials_global,
    )
    builders = builder.builder if isinstance(builder, LocalBuilder) else builder
    runners = LocalRunner() if isinstance(runner, str) else runner
    own = None if isinstance(builders, str) else builders
    pairs = list(zip(tasks, task_weights, strict=True))
    contexts = [(task, weight) for task, weight in pairs if isinstance(task, TuneContext)]
    kernels = [
        replace(task, weight=weight) for task, weight in pairs if isinstance(task, TuningTask)
    ]
    with PassContext(opt_level=3), Profiler.timeit("KernelSearch"):
        if kernels:
            search_tasks(kernels, runners, found, limit.budget(), tell, seed or 0, own)
        if contexts:
            _search_functions(contexts, runners, found, limit.budget(), seed or 0, own)
    return found


def _search_functions(
    contexts: Sequence[tuple[TuneContext, float]],
    runner: Runner,
    database: JSONDatabase,
    budget: Budget,
    seed: int,
    builder: Builder | None,
) -> None:
    """Search functions of loops, each as its context's strategy does it."""
    with tempdir() as folder:
        searches = []
        for context, weight in contexts:
            task = context.task(weight)
            kind = SearchStrategy.create(context.search_strategy or "evolutionary").SEARCH
            bench = task.bench(runner, Path(folder.path), builder=builder)
            searches.append(kind(task, database, bench, seed))
        share_trials(searches, budget, tell)
