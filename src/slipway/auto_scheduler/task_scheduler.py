"""Searches several tasks: trials go where the time of the whole is."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.auto_scheduler.cost_model import XGBModel
from slipway.auto_scheduler.search_policy import (
    CostModel,
    PreloadMeasuredStates,
    RandomModel,
    SketchPolicy,
    told,
)
from slipway.auto_scheduler.search_task import TuningOptions
from slipway.autotvm.tuner import unmeasured
from slipway.errors import TuningError
from slipway.toolchain.tempdir import tempdir

_log = logging.getLogger("slipway.auto_scheduler")
BATCH = 8
HOPED = 0.1  # part of a task's time, by whose loss tasks are compared
LEAST = 2  # trials of a task, where few are shared by many: the first is the default itself
POLICIES: dict[str, Callable[[], CostModel]] = {
    "default": XGBModel, "sketch.xgb": XGBModel, "sketch.random": RandomModel,
}  # fmt: skip
STRATEGIES = ("gradient", "round-robin")


class TaskScheduler:
    """Tunes tasks together; `task_weights` says how often each is run.

    "gradient" gives the next batch to the task whose gain would be the objective's most, halved for
    every batch that brought it nothing; "round-robin" to each in turn.  After a search `best_costs`
    are the seconds of each task's best, and `cur_score` what `objective_func` makes of them (by
    default the weighted sum).
    """

    def __init__(
        self,
        tasks: Sequence[Any],
        task_weights: Sequence[float] | None = None,
        objective_func: Callable[[Sequence[float]], float] | None = None,
        strategy: str = "gradient",
        load_model_file: str | None = None,
        load_log_file: str | None = None,
        alpha: float = 0.2,
        beta: float = 2,
        gamma: float = 0.5,
        backward_window_size: int = 3,
        callbacks: Sequence[Any] | None = None,
    ) -> None:
        if strategy not in STRATEGIES:
            raise TuningError(f"strategy {strategy!r} is not one of {', '.join(STRATEGIES)}")
        if load_model_file:
            raise TuningError("load_model_file is not there: load_log_file learns from the log")
        del alpha, beta, gamma, backward_window_size  # of classic TVM's estimate of gains
        self.tasks = list(tasks)
        weights = (
            [1.0] * len(self.tasks) if task_weights is None else list(map(float, task_weights))
        )
        if len(weights) != len(self.tasks):
            raise TuningError(f"there are {len(self.tasks)} tasks and {len(weights)} weights")
        self.task_weights = weights
        self.objective_func = objective_func or self._weighted
        self.strategy, self.load_log_file = strategy, load_log_file
        self.callbacks = [PrintTableInfo(), LogEstimatedLatency("total_latency.tsv")]
        if callbacks is not None:
            self.callbacks = list(callbacks)
        self.task_cts = [0] * len(self.tasks)
        self.best_costs = [math.inf] * len(self.tasks)
        self.cur_score = math.inf
        self.ct = 0
        self.tic = time.time()

    def _weighted(self, costs: Sequence[float]) -> float:
        return sum(c * w for c, w in zip(costs, self.task_weights, strict=True))

    def tune(
        self,
        tune_option: TuningOptions,
        search_policy: str | Sequence[SketchPolicy] = "default",
        search_policy_params: Mapping[str, object] | None = None,
        adaptive_training: bool = False,
        per_task_early_stopping: int | None = None,
    ) -> None:
        """Make the trials of the options, over all tasks together.

        Raises TuningError when a device gives no results, or no candidate of any task could be
        measured; what was found is in the log by then.
        """
        del search_policy_params, adaptive_training
        policies = self._policies(search_policy)
        share = tune_option.num_measure_trials // max(1, len(self.tasks))
        size = min(BATCH, tune_option.num_measures_per_round, max(LEAST, share))
        self.tic = time.time()
        with tempdir() as folder:
            searches = [p.tuner.begin(tune_option.measuring, Path(folder.path)) for p in policies]
            waiting = list(range(len(self.tasks)))
            while waiting and self.ct < tune_option.num_measure_trials:
                at = self._next(waiting, searches)
                policy, search = policies[at], searches[at]
                limit = min(size, tune_option.num_measure_trials - self.ct)
                call = told(policy, tune_option.measure_callbacks, 0)
                for callback in self.callbacks:
                    callback.pre_tune(self, at)
                with search.bench:
                    made = policy.tuner.advance(search, limit, self.task_cts[at], [call])
                self.ct += made
                self.task_cts[at] += made
                if not search.is_unmeasured:
                    self.best_costs[at] = search.default_seconds * search.best_score
                self.cur_score = self.objective_func(self.best_costs)
                stale = self.task_cts[at] - policy.tuner.best_iter
                if not made or (per_task_early_stopping and stale >= per_task_early_stopping):
                    waiting.remove(at)
                for callback in self.callbacks:
                    callback.post_tune(self, at)
                early = tune_option.early_stopping
                if early and self.ct - max(p.tuner.best_iter for p in policies) >= early:
                    break
        _tell_unmeasured(self.tasks, searches)

    def _policies(self, given: str | Sequence[SketchPolicy]) -> list[SketchPolicy]:
        if not isinstance(given, str):
            return list(given)
        if given not in POLICIES:
            raise TuningError(f"search_policy {given!r} is not one of {', '.join(POLICIES)}")
        calls = [PreloadMeasuredStates(self.load_log_file)] if self.load_log_file else []
        return [
            SketchPolicy(task, POLICIES[given](), init_search_callbacks=calls)
            for task in self.tasks
        ]

    def _next(self, waiting: Sequence[int], searches: Sequence[Any]) -> int:
        fresh = [at for at in waiting if self.task_cts[at] == 0]
        if fresh:
            return fresh[0]
        if self.strategy == "round-robin":
            return min(waiting, key=lambda at: self.task_cts[at])
        return max(waiting, key=lambda at: self._hope(at, int(searches[at].fruitless)))

    def _hope(self, at: int, fruitless: int) -> float:
        """Return what the whole would gain if a task became a tenth faster."""
        costs = list(self.best_costs)
        now = float(self.objective_func(costs))
        costs[at] *= 1 - HOPED
        gain = now - float(self.objective_func(costs))
        return (gain if math.isfinite(gain) else math.inf) / 2.0**fruitless


def _tell_unmeasured(tasks: Sequence[Any], searches: Sequence[Any]) -> None:
    """Warn of tasks none of whose candidates could be measured; TuningError for all of them."""
    texts = [
        unmeasured(task, search)
        for task, search in zip(tasks, searches, strict=True)
        if search.is_unmeasured
    ]
    if texts and len(texts) == sum(search.trials > 0 for search in searches):
        raise TuningError(texts[0])
    for text in texts:
        _log.warning("%s", text)


class TaskSchedulerCallback:
    """What is told after each batch; a script's own derives from it."""

    def pre_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Before the first batch."""

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """After a batch of a task."""


class PrintTableInfo(TaskSchedulerCallback):
    """Prints a table of all tasks after each batch."""

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Print it."""
        print(f"{'ID':>4} | {'Task':<40} | {'Latency (ms)':>12} | {'GFLOPS':>9} | {'Trials':>6}")
        for number, task in enumerate(task_scheduler.tasks):
            cost = task_scheduler.best_costs[number]
            known = 0 < cost < math.inf
            latency = f"{1e3 * cost:.3f}" if known else "-"
            speed = f"{task.flop / cost / 1e9:.2f}" if known else "-"
            print(
                f"{number:>4} | {task.desc[:40]:<40} | {latency:>12} | {speed:>9} | "
                f"{task_scheduler.task_cts[number]:>6}"
            )
        total = task_scheduler.cur_score
        said = f"{1e3 * total:.3f} ms" if total < math.inf else "-"
        print(
            f"Estimated total latency: {said}\tTrials: {task_scheduler.ct}\t"
            f"Used time: {time.time() - task_scheduler.tic:.0f} s\tNext ID: {task_id}"
        )


class LogEstimatedLatency(TaskSchedulerCallback):
    """Writes the estimated latency of the whole after each batch, as a line of a table."""

    def __init__(self, log_file: str | Path) -> None:
        self.log_file = Path(log_file)
        self.log_file.unlink(missing_ok=True)

    def post_tune(self, task_scheduler: TaskScheduler, task_id: int) -> None:
        """Write it."""
        del task_id
        total = task_scheduler.cur_score
        said = f"{1e3 * total:.3f} ms" if total < math.inf else "N/A"
        spent = time.time() - task_scheduler.tic
        with self.log_file.open("a", encoding="utf-8") as file:
            file.write(f"ElapsedTime(s)\t{spent:.0f}\tEstimatedLatency(ms)\t{said}\t"
                       f"Trials\t{task_scheduler.ct}\n")  # fmt: skip
