"""The choices for one kernel: strategies that apply, each with the legal values of its knobs."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from slipway.backends.strategy import Knobs, Problem, Strategy, applicable, present_name

DRAWS = 64  # for a candidate whose knobs go together


@dataclass(frozen=True)
class Candidate:
    """A strategy by name, and its knobs as sorted (name, value) pairs."""

    strategy: str
    knobs: tuple[tuple[str, Any], ...]

    @property
    def forced(self) -> dict[str, Any]:
        """What the option "schedules.force" takes for an operator."""
        return {"strategy": self.strategy, **dict(self.knobs)}

    @property
    def text(self) -> str:
        """The candidate as JSON: what it is called in a database."""
        return json.dumps([self.strategy, dict(self.knobs)], sort_keys=True)

    def __str__(self) -> str:
        knobs = ", ".join(f"{name}={value}" for name, value in self.knobs)
        return f"{self.strategy}({knobs})"


def candidate_of(strategy: str, knobs: Knobs | Mapping[str, Any]) -> Candidate:
    """Return a strategy and knobs as a candidate."""
    given = (
        knobs
        if isinstance(knobs, Mapping)
        else {f.name: getattr(knobs, f.name) for f in fields(knobs)}
    )
    return Candidate(present_name(strategy), tuple(sorted(given.items())))


class Choices:
    """Candidates by the legal values of their knobs.  `default` is what needs no search.

    `values` has the knobs of each strategy, `defaults` a candidate of each.
    """

    def __init__(
        self,
        values: Mapping[str, Mapping[str, tuple[Any, ...]]],
        defaults: Mapping[str, Candidate],
    ) -> None:
        self.values, self.defaults = values, defaults
        self.default = next(iter(defaults.values())) if defaults else None

    def __len__(self) -> int:
        """Return the number of candidates, legal or not: a schedule may refuse a combination."""
        return sum(math.prod(map(len, v.values())) for v in self.values.values())

    def has(self, candidate: Candidate) -> bool:
        """Return whether a candidate is of these strategies and knobs.

        Those of a newer version, or of a script that is not running, need not be.
        """
        default = self.defaults.get(candidate.strategy)
        if default is None:
            return False
        own = {name for name, _ in default.knobs} | self.values[candidate.strategy].keys()
        return own >= {name for name, _ in candidate.knobs}

    def allows(self, candidate: Candidate) -> bool:
        """Return whether the values of a candidate's knobs go together, as far as that is known."""
        return True

    def predicted(self, candidate: Candidate) -> float | None:
        """Return the cycles that a model predicts, None where there is none."""
        return None

    def with_values(self, candidate: Candidate, **values: Any) -> Candidate:
        """Return the candidate with other values of some knobs."""
        return candidate_of(candidate.strategy, {**dict(candidate.knobs), **values})

    def sample(self, rng: random.Random) -> Candidate:
        """Return a random candidate; strategies are equally likely."""
        for _ in range(DRAWS):
            strategy = rng.choice(list(self.values))
            values = {name: rng.choice(legal) for name, legal in self.values[strategy].items()}
            found = self.with_values(self.defaults[strategy], **values)
            if self.allows(found):
                return found
        return self.defaults[strategy]

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield the candidates that differ in one knob, by one step of its values."""
        for name, legal in self.values[candidate.strategy].items():
            at = _index(legal, dict(candidate.knobs).get(name))
            steps = (at - 1, at + 1) if _is_ordered(legal) else range(len(legal))
            for i in steps:
                if 0 <= i < len(legal) and i != at:
                    found = self.with_values(candidate, **{name: legal[i]})
                    if self.allows(found):
                        yield found

    def crossed(self, one: Candidate, other: Candidate, rng: random.Random) -> Candidate:
        """Return a candidate with knobs of both; of `one` where their strategies differ."""
        if one.strategy != other.strategy:
            return one
        theirs = dict(other.knobs)
        picked = {name: theirs[name] for name in self.values[one.strategy] if rng.random() < 0.5}
        child = self.with_values(one, **picked)
        return child if self.allows(child) else one


class Space(Choices):
    """All candidates for a problem.  `default` is what is chosen without tuning."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.strategies: dict[str, Strategy] = {}
        values: dict[str, dict[str, tuple[Any, ...]]] = {}
        defaults: dict[str, Candidate] = {}
        for entry in applicable(problem):
            if entry.name in self.strategies:
                continue
            self.strategies[entry.name] = entry
            values[entry.name] = entry.legal(problem)
            defaults[entry.name] = candidate_of(entry.name, entry.knobs_for(problem))
        super().__init__(values, defaults)

    def predicted(self, candidate: Candidate) -> float | None:
        """Return the cycles that the strategy's own model predicts, None where it has none."""
        entry = self.strategies[candidate.strategy]
        try:
            knobs = entry.knobs_for(self.problem, self._open(candidate))
            return entry.predicted(self.problem, knobs)
        except (ArithmeticError, ValueError):
            return None  # of a combination that the model was not made for

    def _open(self, candidate: Candidate) -> dict[str, Any]:
        """Return the knobs that may be set; others follow from the problem."""
        legal = self.values[candidate.strategy]
        return {name: value for name, value in candidate.knobs if name in legal}

    def forced(self, candidate: Candidate) -> dict[str, Any]:
        """Return what "schedules.force" takes to get the candidate."""
        return {"strategy": candidate.strategy, **self._open(candidate)}


def divisors(length: int) -> tuple[int, ...]:
    """Return the numbers that divide a length, the smallest first."""
    return tuple(n for n in range(1, length + 1) if length % n == 0)


def fitting(value: int, length: int) -> int:
    """Return the largest number that divides `length` and is at most `value`."""
    return next((n for n in range(min(value, length), 0, -1) if length % n == 0), 1)


def _is_ordered(legal: Sequence[Any]) -> bool:
    return all(isinstance(value, int) and not isinstance(value, bool) for value in legal)


def _index(legal: Sequence[Any], value: Any) -> int:
    return legal.index(value) if value in legal else 0
