"""Cost models (classic), by which scripts say how candidates are ranked.

`XGBModel` stands for the engine's, unless it has an extractor of a script's own; a model of a
script's own derives from `PyCostModel`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.errors import ArgumentValueError, NotAvailableError
from slipway.meta_schedule.feature_extractor import PerStoreFeature, PyFeatureExtractor
from slipway.meta_schedule.runner.artifact import RunnerResult
from slipway.meta_schedule.search_strategy import MeasureCandidate
from slipway.meta_schedule.utils import Described
from slipway.tuning.experience import grown, tree_library

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext


class CostModel(Described):
    """Ranks candidates; the engine's own model learns after every batch (`tuning.model`)."""

    @staticmethod
    def create(kind: str = "xgb", *args: Any, **kwargs: Any) -> CostModel:
        """Return a model by its name."""
        kinds = {"xgb": XGBModel, "mlp": MLPModel, "random": RandomModel, "none": RandomModel}
        if kind not in kinds:
            raise ArgumentValueError(f"cost_model {kind!r}: it is one of {', '.join(kinds)}")
        made: Any = kinds[kind]
        found: CostModel = made(*args, **kwargs)
        return found


def own_model(given: object) -> PyCostModel | None:
    """Return a model that ranks by itself; None where the engine's does."""
    if isinstance(given, XGBModel):
        return given if given.is_own else None
    return given if isinstance(given, PyCostModel) else None


class PyCostModel(CostModel):
    """A model of a script's own: it has `update` and `predict`.

    It orders the candidates that the engine's own model ranks first, for functions of loops.
    """

    def load(self, path: str) -> None:
        """Read what `save` wrote."""
        raise NotAvailableError(f"{type(self).__name__} has no load(path)")

    def save(self, path: str) -> None:
        """Write what was learned."""
        raise NotAvailableError(f"{type(self).__name__} has no save(path)")

    def update(
        self,
        context: TuneContext,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Learn from what was measured."""
        raise NotAvailableError(f"{type(self).__name__} has no update(context, candidates, ...)")

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> Any:
        """Return a number for each candidate; the larger, the better."""
        raise NotAvailableError(f"{type(self).__name__} has no predict(context, candidates)")


class RandomModel(PyCostModel):
    """Knows nothing: numbers at random, the same for a seed."""

    def __init__(
        self, *, seed: int | None = None, path: str | None = None, max_range: int = 100
    ) -> None:
        self.seed, self.path, self.max_range = seed, path, max_range
        self._rng = np.random.RandomState(seed)
        if path is not None:
            self.load(path)

    def load(self, path: str) -> None:
        """Go on with the numbers that `save` wrote down."""
        state = np.load(path, allow_pickle=False)
        self._rng.set_state(("MT19937", state[:-1], int(state[-1]), 0, 0.0))

    def save(self, path: str) -> None:
        """Write down which numbers come next."""
        _, keys, position, *_ = self._rng.get_state(legacy=True)
        with Path(path).open("wb") as file:
            np.save(file, np.array([*keys, position], "uint32"))

    def update(
        self,
        context: TuneContext,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Learn nothing."""

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> Any:
        """Return numbers at random."""
        del context
        return self._rng.rand(len(candidates)) * self.max_range


class XGBModel(PyCostModel):
    """Learns from trials with what an extractor sees: trees of LightGBM, else a straight line.

    Without an extractor of a script's own it stands for the engine's model.  Before
    `num_warmup_samples` trials its numbers are random; other options are classic TVM's, kept for
    scripts that give them.
    """

    def __init__(
        self, *, extractor: object = None, config: object = None, num_warmup_samples: int = 100,
        **options: Any,
    ) -> None:  # fmt: skip
        self.extractor: Any = PerStoreFeature() if extractor is None else extractor
        self.config, self.options, self.num_warmup_samples = config, options, num_warmup_samples
        self.data: list[tuple[list[float], float]] = []  # what was seen, and the score
        self._fitted: Any = None

    @property
    def is_own(self) -> bool:
        """Whether it has an extractor of a script's own."""
        return isinstance(self.extractor, PyFeatureExtractor)

    @property
    def data_size(self) -> int:
        """How many trials it has learned from."""
        return len(self.data)

    def load(self, path: str) -> None:
        """Read the trials that `save` wrote."""
        self.data = [(list(row), score) for row, score in json.loads(Path(path).read_text())]
        self._fitted = None

    def save(self, path: str) -> None:
        """Write the trials down."""
        Path(path).write_text(json.dumps(self.data))

    def update(
        self,
        context: TuneContext,
        candidates: Sequence[MeasureCandidate],
        results: Sequence[RunnerResult],
    ) -> None:
        """Learn from what was measured; failures teach nothing."""
        for row, result in zip(self._rows(context, candidates), results, strict=True):
            if result.run_secs:
                self.data.append((row, -math.log(float(np.median(result.run_secs)))))
        self._fitted = None

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> Any:
        """Return a number for each candidate; the larger, the better."""
        rows = np.array(self._rows(context, candidates))
        if self.data_size < self.num_warmup_samples:
            return np.random.RandomState(self.data_size).rand(len(rows))
        if self._fitted is None:
            self._fitted = _fitted(self.data)
        return self._fitted(rows)

    def _rows(
        self, context: TuneContext, candidates: Sequence[MeasureCandidate]
    ) -> list[list[float]]:
        """Return what the extractor sees, one row: the sum of a candidate's."""
        seen = self.extractor.extract_from(context, candidates)
        return [[float(n) for n in np.asarray(one.numpy()).sum(axis=0)] for one in seen]


class MLPModel(XGBModel):
    """As `XGBModel`: what learns is trees, or a straight line, and no network of torch's.

    `trainer` is classic TVM's, kept for scripts that give one.
    """

    def __init__(self, *, trainer: object = None, **options: Any) -> None:
        super().__init__(**options)
        self.trainer = trainer


def _fitted(data: Sequence[tuple[Sequence[float], float]]) -> Any:
    """Return what tells scores from rows."""
    rows, scores = np.array([row for row, _ in data]), np.array([score for _, score in data])
    middle = scores.mean()
    if tree_library() is not None:
        trees = grown([(row, math.exp(middle - score)) for row, score in data])
        return lambda some: middle - trees.predict(some, num_threads=1)
    scale = rows.std(axis=0) + 1e-9
    inputs = (rows - rows.mean(axis=0)) / scale
    square = inputs.T @ inputs + np.eye(inputs.shape[1])
    weights = np.linalg.solve(square, inputs.T @ (scores - middle))
    return lambda some: middle + (some - rows.mean(axis=0)) / scale @ weights


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
