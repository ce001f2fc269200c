"""Search strategies (classic): which candidates of the designs are tried next.

They are given to a search (`tune_tir(strategy=ReplayTrace())`), whose engine measures and judges;
a script may also ask one for candidates itself: ``pre_tuning``, ``generate_measure_candidates``,
``notify_runner_results`` until there are none, ``post_tuning``.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from slipway.blocks.schedule import Schedule
from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.errors import ArgumentValueError, SlipwayError, TuningError
from slipway.meta_schedule.arg_info import TensorInfo
from slipway.tuning.schedules.block_schedules import BlockSearch, DesignSpace, ReplaySearch
from slipway.tuning.space import Candidate

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext

MOST_DRAWS = 64  # for each candidate, before the space counts as tried


@dataclass(frozen=True)
class MeasureCandidate:
    """A schedule to measure, and what its function takes.

    Of a kernel of a model `sch` is None and `candidate` its strategy with knobs.
    """

    sch: Schedule | None
    args_info: Sequence[TensorInfo] | None = ()
    candidate: Candidate | None = field(default=None, compare=False)


class SearchStrategy:
    """Which candidates are tried next; `SEARCH` is what the engine does for it.

    `num_trials_per_iter` and `max_trials_per_task` are how TVM 0.9 and 0.10 say what `pre_tuning`
    is told since.
    """

    SEARCH: ClassVar[type[BlockSearch]] = BlockSearch
    IS_FRESH: ClassVar[bool] = False  # whether each candidate calls the generator anew

    def __init__(
        self, num_trials_per_iter: int | None = None, max_trials_per_task: int | None = None
    ) -> None:
        self.num_trials_per_iter, self.max_trials_per_task = (
            num_trials_per_iter, max_trials_per_task,
        )  # fmt: skip
        self._context: TuneContext | None = None
        self._space: DesignSpace | None = None
        self._left = self._batch = 0
        self._known: dict[Candidate, float] = {}
        self._rng = random.Random(0)

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        self._context = context
        self._rng = random.Random(context.rand_state)

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Tell the strategy what it is for."""
        self._initialize_with_tune_context(context)

    def pre_tuning(
        self,
        max_trials: int | Sequence[Schedule],
        num_trials_per_iter: object = None,
        design_spaces: Sequence[Schedule] | None = None,
        database: object = None,
        cost_model: object = None,
    ) -> None:
        """Begin a search of so many trials.  Raises TuningError within another one.

        As in TVM 0.9 and 0.10 the designs may come first, and the numbers are the strategy's.
        """
        del database, cost_model
        batch = num_trials_per_iter if isinstance(num_trials_per_iter, int) else None
        if not isinstance(max_trials, int):
            design_spaces, max_trials = max_trials, self.max_trials_per_task or 0
            if not max_trials:
                raise TuningError(
                    f"pre_tuning was given designs alone: {type(self).__name__}("
                    "num_trials_per_iter=, max_trials_per_task=) says how many trials there are"
                )
        if self._context is None:
            raise TuningError(
                f"{type(self).__name__} is for no function: give it to a TuneContext, or call "
                "initialize_with_tune_context"
            )
        if self._space is not None:
            raise TuningError("pre_tuning was called already: call post_tuning before another one")
        self._space = self._context.space(self.IS_FRESH, design_spaces)
        self._left, self._known = max_trials, {}
        self._batch = batch or self.num_trials_per_iter or 64

    def post_tuning(self) -> None:
        """End a search."""
        self._space = None

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """Return the next candidates, None at the end.  Raises TuningError outside of a search."""
        if self._space is None or self._context is None:
            raise TuningError("there is no search: call pre_tuning first")
        size = min(self._batch, self._left)
        self._left -= size
        found: list[MeasureCandidate] = []
        for _ in range(MOST_DRAWS * size):
            if len(found) == size:
                break
            candidate = self._drawn(self._space)
            if candidate in self._known:
                continue
            self._known[candidate] = float("inf")
            try:
                sch = self._space.schedule(candidate)
            except SlipwayError:
                continue
            found.append(MeasureCandidate(sch, self._context.args_info(), candidate))
        return found or None

    def _drawn(self, space: DesignSpace) -> Candidate:
        return space.sample(self._rng)

    def notify_runner_results(self, *given: Any) -> None:
        """Take what was measured: (candidates, results), in classic TVM after the context too."""
        candidates, results = given[-2:]
        for one, result in zip(candidates, results, strict=True):
            seconds = getattr(result, "run_secs", None)
            if one.candidate is not None and seconds:
                self._known[one.candidate] = statistics.median(float(s) for s in seconds)

    def clone(self) -> SearchStrategy:
        """Return another strategy with the same numbers, for no function yet."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        SearchStrategy.__init__(made, self.num_trials_per_iter, self.max_trials_per_task)
        return made

    @staticmethod
    def create(kind: object = "evolutionary", *args: Any, **kwargs: Any) -> SearchStrategy:
        """Return a strategy: itself, or by its name."""
        if isinstance(kind, SearchStrategy):
            return kind
        kinds = {"evolutionary": EvolutionarySearch, "replay-trace": ReplayTrace,
                 "replay-func": ReplayFunc}  # fmt: skip
        made = kinds.get(str(kind).replace("_", "-"))
        if made is None:
            raise ArgumentValueError(f"strategy {kind!r}: it is one of {', '.join(kinds)}")
        found: SearchStrategy = made(*args, **kwargs)
        return found


create = SearchStrategy.create


class PySearchStrategy(SearchStrategy):
    """A strategy of a script's own, which asks for its candidates itself."""


class ReplayTrace(SearchStrategy):
    """Takes the steps of the designs again, with numbers at random."""

    SEARCH = ReplaySearch

    def __init__(
        self, *older: int, max_fail_count: int = 100, num_trials_per_iter: int | None = None,
        max_trials_per_task: int | None = None,
    ) -> None:  # fmt: skip
        if len(older) == 1:
            max_fail_count = older[0]
        elif older:
            num_trials_per_iter, max_trials_per_task = older
        super().__init__(num_trials_per_iter, max_trials_per_task)
        self.max_fail_count = max_fail_count


class ReplayFunc(SearchStrategy):
    """Calls the space generator again for each candidate, which samples anew."""

    SEARCH, IS_FRESH = ReplaySearch, True


class EvolutionarySearch(SearchStrategy):
    """Proposes neighbours and crossings of the best, ranked by what was learned from the trials.

    The numbers are classic TVM's, kept for scripts that read them: the search is the engine's.
    """

    def __init__(
        self,
        *,
        population_size: int = 512,
        init_measured_ratio: float = 0.2,
        init_min_unmeasured: int = 50,
        max_fail_count: int = 5,
        genetic_num_iters: int = 4,
        genetic_mutate_prob: float = 0.85,
        genetic_max_fail_count: int = 10,
        eps_greedy: float = 0.05,
        num_trials_per_iter: int | None = None,
        max_trials_per_task: int | None = None,
    ) -> None:
        super().__init__(num_trials_per_iter, max_trials_per_task)
        self.population_size, self.eps_greedy = population_size, eps_greedy
        self.init_measured_ratio = init_measured_ratio
        self.init_min_unmeasured, self.max_fail_count = init_min_unmeasured, max_fail_count
        self.genetic_num_iters, self.genetic_mutate_prob = genetic_num_iters, genetic_mutate_prob
        self.genetic_max_fail_count = genetic_max_fail_count

    def _drawn(self, space: DesignSpace) -> Candidate:
        """Return a neighbour of one of the best, or one at random."""
        good = sorted((c for c, s in self._known.items() if s < float("inf")),
                      key=self._known.__getitem__)[:8]  # fmt: skip
        if not good or self._rng.random() < max(0.2, self.eps_greedy):
            return space.sample(self._rng)
        child = space.crossed(self._rng.choice(good), self._rng.choice(good), self._rng)
        return self._rng.choice([*space.neighbours(child), child])


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
