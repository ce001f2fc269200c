"""What orders candidates before they are measured (classic): names for the engine's ways."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from slipway.auto_scheduler.measure import MeasureInput, MeasureResult
from slipway.auto_scheduler.records import Trial, dump_record_to_string, load_records
from slipway.autotvm.record import write_whole
from slipway.errors import NotAvailableError, TuningError
from slipway.tuning.model import ScoreModel
from slipway.tuning.space import Candidate


class CostModel:
    """Orders candidates; `records` are trials that it has learned from before a search."""

    learns = True

    def __init__(self) -> None:
        self.records: list[Trial] = []

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from trials."""
        self.records += zip(inputs, results, strict=True)

    def predict(self, search_task: Any, states: Sequence[Any]) -> list[float]:
        """Return what is expected of states: their speed over that of the fastest that is known.

        One that is no candidate of the task's sketches has 0.
        """
        raise NotAvailableError(f"{type(self).__name__} has no predict(search_task, states)")

    @property
    def is_own(self) -> bool:
        """Whether a script's class says what is expected of states."""
        return type(self).predict not in (
            CostModel.predict, RandomModel.predict, XGBModel.predict
        )  # fmt: skip

    def update_from_file(self, file_name: str | Path, n_lines: int | None = None) -> None:
        """Learn from the trials of a log, the first `n_lines` of them."""
        self.records += list(load_records(file_name))[:n_lines]


class RandomModel(CostModel):
    """Does not order them: they are tried at random."""

    learns = False

    def predict(self, search_task: Any, states: Sequence[Any]) -> list[float]:
        """Return numbers at random."""
        del search_task
        return [random.random() for _ in states]


class XGBModel(CostModel):
    """Learns from trials what is fast: the engine's model, ridge regression on the knobs.

    The arguments are classic TVM's, kept for scripts: how often it learns, after every batch, is
    the engine's to say.
    """

    def __init__(
        self,
        verbose_eval: int = 25,
        num_warmup_sample: int = 100,
        seed: int | None = None,
        model_file: str | None = None,
        adaptive_training: bool = False,
    ) -> None:
        super().__init__()
        del verbose_eval, num_warmup_sample, seed, adaptive_training
        if model_file and Path(model_file).exists():
            self.load(model_file)

    def predict(self, search_task: Any, states: Sequence[Any]) -> list[float]:
        """Return what the trials say of states: their speed over that of the fastest trial.

        One that is no candidate of the task's sketches has 0.
        """
        known = {}
        for inp, result in self.records:
            candidate = search_task.candidate_of(inp.state)
            if candidate is not None and inp.task.workload_key == search_task.workload_key:
                costs = [float(c) for c in result.costs]
                known[candidate] = math.inf if result.error_no else statistics.median(costs)
        fastest = min(known.values(), default=math.inf)
        model = ScoreModel(search_task.space)
        model.learn((one, cost / fastest) for one, cost in known.items() if fastest < math.inf)
        chosen = [search_task.candidate_of(state) for state in states]
        return [0.0 if one is None else 1.0 / max(1.0, model.predict(one)) for one in chosen]

    def save(self, file_name: str | Path) -> None:
        """Write down what it learned from, as a log: `load` and `model_file` learn it again."""
        write_whole(Path(file_name), (dump_record_to_string(i, r) for i, r in self.records))

    def load(self, file_name: str | Path) -> None:
        """Learn from a log."""
        self.update_from_file(file_name)


class ModelRanking:
    """Candidates in the order of a script's own model, as the engine asks for it."""

    def __init__(self, model: CostModel, task: Any) -> None:
        self._model, self._task = model, task

    def learn(self, scores: Iterable[tuple[Candidate, float]]) -> None:
        """Leave it to the model, which is told of each batch by its `update`."""
        del scores

    def ranked(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates by what the model expects, the best first."""
        states = [self._task.config_of(one) for one in candidates]
        expected = [float(one) for one in self._model.predict(self._task, states)]
        if len(expected) != len(states):
            raise TuningError(
                f"{type(self._model).__name__}.predict returned {len(expected)} numbers for "
                f"{len(states)} states: it returns one for each"
            )
        order = sorted(range(len(states)), key=lambda n: -expected[n])
        return [candidates[n] for n in order]


PythonBasedModel = CostModel
