"""Databases (classic): the trials of a working folder; ``with database:`` uses the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.errors import ArgumentValueError
from slipway.toolchain.tempdir import TempDirectory, tempdir
from slipway.tuning.database import Database

FILE_NAME = "tuning.sqlite"


@dataclass(frozen=True)
class TuningRecord:
    """The best choice for one workload; `score` is its time over the default choice's."""

    workload: str
    strategy: str
    knobs: dict[str, Any]
    target: str
    score: float

    def as_json(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return dict(vars(self))


class JSONDatabase(Database):
    """The database in `work_dir`.

    The name is classic TVM's, whose files were JSON; of the two paths that it took the folder
    counts.  `allow_missing` False: there must be one.
    """

    def __init__(
        self,
        path_workload: str | Path | None = None,
        path_tuning_record: str | Path | None = None,
        *,
        work_dir: str | Path | None = None,
        allow_missing: bool = True,
    ) -> None:
        if work_dir is None:
            folders = {Path(p).parent for p in (path_workload, path_tuning_record) if p is not None}
            if len(folders) != 1:
                raise ValueError("JSONDatabase needs work_dir: the folder that a search wrote to")
            work_dir = folders.pop()
        path = Path(work_dir) / FILE_NAME
        if not allow_missing and not path.is_file():
            raise ArgumentValueError(
                f"there is no {path}: a search writes it, and allow_missing=True begins one"
            )
        super().__init__(path)

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """Return the best choice of each workload."""
        return [
            TuningRecord(r["workload"], r["strategy"], r["knobs"], r["target"], r["score"])
            for r in self.records()
        ]


class MemoryDatabase(JSONDatabase):
    """A database that goes with this process."""

    def __init__(self) -> None:
        self._folder: TempDirectory = tempdir()
        super().__init__(work_dir=self._folder.path)
