"""Where candidates are compiled: what is built is the same, and a place that dies costs little."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import auto_scheduler, autotvm, meta_schedule, relay, te
from slipway.errors import CodegenError, TuningError
from slipway.transform.context import PassContext
from slipway.tuning import build_processes, builders
from slipway.tuning.build import Built, compile_together
from slipway.tuning.build_cluster import builder_of
from slipway.tuning.builders import Builder, ExecutorBuilder, PoolBuilder
from slipway.tuning.database import Database
from slipway.tuning.measure import KernelSubject, kernel_bench
from slipway.tuning.runner import LocalRunner
from slipway.tuning.search import TaskSearch
from slipway.tuning.session import MeasuringSession
from slipway.tuning.space import candidate_of
from slipway.tuning.task import extract_tasks

# What a test's candidates do in the process that compiles them.
JOBS = """
import os, signal, time
from slipway.errors import ScheduleError
from slipway.tuning.build import Built
class Job:
    def __init__(self, candidates):
        self.candidates = candidates
    def run(self, path):
        built = Built(path)
        path.write_bytes(b"code")
        for number, candidate in enumerate(self.candidates):
            if candidate.strategy == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            if candidate.strategy == "hangs":
                time.sleep(600)
            if candidate.strategy == "breaks":
                raise ZeroDivisionError("a defect")
            if candidate.strategy == "ends":
                print("last words", flush=True)
                os._exit(3)
            if candidate.strategy == "refused":
                built.errors[candidate] = "ScheduleError: no"
            else:
                built.functions[candidate] = f"f{number}"
        return built
"""


class Subject:
    """Candidates that do what they are called."""

    is_portable = True

    def __init__(self, module):
        self.job = module.Job


@pytest.fixture
def subject(tmp_path, monkeypatch):
    (tmp_path / "jobs_of_a_test.py").write_text(JOBS)
    monkeypatch.syspath_prepend(str(tmp_path))
    import jobs_of_a_test

    yield Subject(jobs_of_a_test)
    del sys.modules["jobs_of_a_test"]


@pytest.fixture(scope="module")
def task():
    x, w = relay.var("x", shape=(3, 40)), relay.var("w", shape=(24, 40))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    return next(t for t in extract_tasks(module, "llvm") if "dense" in t.op)


@pytest.fixture(scope="module")
def pool():
    with PoolBuilder(2) as made:
        yield made


def called(*names):
    return [candidate_of(name, {"number": i}) for i, name in enumerate(names)]


def test_what_a_process_builds_is_what_this_one_builds(task, pool, tmp_path):
    candidates = [task.space.default, *list(task.space.neighbours(task.space.default))[:3]]
    subject = KernelSubject(task)
    with PassContext(opt_level=3):
        here = Builder().build(subject, candidates, tmp_path / "here.o", together=True)
        there = pool.build(subject, candidates, tmp_path / "there.o", together=True)
        apart = pool.build(subject, candidates, tmp_path / "apart.o", together=False)
    assert list(here.functions) == list(there.functions)
    assert (tmp_path / "here.o").read_bytes() == (tmp_path / "there.o").read_bytes()
    assert set(apart.functions) == set(here.functions)
    assert len({f.path for f in apart.functions.values()}) == 2


def test_llvm_has_the_candidates_time_in_this_process_too(task, tmp_path, monkeypatch):
    monkeypatch.setenv("SLIPWAY_KERNEL_CACHE", "0")  # what is known takes no time
    one = task.space.default
    with PassContext(opt_level=3):
        built = Builder(1e-4).build(KernelSubject(task), [one], tmp_path / "here.o", together=True)
    assert not built.functions
    assert "still compiling" in built.errors[one]
    assert "after 0.0001 s" in built.errors[one]


def test_a_search_finds_the_same_with_several_processes(task, pool, tmp_path, monkeypatch):
    """The device's clock is a function of the candidate here, so scores can be compared."""

    def times(self, functions, rounds):
        assert all(f.path.exists() for f in functions.values())
        results = next(self.results(next(iter(functions.values()))))
        assert len(results) == 1  # it can be loaded and run
        return {c: [1e-3 * (1 + hash_of(c) % 100)] * rounds for c in functions}

    monkeypatch.setattr(MeasuringSession, "times", times)
    found = []
    for builder in (None, pool):
        database = Database(tmp_path / f"{len(found)}.sqlite")
        with kernel_bench(task, LocalRunner(), tmp_path, rounds=2, builder=builder) as bench:
            search = TaskSearch(task, database, bench)
            for _ in range(2):
                search.step(4)
        trials = {t.candidate: (t.score, t.kind) for t in database.trials(task, "local")}
        found.append((search.best, search.best_score, trials))
    assert found[0] == found[1]
    assert found[0][0] != task.space.default


def hash_of(candidate):
    return int.from_bytes(candidate.text.encode(), "little") % 65521


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("dies", "ended by SIGKILL, perhaps for want of memory"),
        ("hangs", "took more than 0.5 s"),
        ("breaks", "ZeroDivisionError: a defect"),
        ("ends", "ended with status 3: last words"),
    ],
)
def test_a_candidate_that_takes_its_process_along_is_told_apart(
    subject, pool, tmp_path, monkeypatch, kind, said
):
    good = called("good", kind, "refused", "other", "last")
    if kind == "hangs":
        monkeypatch.setattr(pool, "limit_s", 0.5)
        monkeypatch.setattr(build_processes, "START_S", 4.0)
    batch = pool.build(subject, good, tmp_path / "x.so", together=False)
    assert {c.strategy for c in batch.functions} == {"good", "other", "last"}
    assert {c.strategy for c in batch.errors} == {kind, "refused"}
    assert said in batch.errors[good[1]]
    assert all(f.path.read_bytes() == b"code" for f in batch.functions.values())


def test_ctrl_c_ends_the_processes_at_work(subject, tmp_path):
    with PoolBuilder(2) as builder:
        builder.build(subject, called("a", "b"), tmp_path / "first.so", together=False)
        pids = [p.process.pid for p in builder.processes._stock.all]
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            builder.build(subject, called("hangs", "hangs"), tmp_path / "x.so", together=False)
    assert len(pids) == 2
    until_gone(pids)


def until_gone(pids):
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}/cmdline").exists() and not is_zombie(pid) for pid in pids):
        assert time.monotonic() < deadline, "a process is left"
        time.sleep(0.02)


def is_zombie(pid):
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def test_a_tuner_that_is_killed_leaves_no_process(subject, tmp_path):
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import threading, jobs_of_a_test
from pathlib import Path
from slipway.tuning.builders import PoolBuilder
from slipway.tuning.space import candidate_of
class Subject: is_portable, job = True, jobs_of_a_test.Job
builder = PoolBuilder(2)
first = Path({str(tmp_path)!r}) / "a.so"
builder.build(Subject, [candidate_of(n, {{}}) for n in "ab"], first, False)
print(*[p.process.pid for p in builder.processes._stock.all], flush=True)
builder.build(Subject, [candidate_of("hangs", {{"n": n}}) for n in (1, 2)], Path("b.so"), False)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as tuner:
        pids = list(map(int, tuner.stdout.readline().split()))
        assert len(pids) == 2
        tuner.kill()
    until_gone(pids)


class Elsewhere(Executor):
    """Workers on other machines, which answer what they are told to."""

    def __init__(self, result):
        self.result = result

    def submit(self, function, /, version, message, limit_s):
        found = Future()
        try:
            found.set_result(self.result(version, message, limit_s))
        except Exception as error:
            found.set_exception(error)
        return found


def raising(error):
    def raised(*arguments):
        raise error

    return raised


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (
            lambda version, *rest: build_processes.answer("0.0.7", *rest),
            r"a worker of the farm is of another version: .* has slipway [\d.]+, and this is",
        ),
        (
            raising(ModuleNotFoundError("No module named 'slipway'")),
            r"the workers of the farm cannot compile for this process \(No module named 'slipway'\)"
            ": install slipway",
        ),
    ],
)
def test_a_worker_of_another_version_is_one_clear_error(task, tmp_path, result, said):
    builder = ExecutorBuilder(Elsewhere(result), lambda: 2, "the farm")
    with (
        kernel_bench(task, LocalRunner(), tmp_path, rounds=1, builder=builder) as bench,
        pytest.raises(TuningError, match=said),
    ):
        TaskSearch(task, Database(tmp_path / "t.sqlite"), bench).step(4)


def test_workers_that_are_lost_are_an_error_of_their_candidates(subject, tmp_path):
    def lost_with_the_second(version, message, limit_s):
        if b"second" in message:
            raise ConnectionError("the worker went away")
        return builders.answer(version, message, limit_s)

    builder = ExecutorBuilder(Elsewhere(lost_with_the_second), lambda: 1, "the farm")
    batch = builder.build(subject, called("first", "second"), tmp_path / "x.so", together=False)
    assert [c.strategy for c in batch.functions] == ["first"]
    assert [*batch.errors.values()] == ["the farm: ConnectionError: the worker went away"]


def test_a_strategy_of_a_script_is_compiled_where_the_script_is(task, tmp_path, monkeypatch):
    """Processes that have not run the script know nothing of it."""
    assert KernelSubject(task).is_portable
    name, entry = next(iter(task.space.strategies.items()))
    own = replace(entry, schedule=lambda *given: entry.schedule(*given))
    monkeypatch.setitem(task.space.strategies, name, own)
    assert not KernelSubject(task).is_portable
    nowhere = ExecutorBuilder(Elsewhere(raising(AssertionError("asked"))), lambda: 2, "the farm")
    batch = nowhere.build(KernelSubject(task), [task.space.default], tmp_path / "x.o", False)
    assert not batch.errors


def test_options_that_cannot_travel_are_compiled_here(task, pool, tmp_path, caplog):
    config = {"tir.add_lower_pass": [(1, lambda f: f)]}
    with PassContext(opt_level=3, config=config):
        batch = pool.build(KernelSubject(task), [task.space.default], tmp_path / "x.o", False)
    assert not batch.errors
    assert "compiled in this process, not by the processes here: " in caplog.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0", "at least one process"),
        ("many", "write a number of processes here, dask://HOST:8786"),
        ("dask://", "dask://HOST:8786"),
        ("spark://h:1", "ray://HOST:10001"),
    ],
)
def test_builders_that_are_none_are_said(text, said):
    with pytest.raises(TuningError, match=said):
        builder_of(text)


@pytest.mark.parametrize(("scheme", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_package_is_said_with_what_to_install(scheme, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TuningError, match=rf"pip install 'slipway-ml\[{scheme}\]'"):
        builder_of(f"{scheme}://127.0.0.1:1")


def test_numbers_of_classic_builders_reach_the_engine():
    assert type(meta_schedule.builder.LocalBuilder().builder) is Builder
    for given in (
        meta_schedule.builder.LocalBuilder(max_workers=3, timeout_sec=7).builder,
        autotvm.LocalBuilder(n_parallel=3, timeout=7).builder,
        auto_scheduler.TuningOptions(
            builder=auto_scheduler.LocalBuilder(n_parallel=3, timeout=7)
        ).measuring.builder.builder,
    ):
        assert isinstance(given, PoolBuilder)
        assert (given._count(), given.limit_s) == (3, 7)
        given.close()


@autotvm.template("builders/sum")
def a_template(n):
    a = te.placeholder((n, 16), name="a")
    k = te.reduce_axis((0, 16))
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="b")
    schedule = te.create_schedule(b.op)
    config = autotvm.get_config()
    config.define_split("tile", b.op.axis[0], num_outputs=2)
    config["tile"].apply(schedule, b, b.op.axis[0])
    return schedule, [a, b]


def test_a_template_of_a_script_is_lowered_here_and_compiled_there(pool, tmp_path):
    task = autotvm.task.create("builders/sum", args=(12,), target="llvm")
    candidates = [task.config_space.candidate(i) for i in range(4)]
    batch = pool.build(task, candidates, tmp_path / "x.so", together=False)
    assert set(batch.functions) == set(candidates)
    data = np.arange(12 * 16, dtype="float32").reshape(12, 16)
    for function in batch.functions.values():
        out = tvm.nd.array(np.zeros(12, "float32"))
        tvm.runtime.load_module(str(function.path))[function.name](tvm.nd.array(data), out)
        np.testing.assert_allclose(out.numpy(), data.sum(1))


def test_the_default_is_compiled_however_long_it_takes(tmp_path):
    """On a loaded machine the seconds for a candidate may be too few: that ends no search."""
    x, w = relay.var("x", shape=(4, 24)), relay.var("w", shape=(21, 24))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    task = next(t for t in extract_tasks(module, "llvm") if "dense" in t.op)
    other = next(iter(task.space.neighbours(task.space.default)))
    with kernel_bench(task, LocalRunner(), tmp_path, 1, Builder(1e-9)) as bench:
        found = {m.candidate: m for m in bench.measure([other])}
    assert found[task.space.default].seconds
    assert found[other].kind == "build"
    assert "was still compiling" in found[other].error


class Exported:
    """Stands for compiled functions."""

    def __init__(self, names):
        self.names = names

    def export_library(self, path):
        Path(path).write_text(" ".join(self.names))


@pytest.mark.parametrize(
    ("bad", "together", "left"),
    [
        ((), 9, "f0 f1 f2"),
        (("f1",), 9, "f0 f2"),
        (("f0", "f1", "f2"), 9, None),
        ((), 1, "f0"),  # a busy machine: each by itself is in time, all together are not
        (("f0",), 1, "f1"),
    ],
)
def test_what_is_refused_in_company_alone_costs_no_search(bad, together, left, tmp_path):
    def compile_loops(loops):
        if len(loops) > together or set(loops) & set(bad):
            raise CodegenError("LLVM was still compiling after 10 s, and was ended")
        return Exported(loops)

    candidates = [candidate_of("plain", {"n": n}) for n in range(3)]
    built = Built(None, {c: f"f{n}" for n, c in enumerate(candidates)})
    path = tmp_path / "library"
    compile_together(built, {f"f{n}": n for n in range(3)}, path, compile_loops)
    assert built.path == (path if left else None)
    assert " ".join(built.functions.values()) == (left or "")
    assert set(built.functions) | set(built.errors) == set(candidates)
    assert all("after 10 s" in text for text in built.errors.values())
    if left:
        assert path.read_text() == left
