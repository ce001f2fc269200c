"""Every trial that was ever made: what was tried, on what, and what came of it.

Rows are only added.  The best of a task is the trial of the smallest score among those that were
measured, whose results were held against the reference, and that no whole model was slower with
later; there is no other way to be the best.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from slipway.backends.choices import key_of, using_records
from slipway.backends.strategy import Problem
from slipway.errors import TuningError
from slipway.toolchain.link import write_file
from slipway.toolchain.tempdir import TempDirectory, tempdir
from slipway.tuning.measure import Measured
from slipway.tuning.space import Candidate, candidate_of
from slipway.tuning.store import FileStore, store_at
from slipway.version import VERSION

SCHEDULE = "tir.schedule"  # the operator of a task that is a function of loops
_TRIAL = "select candidate, score, seconds, kind, error, verified from trial"
_MOST_LOOPS = 20_000  # the newest, of all that were measured
_SLOWS = "model"  # the kind of a trial that says: the whole model is slower with this choice
_GOOD = (
    "trial.kind = '' and trial.verified = 1 and not exists (select 1 from trial later where "
    "later.task = trial.task and later.device = trial.device and later.number > trial.number "
    f"and later.candidate = trial.candidate and later.kind = '{_SLOWS}')"
)


class KeptTask(Protocol):
    """A task whose best is a record: a kernel of a model, or the layout of an operator."""

    @property
    def key(self) -> str:
        """What it is found by."""

    @property
    def problem(self) -> Problem:
        """What its record is about."""


@dataclass(frozen=True)
class TrialRow:
    """A row: `score` is relative to the default choice, `seconds` are those of single rounds."""

    candidate: Candidate
    score: float
    seconds: tuple[float, ...]
    kind: str
    error: str
    verified: bool


class Database:
    """Trials in a file, or on a server (`postgresql://USER@HOST/DATABASE`) that a team shares.

    ``with database:`` lets `relay.build` use the best of them.
    """

    def __init__(self, location: str | Path) -> None:
        self._store = store_at(location)
        self._active: list[ExitStack] = []
        self._folder: TempDirectory | None = None

    @property
    def where(self) -> str:
        """The file, or the server's address without a password."""
        return self._store.where

    def add(
        self,
        task: KeptTask,
        device: str,
        measured: Iterable[Measured],
        verified: Candidate | None = None,
    ) -> None:
        """Keep what was measured; `verified` is the one whose results were right.

        Raises TuningError when they cannot be written.
        """
        op, attrs, *types = key_of(task.problem)
        rows = [
            (
                task.key, m.candidate.text, device, platform.node(), VERSION, time.time(),
                m.score, json.dumps(m.seconds), m.kind, m.error, int(m.candidate == verified),
            )
            for m in measured
        ]  # fmt: skip
        described = (task.key, op, attrs, json.dumps(types[:-1]), types[-1], str(task))
        self._store.write(
            [
                (
                    "insert into task (key, op, attrs, inputs, target, workload) "
                    "values (?, ?, ?, ?, ?, ?) on conflict do nothing",
                    [described],
                ),
                (
                    "insert into trial (task, candidate, device, host, compiler, time, score, "
                    "seconds, kind, error, verified) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    rows,
                ),
            ]
        )

    def set_aside(self, task: KeptTask, device: str, measured: Measured) -> None:
        """Let a choice no longer count that was the best: a whole model is slower with it."""
        self.add(task, device, [replace(measured, kind=_SLOWS)])

    def trials(self, task: KeptTask, device: str) -> list[TrialRow]:
        """Return what is known of a task on a device, in the order in which it was measured."""
        return [
            self._trial(row)
            for row in self._rows(
                f"{_TRIAL} where task = ? and device = ? order by number", (task.key, device)
            )
        ]

    def best(self, task: KeptTask, device: str | None = None) -> TrialRow | None:
        """Return the best trial of a task, on any device where none is named; None without one."""
        where = "" if device is None else " and device = ?"
        rows = self._rows(
            f"{_TRIAL} where task = ? and {_GOOD}{where} order by score, number limit 1",
            (task.key, *([] if device is None else [device])),
        )
        return self._trial(rows[0]) if rows else None

    def elsewhere(
        self, op: str, attrs: str, inputs: str, target: str
    ) -> list[tuple[Candidate, float, str]]:
        """Return verified trials of an operator's problem on other targets: choice, score, target.

        `inputs` are the types as JSON.  Of one candidate on a target the last trial counts.
        """
        rows = self._rows(
            "select candidate, score, target from trial join task on trial.task = task.key "
            f"where op = ? and attrs = ? and inputs = ? and target <> ? and {_GOOD} "
            "order by number",
            (op, attrs, inputs, target),
        )
        latest = {(text, where): score for text, score, where in rows}
        return [(self._candidate(text), score, where) for (text, where), score in latest.items()]

    def targets(self) -> list[str]:
        """Return the targets of all tasks."""
        return [str(row[0]) for row in self._rows("select distinct target from task order by 1")]

    def measured(self, task: KeptTask) -> dict[Candidate, float]:
        """Return the scores of a task's candidates on any device, verified or not; the last one."""
        rows = self._rows(f"{_TRIAL} where task = ? and kind = '' order by number", (task.key,))
        return {trial.candidate: trial.score for trial in map(self._trial, rows)}

    def keep_loops(self, task: KeptTask, described: Mapping[Candidate, Sequence[float]]) -> None:
        """Keep what the loops of candidates are like, for searches of other tasks to learn from."""
        rows = [(task.key, c.text, json.dumps(list(row))) for c, row in described.items()]
        self._store.write(
            [
                (
                    "insert into loops (task, candidate, described) values (?, ?, ?) "
                    "on conflict do nothing",
                    rows,
                )
            ]
        )

    def count_loops(self) -> int:
        """Return of how many candidates the loops are known."""
        return int(self._rows("select count(*) from loops")[0][0])

    def loops(self, length: int) -> list[tuple[str, list[float], float]]:
        """Return the task, the loops and the score of every candidate that was measured.

        Those of another length than `length` are by another version, and are left out.
        """
        rows = self._rows(
            "select loops.task, described, score from trial join loops "
            "on trial.task = loops.task and trial.candidate = loops.candidate "
            f"where trial.kind = '' order by number desc limit {_MOST_LOOPS}"
        )
        found = [(task, self._json(text, list), score) for task, text, score in rows]
        for _, row, score in found:
            if not all(isinstance(n, int | float) for n in (score, *row)):
                raise self._damaged(f"the loops of a candidate are {row!r}, its score {score!r}")
        return [(task, row, score) for task, row, score in found if len(row) == length]

    def verified(
        self, op: str, attrs: str, each_of: str = ""
    ) -> list[tuple[Candidate, list[float], str]]:
        """Return verified trials of an operator's problem: choice, seconds, target.

        Of one candidate on a device the last trial counts; on the device `each_of` each does.
        """
        rows = self._rows(
            "select candidate, target, device, case when device = ? then number else 0 end, "
            "seconds from trial join task on trial.task = task.key "
            f"where op = ? and attrs = ? and {_GOOD} order by number",
            (each_of, op, attrs),
        )
        latest = {tuple(what): seconds for *what, seconds in rows}
        return [
            (self._candidate(text), [float(n) for n in self._json(seconds, list)], target)
            for (text, target, *_), seconds in latest.items()
        ]

    def keep_function(self, key: str, text: str) -> None:
        """Keep a function of loops, for which schedules are kept by its key."""
        statement = "insert into function_text (key, body) values (?, ?) on conflict do nothing"
        self._store.write([(statement, [(key, text)])])

    def functions(self) -> list[str]:
        """Return the functions that were kept."""
        return [str(row[0]) for row in self._rows("select body from function_text order by key")]

    def knows(self, op: str, attrs: str) -> bool:
        """Return whether there is a task of an operator's problem."""
        return bool(self._rows("select 1 from task where op = ? and attrs = ?", (op, attrs)))

    def records(self, of_schedules: bool = False) -> list[dict[str, Any]]:
        """Return the best of each task as records, which "schedules.records" takes.

        Of several devices the last one that was tuned counts.  `of_schedules`: those of functions'
        schedules instead, which no model is compiled with.
        """
        rows = self._rows(
            "select task.op, attrs, inputs, target, candidate, score, workload from task join "
            "(select trial.*, row_number() over (partition by task order by score, number) as rank "
            f"from trial where {_GOOD} and device = (select device from trial t "
            "where t.task = trial.task order by number desc limit 1)) as won "
            "on won.task = task.key and won.rank = 1 "
            f"where task.op {'=' if of_schedules else '<>'} '{SCHEDULE}' order by task.key"
        )
        found = []
        for op, attrs, inputs, target, text, score, workload in rows:
            candidate, types = self._candidate(text), self._json(inputs, list)
            texts = all(isinstance(t, str) for t in (op, attrs, target, workload, *types))
            if not texts or not isinstance(score, int | float):
                raise self._damaged(f"a task is {op!r} of {inputs!r}, its score {score!r}")
            found.append(
                {
                    "op": op, "attrs": attrs, "inputs": types, "target": target,
                    "strategy": candidate.strategy, "knobs": dict(candidate.knobs),
                    "score": score, "workload": workload,
                }
            )  # fmt: skip
        return found

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return what the store has.  Raises TuningError for one that is damaged."""
        try:
            return self._store.read(query, values)
        except UnicodeDecodeError as error:
            raise self._damaged(str(error)) from error

    def _trial(self, row: tuple[Any, ...]) -> TrialRow:
        text, score, seconds, kind, error, verified = row
        times = self._json(seconds, list)
        numbers = [score, *times]
        if any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers):
            raise self._damaged(f"the times of a trial are {seconds!r}, its score {score!r}")
        return TrialRow(self._candidate(text), score, tuple(times), kind, error, bool(verified))

    def _candidate(self, text: Any) -> Candidate:
        given = self._json(text, list)
        if len(given) != 2 or not isinstance(given[0], str) or not isinstance(given[1], dict):
            raise self._damaged(f"a choice is {text!r}")
        return candidate_of(*given)

    def _json(self, text: Any, kind: type) -> Any:
        try:
            found = json.loads(text)
        except (TypeError, ValueError, RecursionError):
            found = None
        if not isinstance(found, kind):
            raise self._damaged(f"a value is {str(text)[:80]!r}")
        return found

    def _damaged(self, why: str) -> TuningError:
        return TuningError(
            f"{self.where} is damaged, or another program has written it: {why}. Move it away, or "
            "give the tuner another place: the next search begins anew"
        )

    def write_records(self, path: str | Path) -> Path:
        """Write the best of each task as lines of JSON, whole or not at all."""
        file = Path(path)
        write_file(file, "".join(json.dumps(record) + "\n" for record in self.records()).encode())
        return file

    def __len__(self) -> int:
        """Return the number of trials."""
        return int(self._rows("select count(*) from trial")[0][0])

    def close(self) -> None:
        """Let go of the file or the server."""
        self._store.close()

    def _records_file(self) -> Path:
        """Return where records lie for compilations, which may read them when the block is left."""
        if isinstance(self._store, FileStore):
            return self._store.path.with_suffix(".records")
        self._folder = self._folder or tempdir()
        return Path(self._folder.path) / "best.records"

    def __enter__(self) -> Database:
        """Let every compilation in the block use the best choices."""
        contexts = ExitStack()
        if self.records():
            contexts.enter_context(using_records(str(self.write_records(self._records_file()))))
        self._active.append(contexts)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._active.pop().__exit__(kind, error, trace)
