"""Task schedulers (classic): which task has the next batch of trials.

`RoundRobin` and `GradientBased` are given to a search, or run one by `tune`; one of a script's own
derives from `PyTaskScheduler` and has `next_task_id`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.errors import ArgumentTypeError, ArgumentValueError, NotAvailableError, TuningError
from slipway.meta_schedule.database import kept_in
from slipway.meta_schedule.scheduling import TaskRecord
from slipway.meta_schedule.searches import SearchParts, TrialLimits, search
from slipway.meta_schedule.utils import Described
from slipway.toolchain.tempdir import tempdir

__all__ = [
    "GradientBased",
    "PyTaskScheduler",
    "RoundRobin",
    "TaskRecord",
    "TaskScheduler",
    "create",
]


_OF_SEARCH = (
    "builder", "runner", "database", "max_trials", "cost_model", "measure_callbacks",
)  # fmt: skip


class TaskScheduler(Described):
    """Chooses among tasks; `tasks_` say where they stand while a search runs.

    What `tune` takes may be given here, as in TVM 0.9 and 0.10: the tasks, their weights, builder,
    runner, database, max_trials, cost_model and measure_callbacks.
    """

    chooses = True  # by `next_task_id`

    def __init__(
        self, tasks: Sequence[Any] = (), task_weights: Sequence[float] | None = None,
        **search: Any,
    ) -> None:  # fmt: skip
        for name in search:
            if name not in _OF_SEARCH:
                raise ArgumentTypeError(f"{type(self).__name__} takes no {name!r}")
        self._tasks, self._search = list(tasks), search
        self._weights = [1.0] * len(self._tasks) if task_weights is None else list(task_weights)
        self.begin([], None, (), None)

    def begin(
        self, tasks: Sequence[TaskRecord], database: object, callbacks: Sequence[object],
        cost_model: object,
    ) -> None:  # fmt: skip
        """Be told what a search is of."""
        self.tasks_ = list(tasks)
        self.database_, self.cost_model_ = database, cost_model
        self.measure_callbacks_ = list(callbacks)

    @property
    def tasks(self) -> list[TaskRecord]:
        """The tasks of a search, by the word of TVM 0.9 and 0.10."""
        return self.tasks_

    @property
    def remaining_tasks_(self) -> int:
        """How many tasks have not ended."""
        return sum(not task.is_terminated for task in self.tasks_)

    def _outer(self) -> TaskScheduler:
        return self

    def next_task_id(self) -> int:
        """Return which task has the next batch, -1 at the end."""
        raise NotAvailableError(f"{type(self).__name__} is not in a search")

    def join_running_task(self, task_id: int) -> list[Any]:
        """Wait for nothing: a batch has ended before the next one is chosen."""
        self.record(task_id)
        return []

    def touch_task(self, task_id: int) -> None:
        """Look whether a task has ended: that is known after every batch."""
        self.record(task_id)

    def terminate_task(self, task_id: int) -> None:
        """End a task: it has no more batches."""
        self.record(task_id).is_terminated = True

    def print_tuning_statistics(self) -> None:
        """Print where the tasks stand."""
        for number, task in enumerate(self.tasks_):
            best = f"{min(task.latency_ms):.4f} ms" if task.latency_ms else "not measured"
            print(f"{number}: weight {task.task_weight:g}, {best}, "
                  f"{'ended' if task.is_terminated else 'going on'}")  # fmt: skip

    def tune(
        self,
        tasks: Sequence[Any] | None = None,
        task_weights: Sequence[float] | None = None,
        max_trials_global: int | None = None,
        max_trials_per_task: int | None = None,
        num_trials_per_iter: int | None = None,
        builder: object = "local",
        runner: object = "local",
        measure_callbacks: object = "default",
        database: Any = None,
        cost_model: object = "xgb",
    ) -> None:
        """Search the tasks; what is found is in the database.

        What is left out is what the scheduler was given when it was made.
        """
        known = self._search
        tasks = self._tasks if tasks is None else list(tasks)
        weights = self._weights if task_weights is None else task_weights
        database = known.get("database") if database is None else database
        if database is None:
            raise TuningError("TaskScheduler.tune needs database=, which gets the trials")
        limits = _limits(
            tasks, max_trials_global or known.get("max_trials"), max_trials_per_task,
            num_trials_per_iter,
        )  # fmt: skip
        parts = SearchParts(
            known.get("builder") or builder, known.get("runner") or runner,
            known.get("cost_model") or cost_model,
            known.get("measure_callbacks") or measure_callbacks, self,
        )  # fmt: skip
        with tempdir() as folder, kept_in(database, folder.path) as found:
            search(list(zip(tasks, weights, strict=True)), found, limits, parts)

    def record(self, task_id: int) -> TaskRecord:
        """Return where a task stands.  Raises TuningError where there is no such task."""
        if not 0 <= task_id < len(self.tasks_):
            raise TuningError(
                f"{type(self).__name__}: task {task_id!r} is none of {len(self.tasks_)}, which are "
                "0 and up"
            )
        return self.tasks_[task_id]

    @staticmethod
    def create(kind: object = "gradient", *args: Any, **kwargs: Any) -> TaskScheduler:
        """Return a scheduler: itself, or by its name."""
        if isinstance(kind, TaskScheduler):
            return kind
        kinds = {"gradient": GradientBased, "round-robin": RoundRobin}
        if kind not in kinds:
            raise ArgumentValueError(f"task_scheduler {kind!r}: it is one of {', '.join(kinds)}")
        made: TaskScheduler = kinds[str(kind)](*args, **kwargs)
        return made


create = TaskScheduler.create


def _limits(
    tasks: Sequence[Any], everywhere: int | None, each: int | None, batch: int | None
) -> TrialLimits:
    """Return how many trials there are; what nothing says, the tasks' strategies do."""
    strategies = [getattr(task, "search_strategy", None) for task in tasks]
    own = [getattr(one, "max_trials_per_task", None) for one in strategies]
    sizes = [getattr(one, "num_trials_per_iter", None) for one in strategies]
    each = each or max((n for n in own if n), default=everywhere)
    if not each:
        raise TuningError(
            "TaskScheduler.tune needs max_trials_global= or max_trials_per_task=, which say how "
            "many trials there are"
        )
    batch = batch or min((n for n in sizes if n), default=64)
    return TrialLimits(everywhere or each * len(tasks), each, batch)


class RoundRobin(TaskScheduler):
    """One batch of each task after the other."""

    _last = -1

    def next_task_id(self) -> int:
        """Return the next task that has not ended."""
        count = len(self.tasks_)
        for step in range(1, count + 1):
            number = (self._last + step) % count
            if not self.tasks_[number].is_terminated:
                self._last = number
                return number
        return -1


class GradientBased(TaskScheduler):
    """The task that takes most of the time, as the engine chooses; the numbers are kept."""

    chooses = False

    def __init__(
        self, tasks: Sequence[Any] = (), task_weights: Sequence[float] | None = None, *,
        alpha: float = 0.2, window_size: int = 3, seed: int = -1, **search: Any,
    ) -> None:  # fmt: skip
        super().__init__(tasks, task_weights, **search)
        self.alpha, self.window_size, self.seed = alpha, window_size, seed


class PyTaskScheduler(TaskScheduler):
    """One of a script's own: it has `next_task_id`, and may look at `tasks_`."""

    def next_task_id(self) -> int:
        """Return which task has the next batch, -1 at the end."""
        raise ArgumentValueError(f"{type(self).__name__}: next_task_id is not defined")


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
