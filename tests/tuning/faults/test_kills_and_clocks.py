"""Tuners that share a database and are killed, modelled cores that are, clocks that are set."""

import shutil
import signal
import subprocess
import sys
import time

import pytest

import slipway as tvm
from slipway import relay
from slipway.tuning.database import Database
from slipway.tuning.measure import Measured, kernel_bench
from slipway.tuning.runner import ModelledRunner
from slipway.tuning.search import TaskSearch
from slipway.tuning.task import extract_tasks

WRITER = """
import importlib.util, itertools
from slipway.tuning.database import Database
from slipway.tuning.measure import Measured
spec = importlib.util.spec_from_file_location("shared", {here!r})
shared = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shared)
task, database = shared.dense_task(), Database({path!r})
default = task.space.default
for number in itertools.count():
    score = {best} / (number + 2)
    database.add(task, "local", [Measured(default, [score] * 9, score)], verified=default)
    print(score, flush=True)
"""


def dense_task(target="llvm"):
    x, w = relay.var("x", shape=(3, 40)), relay.var("w", shape=(24, 40))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    return next(t for t in extract_tasks(module, target) if "dense" in t.op)


def writer(path, best):
    program = WRITER.format(here=__file__, path=str(path), best=best)
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


def test_of_two_tuners_on_one_file_the_one_that_is_left_goes_on(tmp_path):
    """What either told is there, and the best is the best of both."""
    path = tmp_path / "t.sqlite"
    with writer(path, 1.0) as one, writer(path, 0.5) as other:
        told = [float(p.stdout.readline()) for p in (one, other) for _ in range(6)]
        one.kill()  # SIGKILL, in the middle of whatever it does
        told += map(float, one.stdout.read().split())
        told += [float(other.stdout.readline()) for _ in range(20)]
        other.kill()
        told += map(float, other.stdout.read().split())
    with Database(path) as database:
        task = dense_task()
        trials = database.trials(task, "local")
        kept = [t.score for t in trials]
        assert sorted(kept)[-len(told) :] == pytest.approx(sorted(told))  # and two untold at most
        assert len(kept) <= len(told) + 2
        assert database.best(task).score == min(kept)


class KilledOnce(ModelledRunner):
    """A modelled core whose emulator is killed once, when its first library has been loaded."""

    def __init__(self):
        super().__init__("cortex-a53")
        object.__setattr__(self, "processes", [])

    def open(self):
        session = super().open()
        self.processes.append(session._process)
        load = session.load_module

        def load_and_die(name):
            module = load(name)
            if len(self.processes) == 1:
                session._process.send_signal(signal.SIGKILL)
            return module

        session.load_module = load_and_die
        return session


@pytest.mark.skipif(shutil.which("qemu-aarch64") is None, reason="qemu-aarch64 is missing")
def test_a_modelled_core_that_is_killed_costs_no_candidate(tmp_path):
    runner = KilledOnce()
    task, database = dense_task(runner.target), Database(tmp_path / "t.sqlite")
    with kernel_bench(task, runner, tmp_path) as bench:
        search = TaskSearch(task, database, bench)
        assert search.step(3) == 3
    assert len(runner.processes) > 1
    trials = database.trials(task, runner.device)
    assert len({t.candidate for t in trials}) == 3
    assert not [t.error for t in trials if t.kind]


def test_a_clock_that_is_set_back_changes_no_order(tmp_path, monkeypatch):
    """A board without a battery begins in 1970: trials are in the order in which they were made."""
    task, path = dense_task(), tmp_path / "t.sqlite"
    default, *others = [task.space.default, *task.space.neighbours(task.space.default)][:3]
    with Database(path) as database:
        for clock, candidate, score in zip(
            (time.time(), 12.0, time.time() + 1e9), (default, *others), (1.0, 0.7, 0.8), strict=True
        ):
            monkeypatch.setattr(time, "time", lambda clock=clock: clock)
            database.add(task, "local", [Measured(candidate, [score], score)], verified=candidate)
    with Database(path) as again:
        assert [t.candidate for t in again.trials(task, "local")] == [default, *others]
        assert again.best(task).candidate == others[0]
        assert again.records()
