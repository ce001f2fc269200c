"""Where the rows of trials lie: a file of SQLite, or a PostgreSQL server that a team shares.

Both take the same statements, with ``?`` for values; only rows are added.
"""

from __future__ import annotations

import logging
import re
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from slipway.errors import FileError, TuningError, did_you_mean, reason_of

Values = Sequence[Any]
Statement = tuple[str, Sequence[Values]]

_log = logging.getLogger("slipway.tuning")
_TABLES = """
create table if not exists task (
    key text primary key, op text, attrs text, inputs text, target text, workload text
);
create table if not exists trial (
    number {number} primary key, task text, candidate text, device text, host text, compiler text,
    time {real}, score {real}, seconds text, kind text, error text, verified integer
);
create index if not exists trial_of_task on trial (task, device);
create table if not exists loops (
    task text, candidate text, described text, primary key (task, candidate)
);
create table if not exists function_text (key text primary key, body text);
"""
SCHEMES = ("postgresql", "postgres")
BACK_S = 120.0  # how long a server that was there before is waited for: it may be starting again
LOCKED_S = 30.0  # how long another program may hold the file
PAUSE_S = 0.5  # between two looks
_LOCK = 7_355_608  # of the server, while tables are made: any number that others do not use


class TrialsFileError(TuningError, FileError):
    """A file that is no database of trials, or cannot be opened as one."""


class TrialStore(Protocol):
    """Tables of trials.  Each method raises TuningError where the rows cannot be had."""

    where: str  # as errors and reports name it, without a password

    def read(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""

    def write(self, statements: Sequence[Statement]) -> None:
        """Run statements for each of their rows of values, all of them or none."""

    def close(self) -> None:
        """Let go of the file or the server."""


def store_at(location: str | Path) -> TrialStore:
    """Open the file or the server at `location`.  Raises TuningError where that is not possible."""
    # A Path has lost one of the slashes.
    url = re.sub(r"^(\w+):/+", r"\1://", str(location))
    address = re.match(r"(\w+)://", url)
    if address is None:
        return FileStore(Path(location))
    if address[1] not in SCHEMES:
        raise TuningError(
            f"{without_password(url)} is the address of a kind of server that keeps no "
            f"trials here.{did_you_mean(address[1], SCHEMES)} Give the path of a file, or "
            "postgresql://USER@HOST/DATABASE"
        )
    return ServerStore(url)


class FileStore:
    """Trials in a file of SQLite; several searches on a machine may share it."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TrialsFileError(
                f"the folder of the trials {path} cannot be made: {reason_of(error)}"
            ) from error
        self._connection = self._opened()
        self._file = _file_at(path)

    def _opened(self) -> sqlite3.Connection:
        path = self.path
        try:
            connection = sqlite3.connect(path, timeout=LOCKED_S, check_same_thread=False)
            connection.executescript(_TABLES.format(number="integer", real="real"))
            return connection
        except sqlite3.OperationalError as error:
            raise TrialsFileError(
                f"{path} cannot be opened for trials ({error}): is there space, and may it be "
                "written?"
            ) from error
        except sqlite3.DatabaseError as error:
            raise TrialsFileError(
                f"{path} is no database of trials ({error}). Give the tuner another folder, "
                "or move this file away"
            ) from error

    def read(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            said = f"the trials in {self.path} cannot be read: {error}{_advice(error)}"
            raise TuningError(said) from error

    def write(self, statements: Sequence[Statement]) -> None:
        """Run statements in one transaction, in the file that lies there."""
        self._follow()
        self._write(self._connection, statements)
        self._follow()

    def _write(self, to: sqlite3.Connection, statements: Sequence[Statement]) -> None:
        try:
            with to as connection:
                for statement, rows in statements:
                    connection.executemany(statement, [list(map(_storable, r)) for r in rows])
        except sqlite3.Error as error:
            said = f"a trial cannot be written to {self.path}: {error}{_advice(error)}"
            raise TuningError(said) from error

    def _follow(self) -> None:
        """Put the rows into the file at the path, where the one that was opened is there no more.

        Who removes a file that is written to would lose what comes after, without a word.
        """
        if _file_at(self.path) == self._file:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        known, self._connection = self._connection, self._opened()
        self._file = _file_at(self.path)
        self._write(self._connection, _rows_to_add(known, self._connection))
        count = known.execute("select count(*) from trial").fetchone()[0]
        known.close()
        _log.warning(
            "%s was removed or replaced while a search wrote to it: its %d trials have been put "
            "back",
            self.path, count,
        )  # fmt: skip

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __del__(self) -> None:
        """Close the file of a database that nobody closed."""
        if "_connection" in self.__dict__:
            self._connection.close()


def _advice(error: sqlite3.Error) -> str:
    """Return what to do about an error of a file that was good when it was opened, "" for others.

    The texts are SQLite's, whose exceptions have a number from Python 3.11 on alone.
    """
    text = str(error)
    if "locked" in text:
        return (
            f". Another program has held it for {LOCKED_S:.0f} seconds (lsof tells which): end it, "
            "and the same command goes on with what was found"
        )
    if "not a database" in text or "malformed" in text:
        return (
            ". Something else wrote into it since it was opened: put a copy back, or move it away "
            "and begin again"
        )
    return ""


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at a path from another one there, None without any."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _rows_to_add(of: sqlite3.Connection, to: sqlite3.Connection) -> list[Statement]:
    """Return what brings the rows of one file into another, which may have some of them."""
    told = "task, candidate, device, host, time"
    trial = f"{told}, compiler, score, seconds, kind, error, verified"
    there = set(to.execute(f"select {told} from trial"))
    rows = [
        r for r in of.execute(f"select {trial} from trial order by number") if r[:5] not in there
    ]
    found: list[Statement] = [(f"insert into trial ({trial}) values ({', '.join('?' * 11)})", rows)]
    for table, columns in (("task", 6), ("loops", 3), ("function_text", 2)):
        insert = f"insert into {table} values ({', '.join('?' * columns)}) on conflict do nothing"
        found.append((insert, of.execute(f"select * from {table}").fetchall()))
    return found


class ServerStore:
    """Trials on a PostgreSQL server.  A connection that was lost is made again once a call."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise TuningError(
                "trials on a PostgreSQL server need psycopg: pip install 'psycopg[binary]'"
            ) from None
        self._psycopg: Any = psycopg
        self._url, self.where = url, without_password(url)
        self._connection = self._connected()
        tables = _TABLES.format(number="bigserial", real="double precision").split(";")
        locked = ("select pg_advisory_xact_lock(?)", [(_LOCK,)])
        self.write([locked, *((table, [()]) for table in tables if table.strip())])

    def read(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""

        def run(connection: Any) -> list[tuple[Any, ...]]:
            found: list[tuple[Any, ...]] = connection.execute(_spelt(statement), values).fetchall()
            return found

        return self._run("the trials on {} cannot be read: {}", run)  # type: ignore[no-any-return]

    def write(self, statements: Sequence[Statement]) -> None:
        """Run statements in one transaction."""

        def run(connection: Any) -> None:
            for statement, rows in statements:
                for values in rows:
                    connection.execute(_spelt(statement), list(map(_storable, values)))

        self._run("a trial cannot be written to {}: {}", run)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def __del__(self) -> None:
        """End the connection of a database that nobody closed."""
        if "_connection" in self.__dict__:
            self._connection.close()

    def _run(self, doing: str, run: Any) -> Any:
        for is_last in (False, True):
            try:
                if self._connection.closed or self._connection.broken:
                    self._connection = self._connected_again()
                with self._connection.transaction():
                    return run(self._connection)
            except self._psycopg.Error as error:
                # A server that was restarted is no end of a night's search.
                if is_last or not self._connection.broken:
                    raise TuningError(doing.format(self.where, _first_line(error))) from error
        raise AssertionError("unreachable")

    def _connected_again(self) -> Any:
        """Return a connection to a server that was there, waiting for one that starts again."""
        end = time.monotonic() + BACK_S
        while True:
            try:
                return self._connected()
            except TuningError:
                if time.monotonic() >= end:
                    raise
                time.sleep(PAUSE_S)

    def _connected(self) -> Any:
        try:
            return self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        except self._psycopg.Error as error:
            raise TuningError(
                f"{self.where} cannot be opened for trials: {_first_line(error)}"
            ) from error


def without_password(url: str) -> str:
    """Return an address as it may be shown."""
    try:
        parts = urlsplit(url)
        secret = parts.password
    except ValueError:
        return url.partition("@")[2] or url
    shown = url.replace(f":{secret}@", "@", 1) if secret else url
    return re.sub(r"(password=)[^&]*", r"\1...", shown)


def _spelt(statement: str) -> str:
    return statement.replace("?", "%s")


def _storable(value: Any) -> Any:
    """Return what a text column takes: what a broken device said may be any bytes."""
    if not isinstance(value, str):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
