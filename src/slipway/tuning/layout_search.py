"""The search over layouts: the whole model is timed with each candidate, beside the model as it is.

What a convolution gets changes what its neighbours get, the copies between them, and what is fused
with what; so nothing less than the model tells what is faster.  A candidate stays when the model
is faster with it in a batch and again in a second one, alone with the model as it was, and the
model's outputs are those of the operators' NumPy definitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from slipway.errors import RPCError, SlipwayError, TuningError
from slipway.ir.function import IRModule
from slipway.target import Target
from slipway.toolchain.tempdir import tempdir
from slipway.tuning.database import Database
from slipway.tuning.layouts import LayoutTask, extract_layouts
from slipway.tuning.measure import Measured, error_text, is_faster, judge, scored
from slipway.tuning.model_bench import ModelBench, is_timed_whole
from slipway.tuning.runner import Runner, at_work
from slipway.tuning.search import SAME_ERRORS, Deadline, kernel_errors
from slipway.tuning.space import Candidate

BATCH = 6
ROUNDS = 7
PROMISING = 0.97  # of the present model's time, in a batch; it must be shown once more
FRUITLESS = 1  # batches without a gain, after which a layer is done


@dataclass(frozen=True)
class LayoutProgress:
    """Where a task stands after its batches: `score` is the model's time over that at first."""

    task: LayoutTask
    number: int
    trials: int
    score: float
    default_seconds: float
    build_seconds: float = 0.0  # that the model last took to be compiled


class LayoutSearch:
    """The search over the layouts of one model; `step` makes a batch for one task."""

    def __init__(self, tasks: Sequence[LayoutTask], database: Database, bench: ModelBench) -> None:
        self.tasks, self.database, self.bench = list(tasks), database, bench
        self.device = bench.runner.device
        self.chosen: dict[str, Candidate] = {}
        self.tried: dict[str, set[Candidate]] = {}
        for task in tasks:
            best, default = database.best(task, self.device), task.space.default
            assert default is not None
            is_ours = best is not None and task.space.has(best.candidate)
            self.chosen[task.key] = best.candidate if best is not None and is_ours else default
            known = database.trials(task, self.device)
            self.tried[task.key] = {trial.candidate for trial in known}
        self.fruitless = dict.fromkeys(self.chosen, 0)
        self.score, self.seconds = 1.0, 0.0
        self._present: Path | None = None
        self._failures: list[str] = []  # of the device, in a row
        self.deadline = Deadline()
        self.build_seconds = 0.0

    def step(self, task: LayoutTask, size: int = BATCH) -> int:
        """Try some candidates of a task and return how many there were; 0: none is left."""
        tried = self.tried[task.key]
        return self.attempt(task, [c for c in task.candidates() if c not in tried][:size])

    def attempt(self, task: LayoutTask, batch: Sequence[Candidate]) -> int:
        """Try these candidates of a task and return how many there were: those that time allows."""
        if not batch:
            return 0
        tried, made = self.tried[task.key], 0
        present, errors = self.chosen[task.key], []
        paths = {present: self._present or self._built(task, present)}
        self._present = paths[present]
        for candidate in batch:
            if not self.deadline.fitting(1, self.build_seconds):
                break
            tried.add(candidate)
            made += 1
            try:
                paths[candidate] = self._built(task, candidate)
            except SlipwayError as error:
                errors.append(Measured(candidate, kind="build", error=error_text(error)))
        if not made:
            return 0
        measured = errors + self._measured(paths, present, ROUNDS)
        trials = [m for m in measured if m.candidate != present]
        beside = self._score_of(task)  # what is timed beside is the best so far, not the default
        self.database.add(task, self.device, [replace(m, score=beside * m.score) for m in trials])
        won = self._crown(task, present, paths, trials)
        self.fruitless[task.key] = 0 if won else self.fruitless[task.key] + 1
        return made

    def _built(self, task: LayoutTask, candidate: Candidate) -> Path:
        start = time.monotonic()
        path = self.bench.build(self._with(task, candidate).items())
        self.build_seconds = time.monotonic() - start
        return path

    def is_done(self, task: LayoutTask) -> bool:
        """Return whether the last batches of a task brought nothing."""
        return self.fruitless[task.key] >= FRUITLESS

    def is_finished(self, task: LayoutTask) -> bool:
        """Return whether a task has nothing left to try, or nothing to gain."""
        return self.is_done(task) or self.tried[task.key] >= set(task.candidates())

    def _with(self, task: LayoutTask, candidate: Candidate) -> dict[LayoutTask, Candidate]:
        return {t: candidate if t is task else self.chosen[t.key] for t in self.tasks}

    def _measured(
        self, paths: Mapping[Candidate, Path], present: Candidate, rounds: int
    ) -> list[Measured]:
        """Return the times of candidates; where a device is lost, of each by itself."""
        try:
            times = self.bench.times(paths, rounds)
        except RPCError:
            return self._alone(paths, present, rounds)
        return self._scored(times, present)

    def _scored(self, times: Mapping[Candidate, list[float]], present: Candidate) -> list[Measured]:
        self._failures = []
        self.seconds = sorted(times[present])[len(times[present]) // 2]
        return [scored(c, times[c], times[present]) for c in times]

    def _by_itself(
        self, paths: Mapping[Candidate, Path], present: Candidate, rounds: int
    ) -> list[Measured]:
        """Return the times of a candidate and the present one; the device's loss is its error."""
        try:
            times = self.bench.times(paths, rounds)
        except RPCError as error:
            self._failures.append(error_text(error))
            if len(self._failures) >= SAME_ERRORS:
                raise TuningError(
                    f"{SAME_ERRORS} models on {self.device} failed one after the other; the first: "
                    f"{self._failures[0]}"
                ) from error
            at_fault = [c for c in paths if c != present]
            return [Measured(c, kind="run", error=error_text(error)) for c in at_fault]
        return self._scored(times, present)

    def _alone(
        self, paths: Mapping[Candidate, Path], present: Candidate, rounds: int
    ) -> list[Measured]:
        """Return what candidates do, each by itself: a device did not survive their batch."""
        found: list[Measured] = []
        for candidate in paths:
            if candidate != present:
                pair = {present: paths[present], candidate: paths[candidate]}
                measured = self._by_itself(pair, present, rounds)
                found += [m for m in measured if m.candidate not in {f.candidate for f in found}]
        return found

    def _crown(
        self,
        task: LayoutTask,
        present: Candidate,
        paths: Mapping[Candidate, Path],
        trials: Sequence[Measured],
    ) -> bool:
        """Let the fastest meet the present model once more; return whether it stays."""
        better = sorted(
            (m for m in trials if not m.kind and m.score < PROMISING), key=lambda m: m.score
        )
        for challenger in better[:2]:
            if self.deadline.is_over:
                return False
            pair = {present: paths[present], challenger.candidate: paths[challenger.candidate]}
            again = {m.candidate: m for m in self._measured(pair, present, 2 * ROUNDS)}
            one, other = again.get(challenger.candidate), again.get(present)
            if one is None or other is None or one.kind or not is_faster(one, other):
                continue
            path, score = paths[one.candidate], one.score
            is_right = judge(one, partial(self.bench.verify, path))
            one.score = self._score_of(task) * score if is_right else one.score
            self.database.add(
                task, self.device, [one], verified=one.candidate if is_right else None
            )
            if is_right:
                self.chosen[task.key], self._present = one.candidate, paths[one.candidate]
                self.score *= score
                return True
        return False

    def _score_of(self, task: LayoutTask) -> float:
        """Return the score of what a task has now; each later winner is below it."""
        known = self.database.best(task, self.device)
        return 1.0 if known is None else known.score


def tune_layouts(
    module: IRModule,
    target: Target,
    params: Mapping[str, Any] | None,
    runner: Runner,
    database: Database,
    *,
    seconds: float = 0.0,
    per_task: int = 0,
    in_all: int = 0,
    watcher: Callable[[LayoutProgress], None] | None = None,
    unfinished: Callable[[list[LayoutTask]], None] | None = None,
) -> float:
    """Search the layouts of a model; return its time with the best over that at first.

    `seconds`, the trials of a task and those of all end it; 0: any.  A model with open sizes has no
    layouts to search.  ``unfinished(tasks)`` is told those for which the seconds were too few.
    What is found is in the database, after Ctrl-C and errors too.  Raises TuningError when the
    device fails.
    """
    deadline, tasks = Deadline(seconds), extract_layouts(module, target, params)
    if not tasks or not is_timed_whole(module):
        return 1.0
    with (
        tempdir() as folder,
        ModelBench(module, target, params or {}, runner, Path(folder.path)) as bench,
    ):
        search, left = LayoutSearch(tasks, database, bench), in_all
        search.deadline = deadline
        waiting = sorted(tasks, key=lambda task: -task.weight)
        short: list[LayoutTask] = []
        while waiting:
            task = waiting.pop(0)
            limits = [*([per_task] if per_task else []), *([left] if in_all else [])]
            with at_work(f"tuning {task.problem.op}, {search.score:.2f} of the model's time"):
                left -= _search_one(search, task, min([len(task.space), *limits]))
            if watcher is not None:
                number, trials = tasks.index(task), len(search.tried[task.key])
                watcher(
                    LayoutProgress(
                        task, number, trials, search.score, search.seconds, search.build_seconds
                    )
                )
            if not deadline.fitting(1, search.build_seconds):
                short = [*([] if search.is_finished(task) else [task]), *waiting]
                break
            if in_all and left <= 0:
                break
    if unfinished is not None and short:
        unfinished(short)
    return search.score


def _search_one(search: LayoutSearch, task: LayoutTask, most: int) -> int:
    """Search one task until nothing is gained any more, in `most` trials; return how many."""
    left = most
    while left > 0 and not search.is_done(task):
        with kernel_errors(task):
            made = search.step(task, min(BATCH, left))
        if not made:
            break
        left -= made
    return most - left
