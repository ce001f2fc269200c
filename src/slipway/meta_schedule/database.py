"""Databases (classic): the trials of a working folder; ``with database:`` uses the best of them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.backends.backend import compile_target
from slipway.blocks.schedule import Schedule
from slipway.blocks.trace import Trace
from slipway.errors import ArgumentValueError
from slipway.ir.function import IRModule, PrimFunc
from slipway.meta_schedule.postproc import finished
from slipway.target import Target
from slipway.toolchain.tempdir import TempDirectory, tempdir
from slipway.tuning.database import SCHEDULE, Database
from slipway.tuning.schedules.block_schedules import replayed, text_key
from slipway.tuning.space import Candidate

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


@dataclass(frozen=True)
class Workload:
    """A function of loops, in a module."""

    mod: IRModule

    @property
    def func(self) -> PrimFunc:
        """The function."""
        return Schedule(self.mod).func


@dataclass(frozen=True)
class ScheduleRecord:
    """A verified schedule of a function: what was sampled, and the seconds of its runs."""

    workload: Workload
    candidate: Candidate
    run_secs: list[float]
    target: str

    def schedule(self) -> Schedule:
        """Return the function with this schedule."""
        return finished(replayed(self.workload.func, self.candidate))

    @property
    def trace(self) -> Trace:
        """The steps, with what was sampled."""
        return self.schedule().trace

    def as_measure_candidate(self) -> Schedule:
        """Return the schedule."""
        return self.schedule()


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
            for r in (*self.records(), *self.records(of_schedules=True))
        ]

    # Schedules of functions of loops.

    def commit_workload(self, mod: IRModule | PrimFunc) -> Workload:
        """Return what stands for a function; a search makes its rows."""
        return Workload(IRModule.from_functions({"main": Schedule(mod).func}))

    def has_workload(self, mod: IRModule | PrimFunc) -> bool:
        """Return whether schedules of a function are known for any target."""
        return self.knows(SCHEDULE, text_key(Schedule(mod).func))

    def get_top_k(self, workload: Workload, top_k: int) -> list[ScheduleRecord]:
        """Return the fastest verified schedules of a function, for any target."""
        found = []
        for candidate, seconds, target in self.verified(SCHEDULE, text_key(workload.func)):
            found.append(ScheduleRecord(workload, candidate, seconds, target))
        return sorted(found, key=lambda record: statistics.median(record.run_secs))[:top_k]

    def query_tuning_record(
        self, mod: IRModule | PrimFunc, target: Target | str, workload_name: str = "main"
    ) -> ScheduleRecord | None:
        """Return the fastest verified schedule of a function for a target, None without one."""
        del workload_name
        wanted, workload = str(compile_target(target)), self.commit_workload(mod)
        known = self.get_top_k(workload, len(self))
        return next((record for record in known if record.target == wanted), None)

    def query_schedule(
        self, mod: IRModule | PrimFunc, target: Target | str, workload_name: str = "main"
    ) -> Schedule | None:
        """Return a function with the fastest schedule, None without one."""
        found = self.query_tuning_record(mod, target, workload_name)
        return None if found is None else found.schedule()

    def query_ir_module(
        self, mod: IRModule | PrimFunc, target: Target | str, workload_name: str = "main"
    ) -> IRModule | None:
        """Return the module of the fastest schedule, None without one."""
        found = self.query_schedule(mod, target, workload_name)
        return None if found is None else found.mod


class MemoryDatabase(JSONDatabase):
    """A database that goes with this process."""

    def __init__(self) -> None:
        self._folder: TempDirectory = tempdir()
        super().__init__(work_dir=self._folder.path)
