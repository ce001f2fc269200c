"""Choices as records, which a compilation reads: lines of JSON, found by what is decided."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from slipway.backends.choices import key_of
from slipway.tuning.database import KeptTask
from slipway.tuning.space import Candidate

AS_IT_IS = "default"  # of a layout: what the pass decides by itself, which needs no record

Choice = tuple[KeptTask, Candidate]


def record_of(task: KeptTask, candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as a record."""
    op, attrs, *types, target = key_of(task.problem)
    return {
        "op": op, "attrs": attrs, "inputs": types, "target": target,
        "strategy": candidate.strategy, "knobs": dict(candidate.knobs),
    }  # fmt: skip


def write_choices(path: Path, choices: Iterable[Choice]) -> Path:
    """Write what was chosen for some tasks as records."""
    records = [record_of(*choice) for choice in choices if choice[1].strategy != AS_IT_IS]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


class RunSeconds(float):
    """The seconds of a run; classic scripts read them as `record.run_secs[0].value`."""

    @property
    def value(self) -> float:
        """The number."""
        return float(self)
