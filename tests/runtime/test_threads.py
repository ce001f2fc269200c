import ctypes
import os
import subprocess
import sys
import threading

import pytest

from slipway.runtime import num_threads, set_num_threads
from slipway.runtime.native_library import native_runtime

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
