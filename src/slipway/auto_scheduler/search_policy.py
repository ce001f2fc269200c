"""How a schedule is searched (classic): the sketches, and the engine's searches over them."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from slipway.auto_scheduler.cost_model import CostModel, ModelRanking, RandomModel, XGBModel
from slipway.auto_scheduler.measure import MeasureInput, MeasureResult
from slipway.auto_scheduler.records import load_records
from slipway.auto_scheduler.sketch_rules import PreloadCustomSketchRule
from slipway.autotvm import measure as engine
from slipway.autotvm.tuner import RandomTuner, Tuner, XGBTuner
from slipway.errors import TuningError
from slipway.tuning.records import RunSeconds

EngineCallback = Callable[
    [Tuner, Sequence[engine.MeasureInput], Sequence[engine.MeasureResult]], None
]


class PreloadMeasuredStates:
    """A callback before a search: the trials of a log count as made."""

    def __init__(self, filename: str = "auto_scheduler_tuning.json") -> None:
        self.filename = filename


class SearchPolicy:
    """What searches one task."""

    def __init__(self, task: Any, init_search_callbacks: Sequence[Any] = ()) -> None:
        self.task = task
        self.callbacks = list(init_search_callbacks or ())

    @property
    def search_task(self) -> Any:
        """What is searched, as rules of a script's own call it."""
        return self.task


class SketchPolicy(SearchPolicy):
    """Searches the sketches of a task, ordered by a cost model.

    `params` and `seed` are classic TVM's, kept for scripts: the search is the engine's.
    """

    DEFAULT_PARAMS: dict[str, Any] = {}  # noqa: RUF012 classic scripts read it

    def __init__(
        self,
        task: Any,
        program_cost_model: CostModel | None = None,
        params: dict[str, Any] | None = None,
        seed: int | None = None,
        verbose: int = 1,
        init_search_callbacks: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(task, init_search_callbacks or ())
        del params, seed
        self.model = program_cost_model if program_cost_model is not None else XGBModel()
        if not isinstance(self.model, CostModel):
            raise TuningError(
                f"the cost model {program_cost_model!r} is not auto_scheduler.XGBModel() or "
                "RandomModel()"
            )
        self.verbose = verbose
        kind = XGBTuner if self.model.learns else RandomTuner
        self.tuner: Tuner = kind(task)
        if self.model.is_own:
            self.tuner.ranking = ModelRanking(self.model, task)
        self._load()

    def _load(self) -> None:
        """Give the engine the trials of the model and of the callbacks, and the task its rules."""
        trials = list(self.model.records)
        rules = [call for call in self.callbacks if isinstance(call, PreloadCustomSketchRule)]
        self.task.follow(self, rules)
        for call in self.callbacks:
            if isinstance(call, PreloadCustomSketchRule):
                continue
            if not isinstance(call, PreloadMeasuredStates):
                raise TuningError(
                    f"the callback {call!r} is neither auto_scheduler.PreloadMeasuredStates(log) "
                    "nor auto_scheduler.PreloadCustomSketchRule(condition, apply)"
                )
            if Path(call.filename).exists():
                trials += load_records(call.filename)
        known = []
        for inp, result in trials:
            key = getattr(inp.task, "workload_key", None)
            if key == self.task.workload_key and inp.task.target.kind == self.task.target.kind:
                found = engine.MeasureResult(
                    tuple(result.costs), result.error_no, result.all_cost, result.timestamp,
                    result.score, result.verified,
                )  # fmt: skip
                known.append((engine.MeasureInput(inp.task.target, self.task, inp.state), found))
        self.tuner.load_history(known)

    def run(self, options: Any) -> None:
        """Make the trials that a task's TuningOptions ask for."""
        self.tuner.tune(
            options.num_measure_trials, options.measuring, options.early_stopping,
            [told(self, options.measure_callbacks, options.verbose)],
        )  # fmt: skip

    def generate_sketches(self, print_for_debug: bool = False) -> list[Any]:
        """Return a state for each kind of sketch, with the knobs that need no search."""
        found = [self.task.config_of(c) for c in self.task.space.defaults.values()]
        if print_for_debug:
            for number, state in enumerate(found):
                print(f"========== Sketch {number} ==========\n{state}")
        return found

    def sample_initial_population(self, count: int = 64) -> list[Any]:
        """Return states of random candidates."""
        rng = random.Random(self.task.key)
        return [self.task.config_of(self.task.space.sample(rng)) for _ in range(count)]

    def evolutionary_search(self, init_populations: Sequence[Any], out_size: int) -> list[Any]:
        """Return states that mutations and crossings make of some, the best by the model first."""
        rng, space = random.Random(self.task.key), self.task.space
        known = [c for c in map(self.task.candidate_of, init_populations) if c is not None]
        found = dict.fromkeys(known)
        while known and len(found) < len(known) + 4 * out_size:
            child = space.crossed(rng.choice(known), rng.choice(known), rng)
            before = len(found)
            found |= dict.fromkeys([child, *list(space.neighbours(child))[:4]])
            if len(found) == before:
                break
        states = [self.task.config_of(c) for c in found]
        scores = self.model.predict(self.task, states) if states else []
        order = sorted(range(len(states)), key=lambda i: -scores[i])
        return [states[i] for i in order[:out_size]]


class EmptyPolicy(SearchPolicy):
    """Measures the computation with one schedule, the one that needs no search."""

    def __init__(self, task: Any, init_search_callbacks: Sequence[Any] | None = None) -> None:
        super().__init__(task, init_search_callbacks or ())
        self.tuner: Tuner = RandomTuner(task)  # its first trial is what needs no search

    def run(self, options: Any) -> None:
        """Make the one trial."""
        self.tuner.tune(
            1, options.measuring, callbacks=[told(self, options.measure_callbacks, options.verbose)]
        )


Policy = SketchPolicy | EmptyPolicy


def told(policy: SearchPolicy, callbacks: Sequence[Any], verbose: int = 1) -> EngineCallback:
    """Return the engine's callback that tells classic ones of a batch, in their words."""

    def tell(
        tuner: Tuner,
        inputs: Sequence[engine.MeasureInput],
        results: Sequence[engine.MeasureResult],
    ) -> None:
        task = policy.task
        ours = [MeasureInput(task, inp.config) for inp in inputs]
        theirs = [
            MeasureResult(
                [RunSeconds(c) for c in r.costs] if r.error_no == 0 else [], r.error_no,
                "" if r.error_no == 0 else str(r.costs[0]), r.all_cost, r.timestamp, r.score,
                r.verified,
            )
            for r in results
        ]  # fmt: skip
        for call in callbacks:
            call.callback(policy, ours, theirs)
        model = getattr(policy, "model", None)
        if model is not None and model.is_own:
            model.update(ours, theirs)
        if verbose >= 1:
            failed = sum(r.error_no != 0 for r in results)
            print(
                f"{task}: {len(results)} trials, {failed} failed; best "
                f"{tuner.best_flops / 1e9:.2f} GFLOPS",
                file=sys.stderr,
            )

    return tell


__all__ = [
    "CostModel", "PreloadCustomSketchRule", "PreloadMeasuredStates", "RandomModel",
    "SearchPolicy", "SketchPolicy", "told",
]  # fmt: skip
