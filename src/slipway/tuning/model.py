"""A guess at a candidate's score: the strategy's cost model, corrected by what was measured.

Ridge regression on the logarithms of scores.  The features are the logarithm of the predicted
cycles over the default's and, for each strategy, the knobs (their logarithms, where they are
numbers) and the squares of them.  With a few dozen trials more would be learned by heart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from slipway.tuning.space import Candidate, Choices

RIDGE = 0.3
WORST = 4.0  # a failure counts as this many times the default's time


class ScoreModel:
    """Predicts scores of candidates of one space."""

    def __init__(self, space: Choices) -> None:
        self.space = space
        self._columns = self._column_numbers()
        base = None if space.default is None else space.predicted(space.default)
        self._base = base or 1.0
        self._weights: np.ndarray[Any, Any] | None = None

    def learn(self, scores: Iterable[tuple[Candidate, float]]) -> None:
        """Fit to scores; those of failures are infinite."""
        pairs = [(c, min(score, WORST)) for c, score in scores]
        if len(pairs) < 4:
            return
        rows = np.array([self._features(c) for c, _ in pairs])
        # The difference to what the cost model says is learned, so that nothing known means it.
        residuals = np.array([math.log(max(score, 1e-3)) - self._prior(c) for c, score in pairs])
        gram = rows.T @ rows + RIDGE * np.eye(rows.shape[1])
        self._weights = np.linalg.solve(gram, rows.T @ residuals)

    def predict(self, candidate: Candidate) -> float:
        """Return the predicted score."""
        guess = self._prior(candidate)
        if self._weights is not None:
            guess += float(self._features(candidate) @ self._weights)
        return math.exp(min(guess, 10.0))

    def ranked(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates by their predicted scores, the best first."""
        return sorted(candidates, key=self.predict)

    def _prior(self, candidate: Candidate) -> float:
        predicted = self.space.predicted(candidate)
        return math.log(predicted / self._base) if predicted and predicted > 0 else 0.0

    def _column_numbers(self) -> dict[tuple[str, str, Any], int]:
        """Number the features: one for each strategy, two for each number, one for each word."""
        columns: dict[tuple[str, str, Any], int] = {("", "cost model", None): 0}
        for strategy, knobs in self.space.values.items():
            columns[strategy, "", None] = len(columns)
            for name, legal in knobs.items():
                for part in ("log", "square") if _are_numbers(legal) else legal:
                    columns[strategy, name, part] = len(columns)
        return columns

    def _features(self, candidate: Candidate) -> np.ndarray[Any, Any]:
        row = np.zeros(len(self._columns))
        row[0] = self._prior(candidate)
        known = self._columns.get((candidate.strategy, "", None))
        if known is None:
            return row  # a design that was made since: nothing is known of it
        row[known] = 1.0
        for name, value in candidate.knobs:
            legal = self.space.values[candidate.strategy].get(name)
            if legal is None:
                continue
            if _are_numbers(legal):
                number = math.log2(abs(value) + 1.0)
                row[self._columns[candidate.strategy, name, "log"]] = number / 4
                row[self._columns[candidate.strategy, name, "square"]] = (number / 4) ** 2
            else:
                row[self._columns[candidate.strategy, name, value]] = 1.0
        return row


def _are_numbers(legal: Sequence[Any]) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in legal)
