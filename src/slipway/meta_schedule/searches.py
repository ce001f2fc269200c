"""Searches with parts of a script's own: schedulers, callbacks, cost models, builders, runners.

Each is put where the engine has its own: what is not given, the engine does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from slipway.blocks.schedule import Schedule
from slipway.errors import ArgumentValueError, SlipwayError, TuningError
from slipway.meta_schedule.builder import Builder, BuilderResult, LocalBuilder
from slipway.meta_schedule.cost_model import PyCostModel, own_model
from slipway.meta_schedule.database import JSONDatabase
from slipway.meta_schedule.measure_callback import PyMeasureCallback, own_callbacks
from slipway.meta_schedule.runner import create as made_runner
from slipway.meta_schedule.runner import gives_times_alone
from slipway.meta_schedule.runner.artifact import RunnerResult
from slipway.meta_schedule.runner.own_bench import OwnBuilder, TimedBench, expect_checkable
from slipway.meta_schedule.scheduling import Scheduling, TaskRecord
from slipway.meta_schedule.search_strategy import MeasureCandidate, SearchStrategy
from slipway.meta_schedule.tune_context import TuneContext
from slipway.target import Target
from slipway.toolchain.tempdir import tempdir
from slipway.transform.context import PassContext
from slipway.tuning.builders import Builder as EngineBuilder
from slipway.tuning.experience import Experience
from slipway.tuning.measure import Bench, KernelSubject, Measured, kernel_bench
from slipway.tuning.schedules.block_schedules import BlockTask
from slipway.tuning.search import Ranking, TaskSearch
from slipway.tuning.space import Candidate
from slipway.tuning.task import TuningTask
from slipway.tuning.tune import Budget, Sharing, share_trials

LOOKED_AT = 64  # candidates that a script's cost model ranks: each has its steps taken for that


@dataclass(frozen=True)
class TrialLimits:
    """How many trials there are in all, of each task, and in a batch."""

    in_all: int
    per_task: int = 0
    per_iter: int = 64

    def budget(self) -> Budget:
        """Return them as the engine's; a batch is small enough for one upload."""
        return Budget(
            self.per_task or self.in_all, self.in_all, batch=max(1, min(self.per_iter, 16))
        )


@dataclass(frozen=True)
class SearchParts:
    """What a script gives of a search: names stand for what the engine does."""

    builder: object = "local"
    runner: object = "local"
    cost_model: object = "xgb"
    measure_callbacks: object = "default"
    scheduler: Scheduling | None = None

    @property
    def engine_builder(self) -> EngineBuilder | None:
        """What compiles, for the engine."""
        return engine_builder(self.builder)

    def sharing(
        self,
        searches: Sequence[TaskSearch[Any]],
        database: object,
        contexts: Sequence[TuneContext | None] = (),
    ) -> Sharing[Any] | None:
        """Put the parts into searches, and return who chooses among these."""
        callbacks = own_callbacks(self.measure_callbacks)
        model = own_model(self.cost_model)
        if self.scheduler is None and not callbacks and model is None:
            return None
        if self.scheduler is None:
            raise TuningError("callbacks and cost models of one's own need a task scheduler")
        known = list(contexts) or [None] * len(searches)
        records = [
            TaskRecord(context or one.task, float(one.task.weight))
            for one, context in zip(searches, known, strict=True)
        ]
        self.scheduler.begin(records, database, callbacks, self.cost_model)
        for number, (one, context) in enumerate(zip(searches, known, strict=True)):
            one.told = Told(self.scheduler, number, one, context, callbacks, model)
            if model is not None and context is not None:
                one.model = OwnRanking(model, context, one)
        return ScheduledSharing(self.scheduler, searches)


def engine_builder(given: object) -> EngineBuilder | None:
    """Return what a script gave as the engine's builder; None where it is a name."""
    if given is None or isinstance(given, str):
        return None
    if isinstance(given, LocalBuilder) and not given.is_own:
        return given.builder
    if isinstance(given, Builder):
        return OwnBuilder(given)
    if isinstance(given, EngineBuilder):
        return given
    raise ArgumentValueError(
        f"builder {given!r:.100} is none: give a LocalBuilder, a class derived from PyBuilder, or "
        "what tuning.build_cluster.builder_of returns"
    )


def search(
    tasks: Sequence[tuple[Any, float]],
    database: JSONDatabase,
    limits: TrialLimits,
    parts: SearchParts,
    seed: int = 0,
    watcher: Any = None,
) -> None:
    """Search kernels and functions of loops together; what is found is in the database."""
    with PassContext(opt_level=3), tempdir() as folder:
        experience = Experience(database)
        searches: list[TaskSearch[Any]] = []
        contexts: list[TuneContext | None] = []
        for task, weight in tasks:
            if isinstance(task, TuneContext):
                made = task.task(weight)
                database.commit_workload(made.func)
                kind: Any = SearchStrategy.create(task.search_strategy or "evolutionary").SEARCH
                bench = _function_bench(made, parts, Path(folder.path))
                searches.append(kind(made, database, bench, seed))
                contexts.append(task)
            elif isinstance(task, TuningTask):
                kernel = replace(task, weight=weight)
                bench = _kernel_bench(kernel, parts, Path(folder.path))
                searches.append(TaskSearch(kernel, database, bench, seed, experience.of(kernel)))
                contexts.append(None)
            else:
                raise ArgumentValueError(
                    f"{task!r:.100} is no task: a TuneContext, or one of extract_tasks"
                )
        sharing = parts.sharing(searches, database, contexts)
        share_trials(searches, limits.budget(), watcher, sharing)


def _function_bench(task: BlockTask, parts: SearchParts, folder: Path) -> Bench:
    if gives_times_alone(parts.runner):
        here = BlockTask(task.name, task.func, Target("llvm"), task.space, task.weight)
        return TimedBench(task, task, here, parts.runner, folder, _own_builder(parts))
    return task.bench(_runner(parts), folder, builder=parts.engine_builder)


def _kernel_bench(task: TuningTask, parts: SearchParts, folder: Path) -> Bench:
    if gives_times_alone(parts.runner):
        expect_checkable(task.target, task)
        subject = KernelSubject(task)
        return TimedBench(task, subject, subject, parts.runner, folder, _own_builder(parts))
    return kernel_bench(task, _runner(parts), folder, builder=parts.engine_builder)


def _runner(parts: SearchParts) -> Any:
    return made_runner(parts.runner) if isinstance(parts.runner, str) else parts.runner


def _own_builder(parts: SearchParts) -> Builder | None:
    return parts.builder if isinstance(parts.builder, Builder) else None


@dataclass
class Told:
    """Carries what a batch did to a script's callbacks and cost model."""

    scheduler: Scheduling
    number: int
    search: TaskSearch[Any]
    context: TuneContext | None
    callbacks: Sequence[PyMeasureCallback]
    model: PyCostModel | None

    def __call__(self, measured: Sequence[Measured]) -> None:
        """Tell them."""
        record = self.scheduler.record(self.number)
        record.build_error_count += sum(m.kind == "build" for m in measured)
        record.run_error_count += sum(m.kind in ("run", "wrong") for m in measured)
        times = [m.seconds for m in measured if not m.kind]
        record.latency_ms += [1e3 * sorted(t)[len(t) // 2] for t in times]
        tried = [self._candidate(m.candidate) for m in measured]
        ran = [RunnerResult(None, m.error) if m.kind else RunnerResult(m.seconds) for m in measured]
        built = [
            BuilderResult(None, m.error)
            if m.kind == "build"
            else BuilderResult(str(self.search.bench.folder))
            for m in measured
        ]
        if self.model is not None and self.context is not None:
            pairs = [(c, r) for c, r in zip(tried, ran, strict=True) if c.sch is not None]
            self.model.update(self.context, [c for c, _ in pairs], [r for _, r in pairs])
        for callback in self.callbacks:
            callback.apply(self.scheduler, self.number, tried, built, ran)

    def _candidate(self, candidate: Candidate) -> MeasureCandidate:
        sch = None if self.context is None else _schedule(self.search, candidate)
        info = None if self.context is None else self.context.args_info()
        return MeasureCandidate(sch, info, candidate)


class OwnRanking:
    """The engine's ranking, whose first candidates a script's cost model puts in order."""

    def __init__(self, model: PyCostModel, context: TuneContext, of: TaskSearch[Any]) -> None:
        self.model, self.context, self.search = model, context, of
        self.first: Ranking = of.model

    def learn(self, scores: Any) -> None:
        """Let the engine's learn; the script's has been told after each batch."""
        self.first.learn(scores)

    def ranked(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates, the best first; those that cannot be scheduled are at the end."""
        ranked = self.first.ranked(candidates)
        few: list[MeasureCandidate] = []
        for candidate in ranked[:LOOKED_AT]:
            sch = _schedule(self.search, candidate)
            if sch is not None:
                few.append(MeasureCandidate(sch, self.context.args_info(), candidate))
        if not few:
            return ranked
        said = np.asarray(self.model.predict(self.context, few), dtype="float64").reshape(-1)
        if len(said) != len(few):
            raise TuningError(
                f"{type(self.model).__name__}.predict returned {len(said)} numbers for {len(few)} "
                "candidates"
            )
        first = [few[i].candidate for i in np.argsort(-said, kind="stable")]
        chosen = [c for c in first if c is not None]
        return [*chosen, *(c for c in ranked if c not in set(chosen))]


def _schedule(of: TaskSearch[Any], candidate: Candidate) -> Schedule | None:
    """Return a candidate's schedule, None where it is refused."""
    try:
        made: Schedule = of.task.space.schedule(candidate)
    except SlipwayError:
        return None
    return made


class ScheduledSharing(Sharing[Any]):
    """The engine's choice of a search, by a scheduler."""

    def __init__(self, scheduler: Scheduling, searches: Sequence[TaskSearch[Any]]) -> None:
        super().__init__()
        self.scheduler, self.searches = scheduler, list(searches)

    def next(self, waiting: Sequence[TaskSearch[Any]]) -> TaskSearch[Any] | None:
        """Return what the scheduler says.  Raises TuningError for a task that has ended."""
        left = [one for one in waiting if not self._record(one).is_terminated]
        if not left:
            return None
        if not self.scheduler.chooses:
            return super().next(left)
        number = self.scheduler.next_task_id()
        if number == -1:
            return None
        if self.scheduler.record(number).is_terminated or self.searches[number] not in left:
            raise TuningError(
                f"{type(self.scheduler).__name__}.next_task_id returned {number}, a task that has "
                "ended: look at tasks_[number].is_terminated"
            )
        return self.searches[number]

    def is_over(self, search: TaskSearch[Any]) -> bool:
        """Return whether a search has no more batches."""
        return super().is_over(search) or self._record(search).is_terminated

    def ended(self, search: TaskSearch[Any]) -> None:
        """Tell the scheduler."""
        self._record(search).is_terminated = True

    def _record(self, search: TaskSearch[Any]) -> TaskRecord:
        return self.scheduler.record(self.searches.index(search))
