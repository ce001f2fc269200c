"""Tuning a whole model: trials go where the model's time is, and stop where nothing is gained."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from slipway.errors import TuningError
from slipway.ir.function import IRModule
from slipway.target import Target
from slipway.toolchain.tempdir import tempdir
from slipway.tuning.builders import Builder
from slipway.tuning.database import Database, KeptTask
from slipway.tuning.experience import Experience
from slipway.tuning.layout_search import LayoutProgress, tune_layouts
from slipway.tuning.layouts import extract_layouts
from slipway.tuning.measure import Decision, kernel_bench
from slipway.tuning.runner import Runner, at_work
from slipway.tuning.search import Deadline, TaskSearch, kernel_errors
from slipway.tuning.task import TuningTask, extract_tasks
from slipway.tuning.whole_model import WholeModel, check_model

FRUITLESS = 3  # batches without a better candidate, after which a task rests
CHECK = 3.0  # times a build of the model, that its last word takes: two builds, and the rounds


@dataclass(frozen=True)
class Budget:
    """What a search may cost: trials of a task, of all tasks together, and seconds; 0: any."""

    per_task: int = 64
    in_all: int = 0
    seconds: float = 0.0
    batch: int = 8


class Searched(Decision, Protocol):
    """What trials are shared among: a kernel of a model, or a function of loops."""

    @property
    def op(self) -> str:
        """The operator that is decided about."""

    @property
    def weight(self) -> float:
        """How often it is called."""


SearchedT = TypeVar("SearchedT", bound=Searched)


@dataclass(frozen=True)
class Progress(Generic[SearchedT]):
    """Where a task stands after a batch."""

    task: SearchedT
    number: int  # of the task, from 0
    trials: int
    score: float  # of the best, relative to the default
    default_seconds: float
    errors: dict[str, int]
    is_done: bool
    best: str = ""  # the best candidate, in words
    drift: float = 1.0  # the slowest batch's time of the default over the fastest's
    condition: str = ""  # what the device said then of its heat and clock


class Sharing(Generic[SearchedT]):
    """Which search has the next batch: one of each, then where most of the time is.

    That is halved for every batch that brought a task nothing; after three such it rests.
    """

    def __init__(self) -> None:
        self._begun: set[str] = set()

    def next(self, waiting: Sequence[TaskSearch[SearchedT]]) -> TaskSearch[SearchedT] | None:
        """Return the search whose turn it is, None to end all."""
        new = [search for search in waiting if search.task.key not in self._begun]
        chosen = new[0] if new else max(waiting, key=_worth)
        self._begun.add(chosen.task.key)
        return chosen

    def is_over(self, search: TaskSearch[SearchedT]) -> bool:
        """Return whether a search has no more batches, its trials aside."""
        return search.fruitless >= FRUITLESS

    def ended(self, search: TaskSearch[SearchedT]) -> None:
        """Be told of a search that has no more batches."""


Watcher = Callable[[Progress[TuningTask]], None]
Prepare = Callable[[Sequence[TaskSearch[TuningTask]]], "Sharing[TuningTask] | None"]


def tune_tasks(
    tasks: Sequence[TuningTask],
    runner: Runner,
    database: Database,
    budget: Budget | None = None,
    watcher: Watcher | None = None,
    seed: int = 0,
    builder: Builder | None = None,
    prepare: Prepare | None = None,
) -> list[TuningTask]:
    """Search the tasks; what is found is in the database, after Ctrl-C and errors too.

    After one batch of each, the next goes to the task whose calls take most of the model's time,
    halved for every batch that brought it nothing.  ``prepare(searches)`` may change that, and
    what is told of batches.  Returns the tasks for which the seconds were too few.  Raises
    TuningError when the device fails, and at the end when there is a kernel of which nothing could
    be measured.
    """
    with tempdir() as folder:
        experience = Experience(database)
        searches = [
            TaskSearch(
                task, database,
                kernel_bench(task, runner, Path(folder.path), builder=builder), seed,
                experience.of(task),
            )
            for task in tasks
        ]  # fmt: skip
        sharing = None if prepare is None else prepare(searches)
        return share_trials(searches, budget or Budget(), watcher, sharing)


def share_trials(
    searches: Sequence[TaskSearch[SearchedT]],
    limit: Budget,
    watcher: Callable[[Progress[SearchedT]], None] | None = None,
    sharing: Sharing[SearchedT] | None = None,
) -> list[SearchedT]:
    """Let searches go on until a budget is spent; `sharing` says whose turn it is.

    A batch is as large as the seconds that are left allow, by what candidates took before.
    """
    spent, deadline = 0, Deadline(limit.seconds)
    begun = {search.task.key: search.trials for search in searches}
    each: dict[str, float] = {}  # seconds of a candidate
    waiting = list(searches)
    shares = sharing or Sharing()
    unfinished: list[SearchedT] = []
    while waiting and (search := shares.next(waiting)) is not None:
        search.deadline = deadline
        made = search.trials - begun[search.task.key]
        size = min(limit.batch, limit.per_task - made)
        if limit.in_all:
            size = min(size, limit.in_all - spent)
        known = each.get(search.task.key, max(each.values(), default=0.0))
        fits = deadline.fitting(size, known)
        if size > 0 and not fits:
            waiting.remove(search)
            shares.ended(search)
            unfinished.append(search.task)
            continue
        number, start = searches.index(search), time.monotonic()
        standing = (
            f"tuning {search.task.op}, {number + 1} of {len(searches)}: {search.trials} trials,"
            f" {search.best_score:.2f} of the default's time"
        )
        with at_work(standing):
            tried = _step(search, fits) if size > 0 else 0
        spent += tried
        if tried:
            each[search.task.key] = (time.monotonic() - start) / tried
        made = search.trials - begun[search.task.key]
        done = tried == 0 or made >= limit.per_task or shares.is_over(search)
        if watcher is not None:
            watcher(
                Progress(
                    search.task, number, search.trials, search.best_score,
                    search.default_seconds,
                    {kind: n for kind, n in search.errors.items() if kind}, done,
                    str(search.best), search.watch.most, search.watch.said,
                )
            )  # fmt: skip
        if done:
            waiting.remove(search)
            shares.ended(search)
        if limit.in_all and spent >= limit.in_all:
            break
    _expect_measured(searches)
    return unfinished


def tune_model(
    module: IRModule,
    target: Target,
    params: Mapping[str, Any] | None,
    runner: Runner,
    database: Database,
    budget: Budget | None = None,
    watcher: Watcher | None = None,
    *,
    begun: Callable[[list[TuningTask]], None] | None = None,
    layout_watcher: Callable[[LayoutProgress], None] | None = None,
    checked: Callable[[WholeModel], None] | None = None,
    unfinished: Callable[[Sequence[KeptTask]], None] | None = None,
    seed: int = 0,
    builder: Builder | None = None,
    prepare: Prepare | None = None,
) -> list[TuningTask]:
    """Search the layouts of a model, then the kernels that follow.

    Layouts take half of the seconds and of the trials in all at most.  At the end the whole model
    is timed with what was found, and what slows it down set aside: seconds for that are kept.
    ``begun(tasks)`` is told the kernels before their search, ``checked(model)`` what the model
    gained, ``unfinished(tasks)`` those for which the seconds were too few.  Returns the kernels.
    """
    limit, start, known = budget or Budget(), time.monotonic(), len(database)
    short: list[KeptTask] = []
    builds = [0.0]

    def look(progress: LayoutProgress) -> None:
        builds.append(progress.build_seconds)
        if layout_watcher is not None:
            layout_watcher(progress)

    # A budget of few trials in all is for the kernels: each layout costs a whole model.
    if not limit.in_all or limit.in_all > limit.per_task:
        tune_layouts(
            module, target, params, runner, database,
            seconds=limit.seconds / 2, per_task=limit.per_task, in_all=limit.in_all // 2,
            watcher=look, unfinished=short.extend,
        )  # fmt: skip
    with database:
        tasks = extract_tasks(module, target, params)
    if begun is not None:
        begun(tasks)
    if limit.seconds:
        left = limit.seconds - (time.monotonic() - start)
        left -= min(left / 2, CHECK * max(builds))
        limit = replace(limit, seconds=max(left, 0.001))
    if limit.in_all:
        limit = replace(limit, in_all=max(1, limit.in_all - (len(database) - known)))
    short += tune_tasks(tasks, runner, database, limit, watcher, seed, builder, prepare)
    if unfinished is not None and short:
        unfinished(short)
    every: list[KeptTask] = [*extract_layouts(module, target, params), *tasks]
    with at_work("timing a tuned model"):
        whole = check_model(module, target, params, runner, database, every)
    if checked is not None and whole is not None:
        checked(whole)
    return tasks


def _expect_measured(searches: Sequence[TaskSearch[SearchedT]]) -> None:
    """Raise TuningError for tasks of which no trial has a time: the search was none."""
    lost = [search for search in searches if search.is_unmeasured]
    if lost:
        names = ", ".join(str(search.task) for search in lost[:4])
        raise TuningError(
            f"{len(lost)} of {len(searches)} kernels could not be measured ({names}): "
            f"{lost[0].first_error}"
        )


def _worth(search: TaskSearch[SearchedT]) -> float:
    seconds = search.default_seconds * search.best_score * search.task.weight
    return seconds / 2.0**search.fruitless


def _step(search: TaskSearch[SearchedT], size: int) -> int:
    with search.bench, kernel_errors(search.task):
        return search.step(size)
