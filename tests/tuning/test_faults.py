"""What a night of tuning meets: the tuner is killed, the disk fills, the tracker restarts."""

import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import TuningError
from slipway.tuning.database import Database
from slipway.tuning.measure import kernel_bench
from slipway.tuning.runner import LocalRunner, TrackerRunner
from slipway.tuning.search import TaskSearch
from slipway.tuning.task import extract_tasks

WRITER = """
import resource, sys
from slipway.errors import TuningError
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
    with kernel_bench(task, LyingRunner(said), tmp_path, turns=1) as bench:
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
        with kernel_bench(task, runner, tmp_path, turns=1) as bench:
            assert not any(m.kind for m in bench.measure([candidate]))
            first.terminate()
            assert not any(m.kind for m in bench.measure([candidate]))
        with tvm.rpc.Tracker("127.0.0.1", port, port + 1, silent=True) as again:
            assert again.port == port
            start = time.monotonic()
            with kernel_bench(task, runner, tmp_path, turns=1) as bench:
                assert not any(m.kind for m in bench.measure([candidate]))
            assert time.monotonic() - start < 60
    finally:
        server.terminate()
        first.terminate()
