"""Databases (classic): the trials of a working folder; ``with database:`` uses the best of them.

One of a script's own derives from `PyDatabase`; `UnionDatabase` and `OrderedUnionDatabase` look
into several.
"""

from __future__ import annotations

import json
import logging
import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from slipway.arguments import COMMON, explain_all
from slipway.backends.backend import compile_target
from slipway.backends.choices import using_records
from slipway.blocks.schedule import Schedule
from slipway.entered import Entered
from slipway.errors import ArgumentValueError, NotAvailableError
from slipway.ir.function import IRModule, PrimFunc
from slipway.meta_schedule.arg_info import ArgInfo
from slipway.meta_schedule.postproc import finished
from slipway.meta_schedule.tuning_record import (
    ChoiceRecord,
    GivenSchedule,
    TuningRecord,
    Workload,
    workload_of,
)
from slipway.target import Target
from slipway.toolchain.tempdir import TempDirectory, tempdir
from slipway.tuning.database import SCHEDULE
from slipway.tuning.database import Database as TrialDatabase
from slipway.tuning.measure import Measured
from slipway.tuning.schedules.block_schedules import replayed, text_key

FILE_NAME = "tuning.sqlite"
FAILED_S = 1e10  # seconds by which classic TVM notes a failure
Record = TuningRecord | ChoiceRecord
_log = logging.getLogger("slipway.tuning")
_ENTERED: Entered[Database] = Entered("databases")


class Database:
    """Schedules of functions, and choices for kernels of models, of which queries give the best."""

    def has_workload(self, mod: IRModule | PrimFunc) -> bool:
        """Return whether schedules of a function are known for any target."""
        raise self._has_no("has_workload(mod)")

    def commit_workload(self, mod: IRModule | PrimFunc) -> Workload:
        """Return what stands for a function."""
        raise self._has_no("commit_workload(mod)")

    def commit_tuning_record(self, record: Any) -> None:
        """Keep a record."""
        raise self._has_no("commit_tuning_record(record)")

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """Return the fastest schedules of a function, for any target."""
        raise self._has_no("get_top_k(workload, top_k)")

    def get_all_tuning_records(self) -> list[Record]:
        """Return all records."""
        raise self._has_no("get_all_tuning_records()")

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.get_all_tuning_records())

    def __bool__(self) -> bool:
        """Return that there is one: an empty database is one, too."""
        return True

    def query_tuning_record(
        self, mod: IRModule | PrimFunc, target: Target | str, workload_name: str | None = "main"
    ) -> TuningRecord | None:
        """Return the fastest schedule of a function for a target, None without one."""
        del workload_name
        if not self.has_workload(mod):
            return None
        wanted = str(compile_target(target))
        known = self.get_top_k(self.commit_workload(mod), len(self))
        return next((r for r in known if r.target is None or str(r.target) == wanted), None)

    def query_schedule(
        self, mod: IRModule | PrimFunc, target: Target | str, workload_name: str | None = "main"
    ) -> Schedule | None:
        """Return a function with the fastest schedule, None without one."""
        found = self.query_tuning_record(mod, target, workload_name)
        return None if found is None else found.schedule()

    def query_ir_module(
        self, mod: IRModule | PrimFunc, target: Target | str, workload_name: str | None = "main"
    ) -> IRModule | None:
        """Return the module of the fastest schedule, None without one."""
        found = self.query_schedule(mod, target, workload_name)
        return None if found is None else found.mod

    def query(
        self, mod: IRModule | PrimFunc, target: Target | str, *,
        workload_name: str | None = "main", kind: str | Callable[[Schedule], bool] = "schedule",
    ) -> TuningRecord | Schedule | IRModule | None:  # fmt: skip
        """Return the fastest as `kind`: "schedule", "record" or "ir_module".

        A function of a schedule is asked for one instead, as by `ScheduleFnDatabase`.
        """
        if callable(kind):
            return ScheduleFnDatabase(kind).query_schedule(mod, target, workload_name)
        if kind == "record":
            return self.query_tuning_record(mod, target, workload_name)
        if kind == "schedule":
            return self.query_schedule(mod, target, workload_name)
        if kind == "ir_module":
            return self.query_ir_module(mod, target, workload_name)
        raise ArgumentValueError(f"kind {kind!r}: it is one of schedule, record, ir_module")

    def choices(self) -> list[ChoiceRecord]:
        """Return the best choice of each kernel of models."""
        every = self.get_all_tuning_records()
        return best_choices(r for r in every if isinstance(r, ChoiceRecord))

    def dump_pruned(self, destination: Database) -> None:
        """Commit the fastest record of each function and target, and the choices, to another."""
        fastest: dict[tuple[str, str], TuningRecord] = {}
        for record in self.get_all_tuning_records():
            if isinstance(record, TuningRecord):
                key = (text_key(record.workload.func), str(record.target))
                known = fastest.get(key)
                if known is None or seconds_of(record) < seconds_of(known):
                    fastest[key] = record
        for record in fastest.values():
            destination.commit_workload(record.workload.mod)
            destination.commit_tuning_record(record)
        for choice in self.choices():
            destination.commit_tuning_record(choice)

    def __enter__(self) -> Any:
        """Let every compilation in the block use the best choices."""
        contexts = ExitStack()
        with contexts:
            self._use(contexts)
            _ENTERED.enter(self)
            self.__dict__.setdefault("_blocks", []).append(contexts.pop_all())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        _ENTERED.leave(self)
        self.__dict__["_blocks"].pop().__exit__(kind, error, trace)

    def _use(self, contexts: ExitStack) -> None:
        # The folder goes with the database: compilations may read it when the block is left.
        folder = self.__dict__.setdefault("_records", tempdir())
        path = Path(folder.path) / "best.records"
        path.write_text("".join(json.dumps(r.as_json()) + "\n" for r in self.choices()))
        contexts.enter_context(using_records(str(path)))

    @staticmethod
    def current() -> Database | None:
        """Return the database whose ``with`` block this is, None outside of one."""
        return _ENTERED.innermost()

    @staticmethod
    def create(
        kind: str | Callable[[Schedule], bool] = "json", *args: Any, **kwargs: Any
    ) -> Database:
        """Return a database by the name of its kind, or of a function of schedules."""
        if callable(kind):
            return ScheduleFnDatabase(kind, *args, **kwargs)
        kinds: dict[str, Callable[..., Database]] = {
            "json": JSONDatabase, "memory": MemoryDatabase, "union": UnionDatabase,
            "ordered_union": OrderedUnionDatabase,
        }  # fmt: skip
        if kind not in kinds:
            raise ArgumentValueError(f"database {kind!r}: it is one of {', '.join(kinds)}")
        return kinds[kind](*args, **kwargs)

    def _has_no(self, method: str) -> NotAvailableError:
        return NotAvailableError(f"{type(self).__name__} has no {method}")


create = Database.create


class PyDatabase(Database):
    """A database of a script's own.

    It has `has_workload`, `commit_workload`, `commit_tuning_record`, `get_top_k`,
    `get_all_tuning_records` and ``__len__``; the queries ask these.  A search writes its trials to
    its working folder, and commits at its end what was verified: `TuningRecord` for a function of
    loops, `ChoiceRecord` for a kernel of a model.
    """


class JSONDatabase(Database, TrialDatabase):
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
        module_equality: str = "structural",
    ) -> None:
        del module_equality
        if work_dir is None:
            folders = {Path(p).parent for p in (path_workload, path_tuning_record) if p is not None}
            if len(folders) != 1:
                raise ArgumentValueError(
                    "JSONDatabase needs work_dir: the folder that a search wrote to"
                )
            work_dir = folders.pop()
        if Path(work_dir).is_file():
            raise ArgumentValueError(f"work_dir is {str(work_dir)!r}, a file; write a folder")
        path = Path(work_dir) / FILE_NAME
        if not allow_missing and not path.is_file():
            raise ArgumentValueError(
                f"there is no {path}: a search writes it, and allow_missing=True begins one"
            )
        for given in (path_workload, path_tuning_record):
            if given is not None and Path(given).is_file() and Path(given) != path:
                _log.warning(
                    "%s is not read: its trials are of schedules of classic TVM's own loops. A "
                    "search here writes %s", given, path,
                )  # fmt: skip
        TrialDatabase.__init__(self, path)
        self.path_workload = self.path_tuning_record = str(path)

    def get_all_tuning_records(self) -> list[Record]:
        """Return the best choice of each kernel, and all verified schedules of functions."""
        found: list[Record] = [ChoiceRecord(**record) for record in self.records()]
        for text in self.functions():
            found += self.get_top_k(Workload.from_json(json.loads(text)), len(self))
        return found

    def commit_workload(self, mod: IRModule | PrimFunc) -> Workload:
        """Keep a function, and return what stands for it."""
        made = workload_of(mod)
        key, text = made.as_json()
        self.keep_function(key, json.dumps([key, text]))
        return made

    def has_workload(self, mod: IRModule | PrimFunc) -> bool:
        """Return whether schedules of a function are known for any target."""
        return self.knows(SCHEDULE, text_key(Schedule(mod).func))

    def commit_tuning_record(self, record: Record) -> None:
        """Keep a record: that its numbers are right is its script's word."""
        if isinstance(record, ChoiceRecord):
            raise NotAvailableError(
                "a JSONDatabase has the trials of kernels themselves: copy the folder's "
                f"{FILE_NAME}, or give both databases to a UnionDatabase"
            )
        if record.target is None:
            raise ArgumentValueError("the record has no target, for which its schedule is")
        self.commit_workload(record.workload.mod)
        if not record.run_secs or min(float(s) for s in record.run_secs) >= FAILED_S:
            return  # a schedule that failed, as classic TVM notes it: no query returns it
        given = GivenSchedule(record, compile_target(record.target))
        seconds = [float(s) for s in record.run_secs]
        measured = Measured(given.candidate, seconds, 1.0)
        self.add(given, given.DEVICE, [measured], verified=given.candidate)

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """Return the fastest verified schedules of a function, for any target."""
        func, infos = workload.func, ArgInfo.from_prim_func(workload.func)
        every = self.verified(SCHEDULE, text_key(func), GivenSchedule.DEVICE)
        every = sorted(every, key=lambda one: statistics.median(one[1] or [math.inf]))
        return [
            TuningRecord(
                finished(replayed(func, candidate)).trace, workload, seconds, Target(target), infos
            )
            for candidate, seconds, target in every[:top_k]
        ]

    def __len__(self) -> int:
        """Return the number of trials."""
        return TrialDatabase.__len__(self)

    def _use(self, contexts: ExitStack) -> None:
        TrialDatabase.__enter__(self)
        contexts.push(partial(TrialDatabase.__exit__, self))


class MemoryDatabase(JSONDatabase):
    """A database that goes with this process."""

    def __init__(self, module_equality: str = "structural") -> None:
        self._memory: TempDirectory = tempdir()
        super().__init__(work_dir=self._memory.path, module_equality=module_equality)


class ScheduleFnDatabase(Database):
    """Asks a function for schedules: ``schedule_fn(sch)`` edits one and returns whether it did."""

    def __init__(
        self, schedule_fn: Callable[[Schedule], bool], module_equality: str = "structural"
    ) -> None:
        del module_equality
        self.schedule_fn = schedule_fn

    def get_all_tuning_records(self) -> list[Record]:
        """Return nothing: what the function knows shows when it is asked."""
        return []

    def query_tuning_record(
        self, mod: IRModule | PrimFunc, target: Target | str, workload_name: str | None = "main"
    ) -> TuningRecord | None:
        """Return what the function makes of a schedule, None where it makes nothing."""
        del target, workload_name
        workload = workload_of(mod)
        sch = Schedule(workload.mod)
        return TuningRecord(sch.trace, workload) if self.schedule_fn(sch) else None


class UnionDatabase(Database):
    """The best of several databases; it keeps nothing itself."""

    def __init__(self, *databases: Database) -> None:
        self.databases = databases

    def has_workload(self, mod: IRModule | PrimFunc) -> bool:
        """Return whether one of them has it."""
        return any(one.has_workload(mod) for one in self.databases)

    def get_all_tuning_records(self) -> list[Record]:
        """Return the records of all."""
        return [record for one in self.databases for record in one.get_all_tuning_records()]

    def query_tuning_record(
        self, mod: IRModule | PrimFunc, target: Target | str, workload_name: str | None = "main"
    ) -> TuningRecord | None:
        """Return the fastest of what each has."""
        return min(self._answers(mod, target, workload_name), key=seconds_of, default=None)

    def _answers(
        self, mod: IRModule | PrimFunc, target: Target | str, name: str | None
    ) -> Iterable[TuningRecord]:
        found = (one.query_tuning_record(mod, target, name) for one in self.databases)
        return (record for record in found if record is not None)


class OrderedUnionDatabase(UnionDatabase):
    """What the first of several databases that knows something has."""

    def query_tuning_record(
        self, mod: IRModule | PrimFunc, target: Target | str, workload_name: str | None = "main"
    ) -> TuningRecord | None:
        """Return the record of the first that has one."""
        return next(iter(self._answers(mod, target, workload_name)), None)

    def choices(self) -> list[ChoiceRecord]:
        """Return the choice of each kernel by the first that has one."""
        found: dict[object, ChoiceRecord] = {}
        for one in self.databases:
            for choice in one.choices():
                found.setdefault(_key(choice), choice)
        return list(found.values())


@contextmanager
def kept_in(database: object, work_dir: str | Path) -> Iterator[JSONDatabase]:
    """Yield where a search keeps its trials; one of a script's own gets what was verified after."""
    if isinstance(database, JSONDatabase):
        yield database
    elif database == "memory":
        yield MemoryDatabase()
    elif database is None or isinstance(database, str):
        yield JSONDatabase(work_dir=work_dir)
    elif isinstance(database, PyDatabase):
        found = JSONDatabase(work_dir=work_dir)
        try:
            yield found
        finally:
            for record in found.get_all_tuning_records():
                if isinstance(record, TuningRecord):
                    database.commit_workload(record.workload.mod)
                database.commit_tuning_record(record)
    else:
        raise ArgumentValueError(
            f"a search cannot write to {database!r:.100}: give it a JSONDatabase, a "
            "MemoryDatabase or a class derived from PyDatabase"
        )


def best_choices(choices: Iterable[ChoiceRecord]) -> list[ChoiceRecord]:
    """Return of the choices for each kernel the one of the smallest score."""
    found: dict[object, ChoiceRecord] = {}
    for choice in choices:
        known = found.get(_key(choice))
        if known is None or choice.score < known.score:
            found[_key(choice)] = choice
    return list(found.values())


def seconds_of(record: TuningRecord) -> float:
    """Return the median of a record's runs; one without any is the slowest."""
    return statistics.median([float(s) for s in record.run_secs or [math.inf]])


def _key(choice: ChoiceRecord) -> tuple[object, ...]:
    return choice.op, choice.attrs, tuple(choice.inputs), choice.target


explain_all(globals(), ["JSONDatabase", "MemoryDatabase", "ScheduleFnDatabase"], COMMON)
