"""Candidates compiled on a cluster of Dask: a scheduler and workers that are processes here."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import slipway as tvm
from slipway import relay
from slipway.errors import TuningError
from slipway.tuning import build_cluster
from slipway.tuning.database import Database
from slipway.tuning.measure import kernel_bench
from slipway.tuning.runner import LocalRunner
from slipway.tuning.search import TaskSearch
from slipway.tuning.task import extract_tasks

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # what distributed warns of is not ours

SCHEDULER = """
import asyncio
from distributed import Scheduler
async def serve():
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(serve())
"""
WORKER = """
import asyncio, sys
from distributed import Worker
async def serve():
    async with Worker(sys.argv[1], nthreads=1, dashboard=False) as worker:
        print(worker.address, flush=True)
        await worker.finished()
asyncio.run(serve())
"""


@contextlib.contextmanager
def started(program, *arguments, version=""):
    """Run a program and yield (process, what it says first)."""
    if version:
        program = f"import slipway.version\nslipway.version.VERSION = {version!r}\n{program}"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, text=True
    ) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture(scope="module")
def scheduler():
    with started(SCHEDULER) as (_, address):
        yield address.removeprefix("tcp://")


@pytest.fixture(scope="module")
def task():
    x, w = relay.var("x", shape=(64, 96)), relay.var("w", shape=(80, 96))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    return next(t for t in extract_tasks(module, "llvm") if "dense" in t.op)


def test_a_search_over_dask_outlives_a_worker(scheduler, task, tmp_path):
    database = Database(tmp_path / "t.sqlite")
    with (
        started(WORKER, scheduler) as (first, _),
        build_cluster.builder_of(f"dask://{scheduler}") as builder,
        kernel_bench(task, LocalRunner(), tmp_path, rounds=1, builder=builder) as bench,
    ):
        search = TaskSearch(task, database, bench)
        assert search.step(4) == 4
        assert builder._count() == 1
        first.send_signal(signal.SIGKILL)
        with started(WORKER, scheduler):
            assert search.step(3) == 3
    trials = database.trials(task, "local")
    assert len(trials) >= 7
    assert not [t.error for t in trials if t.kind]


def test_a_worker_of_another_version_is_one_clear_error(scheduler, task, tmp_path):
    with (
        started(WORKER, scheduler, version="0.0.7"),
        build_cluster.builder_of(f"dask://{scheduler}") as builder,
        kernel_bench(task, LocalRunner(), tmp_path, rounds=1, builder=builder) as bench,
        pytest.raises(TuningError, match=r"of another version: .* has slipway 0\.0\.7, and this"),
    ):
        TaskSearch(task, Database(tmp_path / "t.sqlite"), bench).step(2)


def test_no_scheduler_and_no_worker_are_said(scheduler, monkeypatch):
    monkeypatch.setattr(build_cluster, "CONNECT_S", 0.5)
    with pytest.raises(TuningError, match=r"dask://127\.0\.0\.1:1: no scheduler of Dask answers"):
        build_cluster.builder_of("dask://127.0.0.1:1")
    with pytest.raises(TuningError, match="the scheduler has no worker; start `dask worker`"):
        build_cluster.builder_of(f"dask://{scheduler}")


def test_a_scheduler_that_goes_away_is_an_error_in_words(task, tmp_path, monkeypatch):
    monkeypatch.setattr(build_cluster, "CONNECT_S", 5.0)  # for which Dask tries again, too
    with started(SCHEDULER) as (process, address), started(WORKER, address):
        host = address.removeprefix("tcp://")
        with (
            build_cluster.builder_of(f"dask://{host}") as builder,
            kernel_bench(task, LocalRunner(), tmp_path, rounds=1, builder=builder) as bench,
        ):
            process.kill()
            process.wait()
            start = time.monotonic()
            with pytest.raises(TuningError, match=re.escape(f"dask://{host}")):
                TaskSearch(task, Database(tmp_path / "t.sqlite"), bench).step(2)
            assert time.monotonic() - start < 60
