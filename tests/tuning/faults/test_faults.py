"""What a night of tuning meets: devices hang or talk nonsense, the tuner is killed, disks fill."""

import contextlib
import errno
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import RPCConnectionError, RPCError, TuningError
from slipway.rpc import client
from slipway.script import tir as T
from slipway.toolchain import link
from slipway.tuning import store
from slipway.tuning.build import KernelJob, LoopsJob
from slipway.tuning.database import Database
from slipway.tuning.measure import Bench, KernelSubject, Measured, judge, kernel_bench
from slipway.tuning.runner import DeviceRunner, LocalRunner, TrackerRunner
from slipway.tuning.search import TaskSearch
from slipway.tuning.task import extract_tasks

WRITER = """
import resource, sys
from slipway.errors import RPCConnectionError, RPCError, TuningError
from slipway.tuning.database import Database
from slipway.tuning.measure import Measured
import importlib.util
spec = importlib.util.spec_from_file_location("faults", {here!r})
faults = importlib.util.module_from_spec(spec)
spec.loader.exec_module(faults)
task = faults.dense_task()
default = task.space.default
database = Database({path!r})
limit = {limit}
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
for number in range(100_000):
    score = 1 / (number + 2)
    try:
        database.add(task, "local", [Measured(default, [score] * 9, score)],
                     verified=default if number % 2 else None)
    except TuningError as error:
        print("ended", error, flush=True)
        break
    print(number, flush=True)
"""


def dense_task():
    x, w = relay.var("x", shape=(3, 40)), relay.var("w", shape=(24, 40))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    return next(t for t in extract_tasks(module, "llvm") if "dense" in t.op)


def writer(path, limit=0):
    program = WRITER.format(here=__file__, path=str(path), limit=limit)
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def expect_kept(path, count):
    """Every trial that was told is there, and the best is the best that was verified."""
    with Database(path) as database:
        task = dense_task()
        trials = database.trials(task, "local")
        assert len(trials) in (count, count + 1)  # one may be kept that was not told any more
        verified = [t.score for t in trials if t.verified]
        assert database.best(task).score == min(verified)
        assert len(verified) == len(trials) // 2


def test_a_tuner_that_is_killed_loses_no_trial(tmp_path):
    process = writer(tmp_path / "t.sqlite")
    for _ in range(25):
        last = process.stdout.readline()
    process.kill()  # SIGKILL
    rest = process.stdout.read().split()
    process.wait()
    process.stderr.close()
    process.stdout.close()
    expect_kept(tmp_path / "t.sqlite", int([last, *rest][-1]) + 1)


class LyingRunner(LocalRunner):
    """This machine, whose clock says `said` of every candidate but the default."""

    def __init__(self, said):
        super().__init__()
        object.__setattr__(self, "said", said)

    def open(self):
        session, said = super().open(), self.said
        load = session.load_module

        def lying(name):
            module = load(name)

            def time_evaluator(function, device, number):
                if function == "candidate_0":
                    return lambda *args: SimpleNamespace(mean=1e-5)
                return lambda *args: SimpleNamespace(mean=said)

            return SimpleNamespace(time_evaluator=time_evaluator, get_function=module.get_function)

        session.load_module = lying
        return session


@pytest.mark.parametrize("said", [float("nan"), float("inf"), 0.0, -1e-6])
def test_times_that_are_none_are_errors_and_no_best(said, tmp_path):
    """NaN is neither slower nor faster, and a negative time would be the best for ever."""
    task, database = dense_task(), Database(tmp_path / "t.sqlite")
    with kernel_bench(task, LyingRunner(said), tmp_path, rounds=1) as bench:
        search = TaskSearch(task, database, bench)
        search.step(3)
    assert search.best == task.space.default
    assert database.best(task) is None
    kept = [t for t in database.trials(task, "local") if t.candidate != task.space.default]
    assert kept
    assert all(t.kind == "run" and "the device says that a run of" in t.error for t in kept)


def test_a_full_disk_ends_the_search_with_what_is_kept(tmp_path):
    pytest.importorskip("resource")
    output, errors = writer(tmp_path / "t.sqlite", limit=64 << 10).communicate(timeout=120)
    lines = output.splitlines()
    assert lines, errors
    assert "ended a trial cannot be written to" in lines[-1]
    assert "t.sqlite" in lines[-1]
    expect_kept(tmp_path / "t.sqlite", int(lines[-2]) + 1)


def test_a_disk_that_fills_while_candidates_are_compiled_ends_the_search(tmp_path, monkeypatch):
    """It is no candidate's fault, and each further one would meet it too."""
    task, database = dense_task(), Database(tmp_path / "t.sqlite")
    with kernel_bench(task, LocalRunner(), tmp_path, rounds=1) as bench:
        search = TaskSearch(task, database, bench)
        search.step(2)
        known = len(database.trials(task, "local"))

        def write(path, pieces):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))

        monkeypatch.setattr(link, "_write_object", write)
        with pytest.raises(TuningError, match=r"cannot be compiled: .*0\.o: No space left.*TMPDIR"):
            search.step(2)
    assert known >= 2
    assert len(database.trials(task, "local")) == known


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_database_that_is_removed_is_put_back(is_replaced, tmp_path, caplog):
    """A file that is written to lives on without a name: what came after would be lost."""
    task, path = dense_task(), tmp_path / "t.sqlite"
    default, *others = [task.space.default, *task.space.neighbours(task.space.default)][:3]
    with Database(path) as database:
        database.add(task, "local", [Measured(default, [2.0] * 3, 1.0)], verified=default)
        path.unlink()
        if is_replaced:
            with Database(path) as another:  # of a search that began since
                another.add(task, "local", [Measured(others[0], [1.5] * 3, 0.75)])
        database.add(task, "local", [Measured(others[1], [1.0] * 3, 0.5)], verified=others[1])
        assert "was removed or replaced while a search wrote to it" in caplog.text
        assert database.best(task).candidate == others[1]
    with Database(path) as again:
        scores = [t.score for t in again.trials(task, "local")]
        assert scores == ([0.75] if is_replaced else []) + [1.0, 0.5]
        assert again.best(task).candidate == others[1]
        assert again.records()


def test_a_database_that_another_program_holds_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "LOCKED_S", 0.2)
    task, path = dense_task(), tmp_path / "t.sqlite"
    with Database(path) as database, contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("begin exclusive")
        with pytest.raises(TuningError, match=r"database is locked\. Another program has held it"):
            database.add(task, "local", [Measured(task.space.default, [2.0], 1.0)])
        other.rollback()
        database.add(task, "local", [Measured(task.space.default, [2.0], 1.0)])
        other.close()
        with path.open("r+b") as file:
            file.write(bytes(range(256)) * 64)
        with pytest.raises(TuningError, match=r"put a copy back, or move it away"):
            for _ in range(3):
                database.trials(task, "local")
                database.add(task, "local", [Measured(task.space.default, [2.0], 1.0)])


def test_a_database_that_becomes_something_else_ends_the_search(tmp_path):
    task, path = dense_task(), tmp_path / "t.sqlite"
    with Database(path) as database:
        path.unlink()
        path.write_text("no database" * 100)
        with pytest.raises(TuningError, match=r"t\.sqlite is no database of trials"):
            database.add(task, "local", [Measured(task.space.default, [2.0], 1.0)])
    assert path.read_text().startswith("no database")


def test_a_database_where_nothing_can_be_written_is_not_called_damaged(tmp_path):
    (tmp_path / "t.sqlite").mkdir()
    with pytest.raises(TuningError, match=r"t\.sqlite cannot be opened for trials"):
        Database(tmp_path / "t.sqlite")


def test_a_tracker_that_restarts_ends_no_search(tmp_path):
    """The session goes on without it, and the next one comes from the new one."""
    task = dense_task()
    candidate = next(iter(task.space.neighbours(task.space.default)))
    first = tvm.rpc.Tracker("127.0.0.1", 0, silent=True)
    port = first.port
    runner = TrackerRunner("127.0.0.1", port, "board", max_devices=1, wait_s=60)
    server = tvm.rpc.Server(
        "127.0.0.1", 0, tracker_addr=("127.0.0.1", port), key="board", silent=True
    )
    try:
        with kernel_bench(task, runner, tmp_path, rounds=1) as bench:
            assert not any(m.kind for m in bench.measure([candidate]))
            first.terminate()
            assert not any(m.kind for m in bench.measure([candidate]))
        with tvm.rpc.Tracker("127.0.0.1", port, port + 1, silent=True) as again:
            assert again.port == port
            start = time.monotonic()
            with kernel_bench(task, runner, tmp_path, rounds=1) as bench:
                assert not any(m.kind for m in bench.measure([candidate]))
            assert time.monotonic() - start < 60
    finally:
        server.terminate()
        first.terminate()


def test_a_tracker_that_restarts_while_a_device_is_leased_gives_it_to_nobody_else(tmp_path):
    """The new tracker is told of the session; what is measured stays alone on the device."""
    task = dense_task()
    candidate = next(iter(task.space.neighbours(task.space.default)))
    first = tvm.rpc.Tracker("127.0.0.1", 0, silent=True)
    port = first.port
    runner = TrackerRunner("127.0.0.1", port, "board", max_devices=1, wait_s=60)
    server = tvm.rpc.Server(
        "127.0.0.1", 0, tracker_addr=("127.0.0.1", port), key="board", silent=True
    )
    try:
        with kernel_bench(task, runner, tmp_path, rounds=1) as bench:
            assert not any(m.kind for m in bench.measure([candidate]))
            first.terminate()
            with tvm.rpc.Tracker("127.0.0.1", port, port + 1, silent=True):
                farm = tvm.rpc.connect_tracker("127.0.0.1", port)
                until = time.monotonic() + 30
                while "board" not in farm.text_summary() and time.monotonic() < until:
                    time.sleep(0.1)
                with pytest.raises(RPCError, match="board"):  # it is there, and taken
                    farm.request("board", max_retry=1, timeout=2).close()
                assert not any(m.kind for m in bench.measure([candidate]))
                bench.__exit__()
                farm.request("board", session_timeout=30).close()  # free, once the lease is over
    finally:
        server.terminate()
        first.terminate()


class StoppedRunner(LocalRunner):
    """This machine, whose device stops for good once in the first session."""

    def __init__(self):
        super().__init__(timeout_s=1.5)
        object.__setattr__(self, "processes", [])

    def open(self):
        session = super().open()
        is_first = not self.processes
        self.processes.append(session._process)
        load = session.load_module

        def load_and_stop(name):
            module = load(name)
            if is_first:
                session._process.send_signal(signal.SIGSTOP)
            return module

        session.load_module = load_and_stop
        return session


def test_a_device_that_hangs_costs_a_session_and_no_trial(tmp_path):
    """Its batch is measured again, and what hung is ended, though it hears no signal but one."""
    task, database, runner = dense_task(), Database(tmp_path / "t.sqlite"), StoppedRunner()
    with kernel_bench(task, runner, tmp_path, rounds=1) as bench:
        assert TaskSearch(task, database, bench).step(2) == 2
    assert runner.processes[0].returncode == -signal.SIGKILL
    trials = database.trials(task, "local")
    assert len({t.candidate for t in trials}) == 2  # a duel of the best adds a row of its own
    assert not [t.error for t in trials if t.kind]


@contextlib.contextmanager
def changed_on_the_way(port, after, change):
    """Pass bytes on to the server at a port; what it answers is changed after so many bytes.

    Only the first connection is changed.  Yields the port to connect to.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    first = iter([True])

    def passed_on(source, sink, is_changed):
        left = after
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                left -= len(data)
                sink.sendall(change(data) if is_changed and left < 0 else data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def connected(client, is_changed):
        with client, socket.create_connection(("127.0.0.1", port)) as far:
            back = threading.Thread(target=passed_on, args=(far, client, is_changed))
            back.start()
            passed_on(client, far, False)
            back.join()

    def serve():
        with contextlib.suppress(OSError):
            while True:
                given = (listener.accept()[0], next(first, False))
                threading.Thread(target=connected, args=given, daemon=True).start()
                del given

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


CHANGES = {
    "noise": lambda data: bytes(byte ^ 0x5A for byte in data),
    "ones": lambda data: b"\xff" * len(data),
    "zeros": lambda data: bytes(len(data)),
    "half": lambda data: data[: len(data) // 2],
    "text": lambda data: b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
}


@pytest.mark.parametrize(
    ("change", "after"), [*((name, 400) for name in CHANGES), ("noise", 1100), ("half", 1100)]
)
def test_garbage_from_a_device_is_no_result_and_no_end(
    device, tmp_path, monkeypatch, change, after
):
    """The answers of one connection make no sense; the search goes on over the next."""
    monkeypatch.setattr(client, "STEP_TIMEOUT_S", 2.0)
    task, database = dense_task(), Database(tmp_path / "t.sqlite")
    with changed_on_the_way(device.port, after, CHANGES[change]) as port:
        runner = DeviceRunner("127.0.0.1", port, timeout_s=2.0, connect_s=2.0)
        with kernel_bench(task, runner, tmp_path, rounds=1) as bench:
            search = TaskSearch(task, database, bench)
            for _ in range(2):
                with contextlib.suppress(TuningError):
                    search.step(2)
                    break
    trials = database.trials(task, runner.device)
    assert {t.kind for t in trials} <= {"", "run"}
    assert [t for t in trials if not t.kind], [t.error for t in trials]
    assert all(0 < s < 60 for t in trials for s in t.seconds)


@pytest.mark.parametrize("after", [300, 900, 1500])
def test_an_answer_that_comes_too_late_is_none_of_the_next_call(device, tmp_path, after):
    """The device was given up by then: its batch is measured on another connection."""
    task, database = dense_task(), Database(tmp_path / "t.sqlite")
    waits = iter([3.0])

    def late(data):
        time.sleep(next(waits, 0.0))
        return data

    with changed_on_the_way(device.port, after, late) as port:
        runner = DeviceRunner("127.0.0.1", port, timeout_s=1.0, connect_s=10.0)
        with kernel_bench(task, runner, tmp_path, rounds=1) as bench:
            search = TaskSearch(task, database, bench)
            for _ in range(3):
                with contextlib.suppress(TuningError):
                    search.step(2)
    assert next(waits, None) is None, "no answer was late"
    trials = database.trials(task, runner.device)
    assert {t.kind for t in trials} <= {"", "run"}
    assert len([t for t in trials if not t.kind]) >= 4
    assert all(0 < s < 1 for t in trials for s in t.seconds)


@pytest.fixture(scope="module")
def device():
    server = tvm.rpc.Server("127.0.0.1", 0, silent=True)
    yield server
    server.terminate()


RESUMED = """
import importlib.util, sys
from pathlib import Path
from slipway.tuning.database import Database
from slipway.tuning.runner import LocalRunner
from slipway.tuning.tune import Budget, tune_tasks
spec = importlib.util.spec_from_file_location("faults", {here!r})
faults = importlib.util.module_from_spec(spec)
spec.loader.exec_module(faults)
tune_tasks([faults.dense_task()], LocalRunner(), Database({path!r}), Budget(64, batch=2),
           lambda progress: print(progress.trials, flush=True))
"""


def test_a_search_that_is_killed_goes_on_where_it_was(tmp_path):
    """No trial is lost or made twice, and what had won stays the best until something beats it."""
    path = tmp_path / "t.sqlite"
    program = RESUMED.format(here=__file__, path=str(path))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as tuner:
        told = [int(tuner.stdout.readline()) for _ in range(2)][-1]
        tuner.kill()
    task, database = dense_task(), Database(path)
    kept, best = database.trials(task, "local"), database.best(task, "local")
    assert len(kept) >= told >= 3
    with kernel_bench(task, LocalRunner(), tmp_path, rounds=1) as bench:
        search = TaskSearch(task, database, bench)
        assert search.best == (best.candidate if best else task.space.default)
        measured = []
        measure = bench.measure
        bench.measure = lambda batch, *a, **k: measured.append(batch) or measure(batch, *a, **k)
        beaten = {t.candidate for t in kept if t.score >= search.best_score}
        assert search.step(2) == 2
    assert not beaten & set(measured[0])  # but one whose duel the kill prevented has it now
    assert len(database.trials(task, "local")) >= len(kept) + 2


def loops_of(task, bodies):
    """A subject whose candidates are functions of loops, by the rows that each writes."""

    class Loops(KernelSubject):
        def job(self, candidates):
            return LoopsJob.of(task.target, candidates, self.lowered)

        def lowered(self, candidate, name):
            if candidate not in bodies:
                return KernelJob(task.function, task.target, task.op, {candidate: {}}).lowered(
                    candidate, name
                )
            return bodies[candidate].with_attr("global_symbol", name)

    return Loops(task)


def test_a_candidate_that_leaves_results_of_others_computes_nothing(tmp_path):
    """What the default wrote lies there yet: it must not pass for the candidate's own."""
    task = dense_task()
    lazy = next(iter(task.space.neighbours(task.space.default)))

    @T.prim_func
    def writes_one(
        x: T.Buffer((3, 40), "float32"),
        w: T.Buffer((24, 40), "float32"),
        y: T.Buffer((3, 24), "float32"),
    ):
        for i in range(1):
            y[i, 0] = T.max(x[i, 0] * w[i, 0], y[i, 0])

    subject = loops_of(task, {lazy: writes_one})
    database = Database(tmp_path / "t.sqlite")
    with Bench(task, subject, LocalRunner(), tmp_path, rounds=3) as bench:
        search = TaskSearch(task, database, bench)
        search.attempt([lazy])
        assert "off by inf" in bench.verify(lazy)
        assert bench.verify(task.space.default) == ""
    assert database.best(task) is None
    assert search.best == task.space.default


class FlakyRunner(LocalRunner):
    """This machine, which gives wrong numbers for a function in one of so many runs."""

    def __init__(self, one_in, only=""):
        super().__init__()
        object.__setattr__(self, "faults", (one_in, only))

    def open(self):
        session, (one_in, only) = super().open(), self.faults
        load, runs = session.load_module, iter(range(1, 1_000_000))

        def loaded(name):
            module = load(name)

            def get_function(function):
                run = module.get_function(function)

                def flaky(*arguments):
                    run(*arguments)
                    if function.endswith(only) and next(runs) % one_in == 0:
                        wrong = arguments[-1].numpy()
                        wrong.flat[0] += 100
                        arguments[-1].copyfrom(wrong)

                return flaky

            return SimpleNamespace(time_evaluator=module.time_evaluator, get_function=get_function)

        session.load_module = loaded
        return session


def test_a_device_that_is_wrong_now_and_then_ends_the_search(tmp_path):
    """Nothing that is found there would hold, and no candidate is to blame."""
    task = dense_task()
    candidate = next(iter(task.space.neighbours(task.space.default)))
    with (
        kernel_bench(task, FlakyRunner(7), tmp_path, rounds=1) as bench,
        pytest.raises(TuningError, match=r"wrong numbers now and then.*right in \d+ of \d+ runs"),
    ):
        bench.verify(candidate)


def test_a_candidate_that_is_wrong_in_one_of_many_runs_is_wrong(tmp_path):
    """A race shows rarely: one run that was right says little."""
    task = dense_task()
    candidate = next(iter(task.space.neighbours(task.space.default)))
    with kernel_bench(task, FlakyRunner(5, "candidate_1"), tmp_path, rounds=1) as bench:
        assert "in run 5, output 0 is off by" in bench.verify(candidate)
        assert bench.verify(task.space.default) == ""


def test_a_device_that_starts_again_is_waited_for(tmp_path):
    """Its server is killed in the midst of a search and comes back: no candidate is to blame."""
    task, database = dense_task(), Database(tmp_path / "t.sqlite")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    servers = [tvm.rpc.Server("127.0.0.1", port, port + 1, silent=True)]
    runner = DeviceRunner("127.0.0.1", port, connect_s=2.0)

    def again():
        time.sleep(1.5)
        servers.append(tvm.rpc.Server("127.0.0.1", port, port + 1, silent=True))

    try:
        with kernel_bench(task, runner, tmp_path, rounds=1) as bench:
            search = TaskSearch(task, database, bench)
            assert search.step(2) == 2
            servers[0].terminate()
            starting = threading.Thread(target=again)
            starting.start()
            assert search.step(3) == 3
            starting.join()
    finally:
        for server in servers:
            server.terminate()
    assert not [t.error for t in database.trials(task, runner.device) if t.kind]


def test_a_device_that_never_was_there_is_not_waited_for(tmp_path):
    start = time.monotonic()
    with (
        kernel_bench(dense_task(), DeviceRunner("127.0.0.1", 9), tmp_path) as bench,
        pytest.raises(TuningError, match=r"no session with 127\.0\.0\.1:9 for .*cannot connect"),
    ):
        bench.measure([])
    assert time.monotonic() - start < 20


def test_a_device_that_is_lost_at_the_last_word_makes_nothing_wrong():
    """A winner whose results could not be seen is no wrong one: the device is at fault."""
    one = Measured(dense_task().space.default, [1.0], 0.5)

    def lost():
        raise RPCConnectionError("the device is gone")

    assert not judge(one, lost)
    assert (one.kind, one.error) == ("run", "RPCConnectionError: the device is gone")
    assert judge(Measured(one.candidate, [1.0], 0.5), lambda: "")
