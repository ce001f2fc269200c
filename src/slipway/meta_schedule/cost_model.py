"""Cost models (classic), by which scripts say how candidates are ranked.

Those here stand for the engine's; one of a script's own derives from `PyCostModel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slipway.errors import NotAvailableError
from slipway.meta_schedule.runner.artifact import RunnerResult
from slipway.meta_schedule.search_strategy import MeasureCandidate
from slipway.meta_schedule.utils import Described
from slipway.placeholders import SCHEDULES, placeholder_of

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext


class CostModel(Described):
    """Ranks candidates; the engine's own model learns after every batch (`tuning.model`)."""

    @staticmethod
    def create(kind: str = "xgb", *args: Any, **kwargs: Any) -> CostModel:
        """Return a model by its name."""
        kinds = {"xgb": XGBModel, "mlp": XGBModel, "random": RandomModel, "none": RandomModel}
        if kind not in kinds:
            raise ValueError(f"cost_model {kind!r}: it is one of {', '.join(kinds)}")
        made: CostModel = kinds[kind](*args, **kwargs)
        return made


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


class XGBModel(CostModel):
    """Learns from the trials; its options are classic TVM's, kept for scripts that give them."""

    def __init__(self, *, extractor: object = None, config: object = None, **options: Any) -> None:
        self.extractor, self.config, self.options = extractor, config, options


class RandomModel(CostModel):
    """Knows nothing."""

    def __init__(self, *, seed: int | None = None, path: str | None = None) -> None:
        self.seed, self.path = seed, path


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
