"""Records that others have made (classic): none is fetched here, those of files are used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipway.autotvm.task import ApplyHistoryBest
from slipway.classic.placeholders import TUNING, placeholder_of
from slipway.target import Target


def context(target: Any, extra_files: Sequence[str | Path] | None = None) -> ApplyHistoryBest:
    """Return a context that uses the records of `extra_files`.

    Classic TVM adds what it downloads for `target`; without records schedules are chosen from the
    target's description.
    """
    Target(target)  # an unknown one is told here
    return ApplyHistoryBest(list(extra_files) if extra_files else None)


def load_reference_log(backend: str, model: str, workload_name: str) -> list[Any]:
    """Return the records of classic TVM's collection: none, as none is fetched."""
    del backend, model, workload_name
    return []


def __getattr__(name: str) -> Any:
    return placeholder_of(__name__, name, TUNING)
