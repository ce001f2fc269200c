"""Where trials lie: a file, or a PostgreSQL server, a real one where this machine has it."""

import json
import os
import random
import shutil
import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest

import slipway as tvm
from slipway import relay
from slipway.backends.choices import records_path
from slipway.errors import TuningError
from slipway.tuning import store
from slipway.tuning.database import Database
from slipway.tuning.measure import Measured
from slipway.tuning.store import FileStore, store_at, without_password
from slipway.tuning.task import extract_tasks


class Server:
    """A PostgreSQL server in a folder, which listens on a socket there."""

    def __init__(self, folder):
        self.folder = folder
        self.tools = Path(sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))[-1]).parent
        self.url = f"postgresql://tuner:secret@/postgres?host={folder}"
        self.run("initdb", "-D", folder / "data", "-U", "tuner", "-A", "trust", "--no-sync")

    def run(self, tool, *arguments):
        command = [self.tools / tool, *map(str, arguments)]
        if os.geteuid() == 0:  # which PostgreSQL refuses to serve
            command = [
                "setpriv",
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
                *command,
            ]
        log = self.folder / "log"
        with log.open("a") as said:
            subprocess.run(command, check=True, stdout=said, stderr=said, cwd=self.folder)

    def start(self):
        options = f"-k {self.folder} -c listen_addresses='' -F"
        self.run("pg_ctl", "-D", self.folder / "data", "-w", "-o", options, "start")

    def stop(self):
        self.run("pg_ctl", "-D", self.folder / "data", "-w", "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="pip install 'psycopg[binary]'")
    if not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        pytest.skip("no PostgreSQL server: apt install postgresql")
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("no setpriv, with which root starts a server")
    folder = Path(f"/tmp/slipway-pg-{os.getpid()}")  # short: a socket's path has 107 letters
    folder.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    made = Server(folder)
    made.start()
    yield made
    made.stop()
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def task():
    x, w = relay.var("x", shape=(3, 40)), relay.var("w", shape=(24, 40))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    return next(t for t in extract_tasks(module, "llvm") if "dense" in t.op)


def some(task, count):
    rng = random.Random(count)
    return list(dict.fromkeys(task.space.sample(rng) for _ in range(4 * count)))[:count]


def expect_laws(database, task):
    """What the search relies on, wherever the rows lie."""
    one, two, three = some(task, 3)
    assert database.records() == []
    assert database.best(task) is None
    database.add(task, "a", [Measured(one, [0.1, 0.2], 0.5), Measured(two, kind="run", error="x")])
    assert database.best(task) is None  # nothing was held against the reference
    database.add(task, "a", [Measured(one, [0.1], 0.5)], verified=one)
    database.add(task, "b", [Measured(three, [0.1], 0.9)], verified=three)
    database.add(task, "b", [Measured(two, [], float("inf"), "wrong", "off \0 \udcff")])
    assert database.best(task).candidate == one
    assert database.best(task, "b").candidate == three
    (record,) = database.records()  # of the device that was tuned last
    assert record["strategy"] == three.strategy
    assert record["score"] == 0.9
    assert [t.score for t in database.trials(task, "a")] == [0.5, float("inf"), 0.5]
    assert database.trials(task, "a")[0].seconds == (0.1, 0.2)
    assert database.trials(task, "b")[1].error.startswith("off ")
    assert len(database) == 5


def test_a_file_keeps_the_laws(task, tmp_path):
    expect_laws(Database(tmp_path / "new" / "t.sqlite"), task)


def test_a_server_keeps_the_laws(server, task):
    database = Database(server.url)
    expect_laws(database, task)
    assert len(Database(server.url)) == len(database)
    with database:
        path = records_path()
        assert json.loads(Path(path).read_text())["score"] == 0.9
    assert Path(path).exists()  # sources are made later, when somebody asks for them


def test_searches_that_share_a_file_write_their_records_at_once(task, tmp_path):
    """Two tuners of one model have one database and, by default, one file of records."""
    path, lost = tmp_path / "model.records", []
    first = Database(tmp_path / "t.sqlite")
    first.add(
        task, "a", [Measured(c, [1.0], 0.5) for c in some(task, 1)], verified=some(task, 1)[0]
    )

    def write():
        try:
            database = Database(tmp_path / "t.sqlite")
            for _ in range(10):
                database.write_records(path)
        except OSError as error:
            lost.append(error)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not lost
    assert json.loads(path.read_text())["score"] == 0.5
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.records", "t.sqlite"]


def test_several_searches_write_to_a_server_at_once(server, task):
    before = len(Database(server.url))

    def search(number):
        database = Database(server.url)
        for candidate in some(task, 10):
            database.add(task, f"device {number}", [Measured(candidate, [1.0], 1.0)])

    threads = [threading.Thread(target=search, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Database(server.url)) == before + 40


def test_a_server_that_starts_again_is_waited_for(server, task):
    """It does not answer for some seconds: that ends no night's search either."""
    database = Database(server.url)
    before, one = len(database), some(task, 1)[0]
    server.stop()  # as a crash would
    starting = threading.Timer(2.0, server.start)
    starting.start()
    database.add(task, "d", [Measured(one, [1.0], 1.0)])
    starting.join()
    assert len(database) == before + 1


def test_a_server_that_is_gone_is_told(server, task, monkeypatch):
    monkeypatch.setattr(store, "BACK_S", 0.5)
    database = Database(server.url)
    before, one = len(database), some(task, 1)[0]
    server.stop()
    with pytest.raises(TuningError, match="cannot be") as raised:
        database.add(task, "d", [Measured(one, [1.0], 1.0)])
    assert "secret" not in str(raised.value)
    server.start()
    database.add(task, "d", [Measured(one, [1.0], 1.0)])
    assert len(database) == before + 1


def test_no_server_is_one_clear_error():
    pytest.importorskip("psycopg", reason="pip install 'psycopg[binary]'")
    with pytest.raises(TuningError, match=r"postgresql://me@127\.0\.0\.1:9/t cannot be opened"):
        Database("postgresql://me:hidden@127.0.0.1:9/t")


@pytest.mark.parametrize("url", ["mysql://me:hidden@host/trials", Path("mysql://me:hidden@host/t")])
def test_other_servers_are_refused_in_words(url):
    with pytest.raises(
        TuningError, match=r"mysql://me@host/t.*keeps no trials.*postgresql"
    ) as said:
        store_at(url)
    assert "hidden" not in str(said.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p%40ss@h:5432/d", "postgresql://u@h:5432/d"),
        ("postgresql://h/d?user=u&password=pw&x=1", "postgresql://h/d?user=u&password=...&x=1"),
        ("postgresql://h/d", "postgresql://h/d"),
    ],
)
def test_an_address_is_shown_without_its_password(url, shown):
    assert without_password(url) == shown


def test_a_file_that_nobody_closed_is_closed_with_its_last_reference(tmp_path):
    store = FileStore(tmp_path / "trials.db")
    connection = store._connection
    del store
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("select 1")
