"""Cost models (classic), by which scripts say how candidates are ranked: all are the engine's."""

from __future__ import annotations

from typing import Any


class CostModel:
    """Ranks candidates; the engine's own model learns after every batch (`tuning.model`)."""

    @staticmethod
    def create(kind: str = "xgb", *args: Any, **kwargs: Any) -> CostModel:
        """Return a model by its name."""
        kinds = {"xgb": XGBModel, "mlp": XGBModel, "random": RandomModel, "none": RandomModel}
        if kind not in kinds:
            raise ValueError(f"cost_model {kind!r}: it is one of {', '.join(kinds)}")
        made: CostModel = kinds[kind](*args, **kwargs)
        return made


class XGBModel(CostModel):
    """Learns from the trials; its options are classic TVM's, kept for scripts that give them."""

    def __init__(self, *, extractor: object = None, config: object = None, **options: Any) -> None:
        self.extractor, self.config, self.options = extractor, config, options


class RandomModel(CostModel):
    """Knows nothing."""

    def __init__(self, *, seed: int | None = None, path: str | None = None) -> None:
        self.seed, self.path = seed, path
