"""What all trials of a database teach about candidates that nobody has tried.

Trees (LightGBM) learn, from the loops of every candidate that was measured, of any kernel and on
any device, how much slower or faster than its default it was.  What they know is about loops, not
about names of knobs, so that a kernel nobody has tuned begins with what others have shown.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from slipway.errors import SlipwayError
from slipway.tuning.build import kernel_job
from slipway.tuning.database import Database
from slipway.tuning.loop_features import COUNTS, loop_features
from slipway.tuning.space import Candidate
from slipway.tuning.task import TuningTask

ENOUGH = 120  # trials with loops, before trees say anything
NEWS = 1.1  # times the trials that were learned from, before they are grown anew
WORST = 4.0  # what is slower than this many times the default counts as this
TREES = {"num_leaves": 15, "learning_rate": 0.08, "min_data_in_leaf": 8, "lambda_l2": 1.0}
ROUNDS = 150
LENGTH = 2 * len(COUNTS) + 7  # of a row that `described` makes

Features = dict[str, float]


@cache
def tree_library() -> ModuleType | None:
    """Return the library that grows trees; None where it is not installed."""
    try:
        import lightgbm
    except (ImportError, OSError):  # OSError: without OpenMP's library beside it
        return None
    library: ModuleType = lightgbm
    return library


def grown(rows: Sequence[tuple[Sequence[float], float]]) -> Any:
    """Return trees that tell the logarithm of a score from loops as `described`."""
    library = tree_library()
    assert library is not None
    inputs = np.array([row for row, _ in rows])
    scores = np.array([math.log(min(max(score, 1e-3), WORST)) for _, score in rows])
    options = {**TREES, "objective": "l2", "verbose": -1, "num_threads": 1, "seed": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library.train(options, library.Dataset(inputs, scores), ROUNDS)


class Experience:
    """Trees of a database's trials, and the trials that they were grown from."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._trees: Any = None
        self._learned_from = 0

    def of(self, task: TuningTask) -> TaskExperience | None:
        """Return what is known for a task; None where there is nothing to grow trees with."""
        return TaskExperience(self, task) if tree_library() is not None else None

    def learn(self) -> None:
        """Grow trees from what the database has now, where much of it is new."""
        count = self.database.count_loops()
        if count < max(ENOUGH, NEWS * self._learned_from):
            return
        rows = [(row, score) for _, row, score in self.database.loops(LENGTH)]
        self._learned_from = count
        if len(rows) >= ENOUGH:
            self._trees = grown(rows)

    @property
    def is_known(self) -> bool:
        """Whether there are trees."""
        return self._trees is not None

    def expected(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return the logarithms of the scores that are expected, where there are trees."""
        return list(self._trees.predict(np.array(rows), num_threads=1))


@dataclass
class TaskExperience:
    """What is expected of the candidates of one task.  Each is lowered once to know its loops."""

    experience: Experience
    task: TuningTask
    _features: dict[Candidate, Features | None] = field(default_factory=dict)

    def keep(self, candidates: Sequence[Candidate]) -> None:
        """Put the loops of candidates that were measured into the database."""
        rows = {c: row for c in candidates if (row := self.row(c)) is not None}
        self.experience.database.keep_loops(self.task, rows)

    def ranked(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates by what is expected, the best first; as they were, if that is nothing.

        Those of which no schedule can be made come last.
        """
        self.experience.learn()
        if not self.experience.is_known:  # no need to lower them
            return list(candidates)
        rows = {c: row for c in candidates if (row := self.row(c)) is not None}
        found = self.experience.expected(list(rows.values())) if rows else []
        scores = dict(zip(rows, found, strict=True))
        return sorted(candidates, key=lambda c: scores.get(c, math.inf))

    def row(self, candidate: Candidate) -> list[float] | None:
        """Return what the trees look at; None where no schedule can be made of the candidate."""
        space, default = self.task.space, self.task.space.default
        assert default is not None
        mine, base = self._loops_of(candidate), self._loops_of(default)
        if mine is None or base is None:
            return None
        guess, of_default = space.predicted(candidate), space.predicted(default)
        ratio = math.log(guess / of_default) if guess and of_default else 0.0
        return [ratio, *described(mine, base, self.task)]

    def _loops_of(self, candidate: Candidate) -> Features | None:
        if candidate not in self._features:
            try:
                loops = kernel_job(self.task, [candidate]).lowered(candidate, "candidate")
            except SlipwayError:
                self._features[candidate] = None
            else:
                self._features[candidate] = loop_features(loops, self.task.target)
        return self._features[candidate]


def described(mine: Features, base: Features, task: TuningTask) -> list[float]:
    """Return a candidate's loops beside the default's, as numbers that kernels have in common."""
    logs = [(math.log2(1.0 + mine[name]), math.log2(1.0 + base[name])) for name in COUNTS]
    work = math.log2(1.0 + base["arithmetic"] + base["stores"] + base["loads"])
    core = task.target.core
    return [
        *(a - b for a, b in logs),
        *(a - work for a, _ in logs),
        mine["registers"],
        work,
        float(task.target.vector_bits or 0),
        math.log2(core.l1_bytes),
        math.log2(core.l2_bytes),
        float(core.fma_bits),
    ]
