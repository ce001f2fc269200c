"""Tuners: ways to propose what is tried next; how it is measured and what wins is one engine's.

See `slipway.tuning.search`: candidates run in rounds with the default choice, and one becomes the
best when it beats the best so far and its results are right.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any, ClassVar, Protocol

from slipway.autotvm import callback as callback
from slipway.autotvm.callback import log_to_file as log_to_file
from slipway.autotvm.callback import progress_bar as progress_bar
from slipway.autotvm.measure import MeasureErrorNo, MeasureInput, MeasureOption, MeasureResult
from slipway.errors import ArgumentTypeError, SlipwayError, TuningError, did_you_mean
from slipway.target import Target
from slipway.toolchain.tempdir import tempdir
from slipway.tuning.builders import Builder
from slipway.tuning.measure import Bench, Decision, Measured
from slipway.tuning.runner import Runner
from slipway.tuning.search import Ranking, TaskSearch
from slipway.tuning.space import Candidate, candidate_of

_log = logging.getLogger("slipway.autotvm")
BATCH = 8
_ERRORS = {
    "": MeasureErrorNo.NO_ERROR, "build": MeasureErrorNo.COMPILE_HOST,
    "run": MeasureErrorNo.RUNTIME_DEVICE, "wrong": MeasureErrorNo.WRONG_ANSWER,
}  # fmt: skip


class Task(Decision, Protocol):
    """What is tuned: a kernel of a model, a template with arguments, a computation."""

    @property
    def target(self) -> Target:
        """What it is compiled for."""

    @property
    def flop(self) -> float:
        """Operations of one run."""

    def bench(
        self, runner: Runner, folder: Path, rounds: int, builder: Builder | None = None
    ) -> Bench:
        """Return what measures its candidates."""

    def config_of(self, candidate: Candidate) -> Any:
        """Return what callbacks are given for a candidate."""

    def candidate_of(self, config: Any) -> Candidate | None:
        """Return the candidate of a logged configuration, None if the space has it not."""


@dataclass(frozen=True)
class _Known:
    candidate: Candidate
    score: float


class _Log:
    """The trials of one tuner: those it was given, and those of the present batch."""

    def __init__(self) -> None:
        self.known: dict[Candidate, float] = {}
        self.batch: dict[Candidate, tuple[Measured, bool]] = {}

    def add(
        self,
        task: Task,
        device: str,
        measured: Iterable[Measured],
        verified: Candidate | None = None,
    ) -> None:
        del device
        for m in measured:
            sure = m.candidate == verified or (m.candidate == task.space.default and not m.kind)
            self.batch[m.candidate] = (m, sure)
            self.known[m.candidate] = m.score

    def trials(self, task: Task, device: str) -> list[_Known]:
        del task, device
        return [_Known(c, score) for c, score in self.known.items()]

    def best(self, task: Task, device: str | None = None) -> None:
        """There is none: what another run found has to win again."""
        del task, device


class _IndexSearch(TaskSearch[Task]):
    indices: tuple[int, int] | None = None  # the first and the last of those that are tried

    def _all(self) -> Iterable[Candidate]:
        first, last = self.indices or (0, None)
        return islice(_all(self.task), first, None if last is None else last + 1)


class _RandomSearch(_IndexSearch):
    def _proposals(self, size: int) -> list[Candidate]:
        space = self.task.space
        assert space.default is not None
        if self.indices is not None:
            rest = [c for c in self._all() if c not in self.scores]
            return self.rng.sample(rest, min(size, len(rest)))
        found = [] if self.scores else [space.default]
        if len(space) <= 4 * (len(self.scores) + size):  # so few that all can be looked at
            rest = [c for c in _all(self.task) if c not in self.scores and c not in found]
            return found + self.rng.sample(rest, min(size - len(found), len(rest)))
        fresh = iter(lambda: space.sample(self.rng), None)
        unseen = (c for c in islice(fresh, 64 * size) if c not in self.scores)
        return list(dict.fromkeys([*found, *unseen]))[:size]


class _GridSearch(_IndexSearch):
    def _proposals(self, size: int) -> list[Candidate]:
        return list(islice((c for c in self._all() if c not in self.scores), size))


class _GeneticSearch(TaskSearch[Task]):
    def _proposals(self, size: int) -> list[Candidate]:
        space = self.task.space
        assert space.default is not None
        good = sorted(self.scores, key=self.scores.__getitem__)[: 2 * BATCH]
        found = dict.fromkeys([] if good else [space.default])
        for _ in range(64 * size):
            if len(found) >= size:
                break
            if len(good) < 2:
                child = space.sample(self.rng)
            else:
                child = space.crossed(self.rng.choice(good), self.rng.choice(good), self.rng)
                if self.rng.random() < 0.5:
                    child = self.rng.choice([*space.neighbours(child), space.sample(self.rng)])
            if child not in self.scores:
                found[child] = None
        return list(found)


class _DropletSearch(TaskSearch[Task]):
    """Tries what is a step from the best, one knob's and then two knobs' at a time."""

    def _proposals(self, size: int) -> list[Candidate]:
        space, default = self.task.space, self.task.space.default
        assert default is not None
        best = min(self.scores, key=self.scores.__getitem__, default=default)
        adjacent = list(space.neighbours(best))
        far = [c for one in adjacent for c in space.neighbours(one)]
        found = [c for c in dict.fromkeys([default, *adjacent]) if c not in self.scores]
        if not found:
            found = [c for c in dict.fromkeys(far) if c not in self.scores]
        return found[:size]


class _OwnSearch(TaskSearch[Task]):
    """Tries what a class of a script's says: whatever it is, and as often as it says it."""

    own: Tuner

    def _new(self, size: int) -> list[Candidate]:
        if not self.own.has_next():
            return []
        found = []
        for config in self.own.next_batch(size):
            candidate = self.task.candidate_of(config)
            if candidate is None:
                raise TuningError(
                    f"{type(self.own).__name__}.next_batch returned {config!r}, which the space of "
                    f"{self.task} has not: task.config_space.get(index) has its configurations"
                )
            found.append(candidate)
        return list(dict.fromkeys(found))


def _all(task: Task) -> Iterable[Candidate]:
    space = task.space
    for strategy, knobs in space.values.items():
        start = dict(space.defaults[strategy].knobs)
        names = list(knobs)[::-1]  # the first varies fastest
        for values in product(*(knobs[name] for name in names)):
            found = candidate_of(strategy, start | dict(zip(names, values, strict=True)))
            if space.allows(found):
                yield found


class Tuner:
    """Searches one task.  `best_config`, `best_flops` and `best_iter` are what was found.

    A class of a script's own says itself what is tried: it has ``next_batch(size)``, which returns
    configurations, and may have ``has_next()`` and ``update(inputs, results)``.
    """

    SEARCH: ClassVar[type[TaskSearch[Task]]] = TaskSearch
    OPTIONS: ClassVar[tuple[str, ...]] = ()  # of classic TVM's search, which this one has no use of

    def __init__(self, task: Task, **options: Any) -> None:
        for name in options:
            if name not in self.OPTIONS:
                raise ArgumentTypeError(
                    f"{type(self).__name__} takes no {name!r}.{did_you_mean(name, self.OPTIONS)}"
                )
        self.task = task
        self.indices: tuple[int, int] | None = None
        self.ranking: Ranking | None = None  # what orders candidates in the engine's place
        if options.get("range_idx") is not None:
            self.indices = _range(task, options["range_idx"])
        self.best_config: Any = None
        self.best_flops = 0.0
        self.best_iter = 0
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        self._log = _Log()

    @property
    def space(self) -> Any:
        """The task's configurations."""
        task: Any = self.task
        return task.config_space

    def has_next(self) -> bool:
        """Return whether there is more to try."""
        return True

    def next_batch(self, batch_size: int) -> Sequence[Any]:
        """Return the configurations to try next; the tuners here leave that to the engine."""
        raise NotImplementedError(f"{type(self).__name__} proposes nothing by itself")

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Be told what a batch gave."""

    def reset(self) -> None:
        """Forget the best."""
        self.best_config, self.best_flops, self.best_iter = None, 0.0, 0
        self.best_measure_pair = None

    def load_history(
        self,
        data_set: Iterable[tuple[MeasureInput, MeasureResult]],
        min_seed_records: int = 0,
    ) -> None:
        """Take trials of other runs: those of this task are learned from, and not made again.

        Fewer than `min_seed_records` of them are ignored.  A good one without a score, as those of
        classic TVM, cannot be compared and is left out.
        """
        found = {}
        for inp, result in data_set:
            if inp.task.key == self.task.key:
                candidate = self.task.candidate_of(inp.config)
                scored = result.score < float("inf") or result.error_no
                if candidate is not None and scored:
                    found[candidate] = result.score
        if len(found) >= min_seed_records:
            self._log.known.update(found)

    def tune(
        self,
        n_trial: int,
        measure_option: MeasureOption | Mapping[str, Any],
        early_stopping: int | None = None,
        callbacks: Sequence[callback.Callback] = (),
        si_prefix: str = "G",
    ) -> None:
        """Make `n_trial` trials, or until `early_stopping` of them brought nothing better.

        Every batch is given to the callbacks.  A warning says that no candidate could be held
        against the default.  Raises TuningError when the device fails.
        """
        del si_prefix
        with tempdir() as folder:
            search = self.begin(measure_option, Path(folder.path))
            made = 0
            with search.bench:
                while made < n_trial:
                    tried = self.advance(search, min(BATCH, n_trial - made), made, callbacks)
                    made += tried
                    if not tried or (early_stopping and made - self.best_iter >= early_stopping):
                        break
            if search.is_unmeasured:  # others may be tuned after this one
                _log.warning("%s", unmeasured(self.task, search))

    def begin(
        self, measure_option: MeasureOption | Mapping[str, Any], folder: Path
    ) -> TaskSearch[Task]:
        """Return a search that builds its candidates in a folder; `advance` goes on with it."""
        if isinstance(measure_option, Mapping):  # as the classic function returned one
            measure_option = MeasureOption(**measure_option)
        kind = self.SEARCH if type(self).next_batch is Tuner.next_batch else _OwnSearch
        search = kind(self.task, self._log, measure_option.bench(self.task, folder))
        if isinstance(search, _OwnSearch):
            search.own = self
        if self.ranking is not None:
            search.model = self.ranking
        if isinstance(search, _IndexSearch):
            search.indices = self.indices
        return search

    def advance(
        self,
        search: TaskSearch[Task],
        size: int,
        made: int = 0,
        callbacks: Sequence[callback.Callback] = (),
    ) -> int:
        """Make up to `size` trials after `made` others; return how many, 0 when none are left."""
        start = time.perf_counter()
        try:
            return search.step(size)
        except TuningError:
            raise
        except SlipwayError as error:
            raise TuningError(f"{self.task}: {error}") from error
        finally:
            self._tell(callbacks, made, time.perf_counter() - start)

    def _tell(self, callbacks: Sequence[callback.Callback], made: int, seconds: float) -> None:
        """Give the trials of a batch to the callbacks."""
        batch, self._log.batch = self._log.batch, {}
        inputs, results = [], []
        for number, (m, verified) in enumerate(batch.values(), made + 1):
            inp = MeasureInput(self.task.target, self.task, self.task.config_of(m.candidate))
            result = MeasureResult(
                tuple(m.seconds) if not m.kind else (m.error,), int(_ERRORS[m.kind]),
                seconds / len(batch), time.time(), m.score, verified,
            )  # fmt: skip
            best = self.best_measure_pair
            if verified and (best is None or m.score < best[1].score):
                self.best_measure_pair, self.best_config = (inp, result), inp.config
                self.best_flops = self.task.flop / statistics.median(m.seconds)
                self.best_iter = number
            inputs.append(inp)
            results.append(result)
        if inputs:
            self.update(inputs, results)
            for call in callbacks:
                call(self, inputs, results)


def _range(task: Task, given: Any) -> tuple[int, int]:
    """Return the first and the last index that a tuner may try.  Raises TuningError for others."""
    count = len(task.space)
    try:
        first, last = map(int, given)
    except (TypeError, ValueError):
        raise TuningError(
            f"range_idx={given!r} is not the first and the last index to try, as (8, 15)"
        ) from None
    if not 0 <= first <= last < count:
        raise TuningError(
            f"range_idx={given!r} is not inside of the {count} candidates of {task}: 0 to "
            f"{count - 1}"
        )
    return first, last


def unmeasured(task: object, search: TaskSearch[Any]) -> str:
    """Return what to say of a search that could hold nothing against the default."""
    return (
        f"{task}: no candidate of {search.trials} could be held against the default choice; the "
        f"first error: {search.first_error}"
    )


class XGBTuner(Tuner):
    """Proposes what a model that learns from the trials ranks best."""

    OPTIONS = (
        "plan_size", "feature_type", "loss_type", "num_threads", "optimizer",
        "diversity_filter_ratio", "log_interval",
    )  # fmt: skip


class GATuner(Tuner):
    """Proposes crossings and mutations of the best so far."""

    SEARCH = _GeneticSearch
    OPTIONS = ("pop_size", "elite_num", "mutation_prob")


class RandomTuner(Tuner):
    """Proposes at random."""

    SEARCH = _RandomSearch
    OPTIONS = ("range_idx",)


class GridSearchTuner(Tuner):
    """Proposes in the order of the space."""

    SEARCH = _GridSearch
    OPTIONS = ("range_idx",)


class DropletTuner(Tuner):
    """Proposes what is next to the best: a descent, which ends where no step is better."""

    SEARCH = _DropletSearch
    OPTIONS = ("start_position", "pvalue")
