"""What a tracker remembers: a day's history, finished jobs, and what people said of devices.

One SQLite file, or memory where none is given.  It is written every few seconds, together, so that
no hand-out waits for a disk.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from slipway.errors import FileError
from slipway.rpc.farm.clock import wall_s
from slipway.rpc.farm.devices import DeviceIdentity
from slipway.rpc.farm.journal import FinishedJob, Sample

if TYPE_CHECKING:
    from slipway.rpc.farm.remarks import Remarks
    from slipway.rpc.farm.state import Farm

DAY_S = 24 * 3600.0
POINTS = 720  # of a day's chart: two minutes each
SHOWN_JOBS = 50
_VERSION = 1
_SCHEMA = """
create table if not exists samples
  (at real, total integer, busy integer, waiting integer, finished integer);
create index if not exists samples_at on samples (at);
create table if not exists jobs
  (at real, length real, kind text, device text, session text, who text, result text, words text);
create index if not exists jobs_at on jobs (at);
create table if not exists remarks (place text primary key, said text);
"""


class Store:
    """The file; `path` None keeps everything in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._pruned = 0.0
        self._moved_s = 0.0  # by what the clock was set since the last write
        self._since = wall_s()  # what is younger is of this run
        try:
            self._file = sqlite3.connect(path or ":memory:", check_same_thread=False)
            version = self._file.execute("pragma user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise FileError(
                    f"{path} was written by another release of Slipway (format {version}, here "
                    f"{_VERSION}); name another file, or remove it"
                )
            self._file.execute("pragma journal_mode = wal")
            self._file.execute("pragma synchronous = normal")
            self._file.executescript(_SCHEMA)
            self._file.execute(f"pragma user_version = {_VERSION}")
            self._file.commit()
        except sqlite3.Error as error:
            raise FileError(
                f"{path} cannot be the tracker's history: {error}; name a file in a folder that "
                "may be written, or remove a damaged one"
            ) from error

    def load(self, farm: Farm) -> None:
        """Give a farm what was written before: the last hour, the last jobs, all remarks.

        What an earlier run wrote by a clock that was ahead becomes of now.
        """
        journal, now = farm.journal, farm.clock.now()
        with self._file:
            self._file.execute("delete from samples where at > ?", (now,))
            self._file.execute("update jobs set at = ? where at > ?", (now, now))
        self._since = now
        farm.clock.follow(self._clock_was_set)
        journal.samples.extend(self._samples(now - 3600))
        rows = self._file.execute(
            "select * from jobs order by at desc limit ?", (SHOWN_JOBS,)
        ).fetchall()
        journal.jobs.extend(FinishedJob(*row) for row in reversed(rows))
        for text, said in self._file.execute("select place, said from remarks"):
            farm.remember_remarks(_identity(text), json.loads(said))

    def _clock_was_set(self, moved_s: float) -> None:
        self._moved_s += moved_s

    def _move(self) -> None:
        """Move what this run has written to where the clock is now; the runs before had theirs."""
        for table in ("samples", "jobs"):
            self._file.execute(
                f"update {table} set at = at + ? where at >= ?", (self._moved_s, self._since)
            )

    def write(self, farm: Farm) -> None:
        """Write what is new of a farm's journal, and forget what is older than a day."""
        journal, now = farm.journal, farm.clock.now()
        samples, jobs = journal.take_new()
        with self._file:
            if self._moved_s:
                self._move()
            self._file.executemany(
                "insert into samples values (?, ?, ?, ?, ?)",
                [(s.at, s.total, s.busy, s.waiting, s.finished) for s in samples],
            )
            self._file.executemany(
                "insert into jobs values (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (j.at, j.length_s, j.kind, j.device, j.session, j.who, j.result, j.words)
                    for j in jobs
                ],
            )
            if abs(now - self._pruned) > 600:
                oldest = now - DAY_S
                self._file.execute("delete from samples where at < ?", (oldest,))
                self._file.execute("delete from jobs where at < ?", (oldest,))
                self._pruned = now
        self._since, self._moved_s = self._since + self._moved_s, 0.0

    def keep(self, identity: DeviceIdentity, remarks: Remarks) -> None:
        """Write down what people said of a device; nothing is kept where they said nothing."""
        with self._file:
            if remarks.is_empty:
                self._file.execute("delete from remarks where place = ?", (_text(identity),))
            else:
                self._file.execute(
                    "insert or replace into remarks values (?, ?)",
                    (_text(identity), json.dumps(remarks.to_json())),
                )

    def day(self) -> list[list[float]]:
        """Return the last day as at most `POINTS` points: of each, the values at its busiest."""
        start, step = wall_s() - DAY_S, DAY_S / POINTS
        rows = self._file.execute(
            "select max(at), max(total), max(busy), max(waiting), sum(finished) from samples "
            "where at > ? group by cast((at - ?) / ? as integer) order by 1",
            (start, start, step),
        )
        return [[round(at, 1), *values] for at, *values in rows]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __del__(self) -> None:
        """Close the file of a tracker that did not start."""
        if "_file" in self.__dict__:
            self._file.close()

    def _samples(self, since: float) -> list[Sample]:
        rows = self._file.execute("select * from samples where at > ? order by at", (since,))
        return [Sample(*row) for row in rows]


def _text(identity: DeviceIdentity) -> str:
    return json.dumps(identity)


def _identity(text: str) -> DeviceIdentity:
    key, address, port, behind = json.loads(text)
    return str(key), str(address), int(port), str(behind)
