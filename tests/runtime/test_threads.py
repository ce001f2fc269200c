import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import slipway as tvm
from slipway import nd, te
from slipway.runtime import num_threads, set_num_threads
from slipway.runtime.libraries.native_library import native_runtime
from slipway.script import tir as T

BODY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)


@pytest.fixture(autouse=True)
def restore():
    yield
    set_num_threads(0)


def launch(body, tasks):
    return native_runtime().lib.slw_parallel_launch(BODY(body), None, tasks)


def run_counting(tasks):
    seen = []

    def body(closure, task, total):
        seen.append((task, total))
        return 0

    assert launch(body, tasks) == 0
    return sorted(seen)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_task_runs_once(threads):
    set_num_threads(threads)
    assert num_threads() == threads
    for tasks in (1, 2, 7, 64):
        assert run_counting(tasks) == [(i, tasks) for i in range(tasks)]


def test_zero_tasks_means_one_per_thread():
    set_num_threads(3)
    assert run_counting(0) == [(i, 3) for i in range(3)]


def test_more_tasks_than_a_claim_word_holds():
    set_num_threads(2)
    count = [0]

    def body(closure, task, total):
        count[0] += 1
        return 0

    assert launch(body, 70_000) == 0
    assert count[0] == 70_000


def test_nested_launch_runs_in_its_task():
    set_num_threads(2)
    inner = []

    def body(closure, task, total):
        return launch(lambda c, t, n: inner.append((task, t)) or 0, 3)

    assert launch(body, 2) == 0
    assert sorted(inner) == [(o, i) for o in range(2) for i in range(3)]


def test_a_failing_task_fails_the_launch():
    set_num_threads(2)
    lib = native_runtime().lib
    lib.slw_error_message.restype = ctypes.c_char_p

    def body(closure, task, total):
        if task == 3:
            lib.slw_error_set(b"ValueError", b"task three")
            return -1
        return 0

    assert launch(body, 8) == -1
    assert lib.slw_error_message() == b"task three"


def test_launches_from_many_threads():
    set_num_threads(2)
    results = []

    def many():
        results.append(all(len(run_counting(4)) == 4 for _ in range(50)))

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_out_of_range_is_an_error():
    with pytest.raises(ValueError, match="0 to 256"):
        set_num_threads(1000)


def test_environment_sets_the_default():
    code = "from slipway.runtime import num_threads; print(num_threads())"
    env = {**os.environ, "SLIPWAY_NUM_THREADS": "7"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.stdout.strip() == "7", done.stderr


def test_forked_child_has_a_pool_of_its_own():
    code = """
import os, sys
sys.path.insert(0, %r)
import test_threads as t
t.set_num_threads(2)
assert len(t.run_counting(8)) == 8
pid = os.fork()
assert len(t.run_counting(8)) == 8
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    folder = os.path.dirname(__file__)  # noqa: PTH120
    subprocess.run([sys.executable, "-c", code % folder], check=True, timeout=60)


def thread_ids():
    return {int(path.name) for path in Path("/proc/self/task").iterdir()}


def test_several_callers_share_one_set_of_workers():
    """Four threads that launch at once add one pool's workers to themselves, no more."""
    set_num_threads(3)
    before = thread_ids()
    threads_seen = set()
    gate = threading.Barrier(4)

    def body(closure, task, total):
        threads_seen.add(threading.get_native_id())
        return 0

    def many():
        gate.wait()
        for _ in range(100):
            assert launch(body, 8) == 0

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    callers = {thread.native_id for thread in threads}
    for thread in threads:
        thread.join()
    assert len(threads_seen - callers) <= 2
    assert len(thread_ids() - before - callers) <= 2


def test_fork_while_another_thread_launches():
    """The child's pool is whole, whatever the other thread was doing at that moment."""
    code = """
import os, sys, threading
sys.path.insert(0, %r)
import test_threads as t
t.set_num_threads(2)
stop = []
def busy():
    while not stop:
        t.launch(lambda c, k, n: 0, 8)
other = threading.Thread(target=busy)
other.start()
for _ in range(15):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if t.run_counting(8) == [(i, 8) for i in range(8)] else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop.append(1)
other.join()
"""
    folder = os.path.dirname(__file__)  # noqa: PTH120
    run = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code % folder]
    subprocess.run(run, check=True, timeout=60)


def test_a_launch_costs_less_than_five_microseconds():
    """What two threads take longer than one for the same work, also where the other is busy."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor only")
    x = te.placeholder((2, 16384), name="x")
    y = te.compute(x.shape, lambda i, j: te.exp(x[i, j]), name="y")
    schedule = te.create_schedule(y.op)
    schedule[y].parallel(y.op.axis[0])
    schedule[y].vectorize(schedule[y].split(y.op.axis[1], 8)[1])
    function = tvm.build(schedule, [x, y], "llvm", name="halves")
    arrays = nd.array(np.zeros((2, 16384), "float32")), nd.empty((2, 16384), "float32")
    best = {}
    for threads in (1, 2):
        set_num_threads(threads)
        timer = function.time_evaluator("halves", tvm.cpu(0), number=20, repeat=200)
        best[threads] = min(timer(*arrays).results)
    assert best[2] < best[1] + 5e-6


@T.prim_func
def doubled(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
    for i in T.parallel(64):
        assert x[i] >= T.float32(0), "a number is below zero"
        y[i] = x[i] * T.float32(2)


@pytest.mark.parametrize("threads", [1, 3])
def test_what_a_task_asserts_is_said_whoever_met_it(threads):
    built = tvm.build(tvm.IRModule({"doubled": doubled}), target="llvm")
    y = tvm.nd.empty((64,))
    set_num_threads(threads)
    for bad in (0, 31, 63):
        x = np.arange(64, dtype="float32")
        x[bad] = -1
        with pytest.raises(AssertionError, match="a number is below zero"):
            built["doubled"](tvm.nd.array(x), y)
    built["doubled"](tvm.nd.array(np.arange(64, dtype="float32")), y)
    np.testing.assert_array_equal(y.numpy(), 2 * np.arange(64))
