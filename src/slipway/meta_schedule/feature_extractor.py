"""Feature extractors (classic): what a cost model sees of a schedule's loops.

One of a script's own derives from `PyFeatureExtractor`; a model that is given it learns from it
(``cost_model.XGBModel(extractor=...)``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from slipway.classic.placeholders import SCHEDULES, placeholder_of
from slipway.compiler.driver import lower
from slipway.errors import NotAvailableError
from slipway.ir.function import PrimFunc
from slipway.meta_schedule.search_strategy import MeasureCandidate
from slipway.meta_schedule.utils import Described
from slipway.runtime.ndarray import NDArray, array
from slipway.target import Target
from slipway.tuning.loop_features import COUNTS, loop_features

if TYPE_CHECKING:
    from slipway.meta_schedule.tune_context import TuneContext


class FeatureExtractor(Described):
    """Sees what schedules are like: an array for each, of a row or several."""

    def extract_from(
        self, context: TuneContext, candidates: Sequence[MeasureCandidate]
    ) -> list[NDArray]:
        """Return an array for each candidate."""
        raise NotAvailableError(f"{type(self).__name__} has no extract_from(context, candidates)")


class PyFeatureExtractor(FeatureExtractor):
    """One of a script's own: it has `extract_from(context, candidates)`."""


class RandomFeatureExtractor(PyFeatureExtractor):
    """Sees numbers at random, for tests."""

    def __init__(self, *, feature_size: int = 30, max_block_num: int = 5, seed: int = 0) -> None:
        self.feature_size, self.max_block_num = feature_size, max_block_num
        self.random_state = np.random.RandomState(seed).get_state()

    def extract_from(
        self, context: TuneContext, candidates: Sequence[MeasureCandidate]
    ) -> list[NDArray]:
        """Return rows at random, the next of the state."""
        del context
        rng = np.random.RandomState()
        rng.set_state(self.random_state)
        found = [
            array(rng.rand(rng.randint(1, self.max_block_num + 1), self.feature_size))
            for _ in candidates
        ]
        self.random_state = rng.get_state()
        return found


class PerStoreFeature(FeatureExtractor):
    """Sees what the engine sees of loops, one row: the logarithms of `loop_features.COUNTS`.

    Classic TVM's had rows of 164 numbers, one for each store; how many of what there were is kept
    for scripts that give it.
    """

    def __init__(
        self,
        buffers_per_store: int = 5,
        arith_intensity_curve_num_samples: int = 10,
        cache_line_bytes: int = 64,
        extract_workload: bool = False,
    ) -> None:
        self.buffers_per_store, self.extract_workload = buffers_per_store, extract_workload
        self.arith_intensity_curve_num_samples = arith_intensity_curve_num_samples
        self.cache_line_bytes = cache_line_bytes

    def extract_from(
        self, context: TuneContext, candidates: Sequence[MeasureCandidate]
    ) -> list[NDArray]:
        """Return the counts of each candidate's loops; of a candidate without a schedule zeros."""
        target, found = context.target or Target("llvm"), []
        for one in candidates:
            counts = dict.fromkeys(COUNTS, 0.0)
            if one.sch is not None:
                module = lower(one.sch.mod, simple_mode=True)
                ((_, func),) = module.items()
                assert isinstance(func, PrimFunc)
                counts = loop_features(func, target)
            found.append(array(np.log2([[1.0 + counts[name] for name in COUNTS]])))
        return found


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, SCHEDULES)
