"""What orders candidates before they are measured (classic): names for the engine's ways."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from slipway.auto_scheduler.measure import MeasureInput, MeasureResult
from slipway.auto_scheduler.records import Trial, load_records
from slipway.errors import NotAvailableError


class CostModel:
    """Orders candidates; `records` are trials that it has learned from before a search."""

    learns = True

    def __init__(self) -> None:
        self.records: list[Trial] = []

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from trials."""
        self.records += zip(inputs, results, strict=True)

    def update_from_file(self, file_name: str | Path, n_lines: int | None = None) -> None:
        """Learn from the trials of a log, the first `n_lines` of them."""
        self.records += list(load_records(file_name))[:n_lines]


class RandomModel(CostModel):
    """Does not order them: they are tried at random."""

    learns = False


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

    def save(self, file_name: str | Path) -> None:
        """Refuse: what it learned from is a log, which can be read again."""
        raise NotAvailableError(
            f"the model is not saved to {file_name}: update_from_file(log) learns it again"
        )

    def load(self, file_name: str | Path) -> None:
        """Learn from a log."""
        self.update_from_file(file_name)


PythonBasedModel = CostModel
