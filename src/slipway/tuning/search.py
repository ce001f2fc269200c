"""What to try next for one task, and which trial wins.

The first batch are the candidates that the cost model likes, of every strategy some.  Each later
one is made of the neighbours and crossings of the best so far, and of random candidates, ranked by
a model that has learned from all trials; a part of it is taken at random, because the model errs.
A candidate becomes the best when it is faster than the present best in two batches of both, and its
results on the device are those of the reference.
"""

from __future__ import annotations

import builtins
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from slipway.errors import SlipwayError, TuningError
from slipway.tuning.drift import DriftWatch
from slipway.tuning.measure import Bench, Decision, Measured, is_faster, judge, scored
from slipway.tuning.model import ScoreModel
from slipway.tuning.space import Candidate

POOL = 512  # candidates that a batch is chosen from
AT_RANDOM = 0.15  # part of a batch
FINALISTS = 2  # of a batch, that meet the best so far
UNKNOWN = 2  # candidates of a batch, where nothing says how long they take
DUELS = 2  # that one of them must win
LOOKED_AT = 3  # candidates for each place in a batch, whose loops are looked at
DRAWN = 4  # times that more is proposed for a batch, where it has loops that were tried
SAME_ERRORS = 16  # trials in a row that end in one class of error: something is broken


TaskT = TypeVar("TaskT", bound=Decision)


class Deadline:
    """When a search ends; without seconds it does not."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._end = time.monotonic() + seconds if seconds else math.inf

    @property
    def left(self) -> float:
        """The seconds that are left, less than none when it is over."""
        return self._end - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether none are left."""
        return self.left <= 0

    def fitting(self, size: int, each: float) -> int:
        """Return how many of `size` candidates fit, each taking so many seconds; 0: unknown yet.

        Of those that nothing is known of, two: they tell.
        """
        left = self.left
        if left == math.inf:
            return size
        if left <= 0:
            return 0
        return min(size, int(left / each) if each else UNKNOWN)


class Trial(Protocol):
    """What is known of a candidate that was tried."""

    @property
    def candidate(self) -> Candidate:
        """What was tried."""

    @property
    def score(self) -> float:
        """Its time over the default's; infinite for a failure."""


class Trials(Protocol):
    """Where trials are kept: a `Database`, or the log of a classic tuner."""

    def add(
        self,
        task: Any,
        device: str,
        measured: Iterable[Measured],
        verified: Candidate | None = None,
    ) -> None:
        """Keep what was measured; `verified` is the one whose results were right."""

    def trials(self, task: Any, device: str) -> Sequence[Trial]:
        """Return what is known of a task on a device."""

    def best(self, task: Any, device: str | None = None) -> Trial | None:
        """Return the best that was verified, None without one."""


class Ranking(Protocol):
    """What learns from a task's trials and ranks candidates by them."""

    def learn(self, scores: Iterable[tuple[Candidate, float]]) -> None:
        """Fit to scores; those of failures are infinite."""

    def ranked(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates by what is expected of them, the best first."""


class Expectation(Protocol):
    """What trials of other tasks say of the candidates of this one (`TaskExperience`)."""

    def ranked(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates by what is expected of them, the best first."""

    def keep(self, candidates: Sequence[Candidate]) -> None:
        """Remember what was measured, for other tasks."""


class TaskSearch(Generic[TaskT]):
    """The search for one task; `step` makes a batch of trials.

    What a database knows of the task and device is not measured again.
    """

    def __init__(
        self, task: TaskT, database: Trials, bench: Bench, seed: int = 0,
        expectation: Expectation | None = None,
    ) -> None:  # fmt: skip
        self.task, self.database, self.bench = task, database, bench
        self.expectation = expectation
        self.device = bench.runner.device
        self.rng = random.Random(f"{seed} {task.key}")
        self.model: Ranking = ScoreModel(task.space)
        self.told: Callable[[Sequence[Measured]], None] | None = None  # what each batch did
        self.scores: dict[Candidate, float] = {}
        self.errors: Counter[str] = Counter()
        self._in_a_row: tuple[str, int] = ("", 0)
        self._loops: dict[str, Candidate] = {}  # the first candidate that has them
        self._twins: set[Candidate] = set()  # those that have the loops of another
        self.first_error = ""  # of those in a row; that of the default, which all are held against
        self.fruitless = 0  # batches in a row that brought nothing
        for trial in database.trials(task, self.device):
            if task.space.has(trial.candidate):
                self.scores[trial.candidate] = trial.score
        known = database.best(task, self.device)
        if known is not None and not task.space.has(known.candidate):
            known = None  # what a newer version found: this one has to win with what it has
        default = task.space.default
        assert default is not None
        self.best = known.candidate if known is not None else default
        self.best_score = known.score if known is not None else 1.0
        # What was faster than the best and not beaten by it: its duel was never held, for an
        # earlier run ended before.  The first of these are tried once more.
        faster = [c for c, score in self.scores.items() if score < self.best_score]
        self._unsettled = sorted(faster, key=self.scores.__getitem__)[:FINALISTS]
        self.default_seconds = 0.0
        self.watch = DriftWatch(lambda: self.bench.condition())
        self.deadline = Deadline()

    @property
    def is_unmeasured(self) -> bool:
        """Whether candidates were tried here and none could be held against the default."""
        return bool(self.errors) and not self.default_seconds

    @property
    def trials(self) -> int:
        """How many candidates have been tried, in earlier runs too."""
        return len(self.scores)

    def step(self, size: int) -> int:
        """Try up to `size` candidates and return how many there were; 0: none is left.

        Raises TuningError when the trials keep ending in one class of error, with the first.
        """
        again, self._unsettled = self._unsettled[:size], self._unsettled[size:]
        return self.attempt([*again, *(self._new(size - len(again)) if size > len(again) else [])])

    def attempt(self, batch: Sequence[Candidate]) -> int:
        """Try these candidates and return how many there were; raises as `step` does."""
        if not batch:
            return 0
        measured = self.bench.measure(batch)
        self._note(measured)
        self.database.add(self.task, self.device, [m for m in measured if m.candidate in batch])
        if self.expectation is not None:
            self.expectation.keep([m.candidate for m in measured if not m.kind])
        before = self.best
        self._crown(measured)
        self.fruitless = 0 if self.best != before else self.fruitless + 1
        if self.told is not None:
            self.told([m for m in measured if m.candidate in batch])
        return len(batch)

    # Proposing.

    def _new(self, size: int) -> list[Candidate]:
        """Return proposals with loops of their own.

        A knob that changes nothing here makes no other candidate: it would be measured for nothing,
        and win by where its code lies.
        """
        found: dict[Candidate, None] = {}
        for number in range(DRAWN):
            wanted = len(found) + (size << number)
            proposed = [c for c in self._proposals(wanted) if c not in found]
            found |= {c: None for c in proposed if not self._is_twin(c)}
            if len(found) >= size or not proposed:
                break
        return list(found)[:size]

    def _is_twin(self, candidate: Candidate) -> bool:
        loops_of = getattr(self.bench, "loops", None)
        if loops_of is None:
            return False
        if not self._loops:
            default = self.task.space.default
            assert default is not None
            self._loops = {loops_of(c): c for c in (self.best, default)}
        loops = loops_of(candidate)
        if loops and self._loops.setdefault(loops, candidate) != candidate:
            self._twins.add(candidate)
        return candidate in self._twins

    def _proposals(self, size: int) -> list[Candidate]:
        if not self.scores:
            return self._first(size)
        self.model.learn(self.scores.items())
        pool = [c for c in self._pool() if c not in self.scores and c not in self._twins]
        ranked = self._expected(self.model.ranked(list(dict.fromkeys(pool))), size)
        wild = round(size * AT_RANDOM)
        chosen = ranked[: size - wild]
        rest = ranked[size - wild :]
        return chosen + self.rng.sample(rest, min(wild, len(rest)))

    def _first(self, size: int) -> list[Candidate]:
        """Return the default of every strategy, then what their cost models like, interleaved.

        Of a strategy without a cost model beside others that have one, the default is enough: it
        is the general one, which is rarely faster.
        """
        space = self.task.space
        chosen = list(space.defaults.values())
        by_strategy: dict[str, list[Candidate]] = {name: [] for name in space.values}
        for candidate in dict.fromkeys(space.sample(self.rng) for _ in range(POOL)):
            by_strategy[candidate.strategy].append(candidate)
        foretold = [n for n, c in space.defaults.items() if space.predicted(c) is not None]
        ranked = [self.model.ranked(by_strategy[name]) for name in foretold or by_strategy]
        for position in range(max(map(len, ranked), default=0)):
            chosen += [found[position] for found in ranked if position < len(found)]
        first = [c for c in dict.fromkeys(chosen) if c not in self._twins]
        count = len(space.defaults)
        return [*first[:count], *self._expected(first[count:], size)][:size]

    def _expected(self, ranked: list[Candidate], size: int) -> list[Candidate]:
        """Return the first of some candidates in the order that other tasks' trials suggest.

        So many as `LOOKED_AT` allows for a batch: to know the loops of one takes milliseconds.
        """
        if self.expectation is None:
            return ranked
        few = ranked[: LOOKED_AT * size]
        return [*self.expectation.ranked(few), *ranked[len(few) :]]

    def _pool(self) -> Iterable[Candidate]:
        space = self.task.space
        good = sorted(self.scores, key=self.scores.__getitem__)[:6]
        for candidate in dict.fromkeys([self.best, *good]):
            yield from space.neighbours(candidate)
        for one in good:
            for _ in range(8):
                crossed = space.crossed(one, self.rng.choice(good), self.rng)
                yield crossed
                yield from list(space.neighbours(crossed))[:4]
        for _ in range(POOL):
            yield space.sample(self.rng)

    # Judging.

    def _note(self, measured: Sequence[Measured]) -> None:
        for m in measured:
            self.scores[m.candidate] = m.score
            if m.candidate == self.task.space.default:
                if m.seconds:
                    self.default_seconds = sorted(m.seconds)[len(m.seconds) // 2]
                    self.watch.note(self.default_seconds)
                self.first_error = self.first_error or m.error
                continue  # it is in every batch, and no trial
            kind, count = self._in_a_row
            if m.kind != kind:
                self.first_error = m.error
            self._in_a_row = (m.kind, count + 1 if m.kind == kind else 1)
            self.errors[m.kind] += 1
            # A schedule may refuse what its space lists; a device that fails again and again is
            # broken, and so is a user's function that raises errors of Python's.
            is_broken = m.kind == "run" or hasattr(builtins, m.error.partition(":")[0])
            if m.kind and is_broken and self._in_a_row[1] >= SAME_ERRORS:
                self.database.add(self.task, self.device, measured)
                raise TuningError(
                    f"{SAME_ERRORS} trials of {self.task} on {self.device} failed one after the "
                    f"other; the first: {self.first_error}"
                )

    def _crown(self, measured: Sequence[Measured]) -> None:
        """Let the fastest of a batch meet the best so far; it wins if its results are right."""
        better = [m for m in measured if not m.kind and m.score < self.best_score]
        for challenger in sorted(better, key=lambda m: m.score)[:FINALISTS]:
            one = self._won(challenger.candidate)
            if one is None:
                if not self.deadline.is_over:  # the next run does not try it again
                    lost = replace(challenger, score=self.best_score)
                    self.database.add(self.task, self.device, [lost])
                    self.scores[lost.candidate] = lost.score
                continue
            is_right = judge(one, partial(self.bench.verify, one.candidate))
            self.errors[one.kind] += not is_right
            self.database.add(
                self.task, self.device, [one], verified=one.candidate if is_right else None
            )
            self.scores[one.candidate] = one.score
            if is_right:
                self.best, self.best_score = one.candidate, one.score
                return

    def _won(self, challenger: Candidate) -> Measured | None:
        """Return what a challenger did in the last of its duels, None if it lost one.

        Each is measured from a library of its own: that code lies well in one is no gain.  The
        score is the least flattering of the duels', but never that of something slower than what
        was beaten: that one's may be a lucky one, and the smallest score is the best everywhere.
        """
        one: Measured | None = None
        alone, beside = 0.0, 0.0
        for _ in range(DUELS):
            if self.deadline.is_over:
                return None  # the next run tries it again
            measured = self.bench.measure(
                [challenger, self.best], self.bench.rounds * 2, together=True
            )
            duel = {m.candidate: m for m in measured}
            one, other = duel.get(challenger), duel.get(self.best)
            if one is None or other is None or one.kind or other.kind or not is_faster(one, other):
                return None
            alone = max(alone, one.score)
            beside = max(beside, scored(challenger, one.seconds, other.seconds).score)
            if len(one.seconds) == 1:  # of a clock without noise, which says the same again
                break
        assert one is not None
        return replace(one, score=min(alone, self.best_score * beside))


@contextmanager
def kernel_errors(task: Decision) -> Iterator[None]:
    """Make every error of the block a TuningError that says which task it was about."""
    try:
        yield
    except TuningError:
        raise
    except SlipwayError as error:
        raise TuningError(f"{task}: {error}") from error
