"""Threads bound to processors, here and on a device."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import pytest

import slipway as tvm
from slipway.runtime import config_threadpool, num_threads
from slipway.runtime.libraries.native_library import native_runtime

BODY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
ALLOWED = sorted(os.sched_getaffinity(0))

pytestmark = pytest.mark.skipif(len(ALLOWED) < 2, reason="this machine lends one processor only")


@pytest.fixture(autouse=True)
def restore():
    yield
    config_threadpool(0)


def masks(tasks=64):
    """The processors that each thread of a launch may run on, by thread."""
    found = {}

    def body(closure, task, total):
        found[threading.get_native_id()] = sorted(os.sched_getaffinity(0))
        time.sleep(0.002)  # so that every thread gets some
        return 0

    assert native_runtime().lib.slw_parallel_launch(BODY(body), None, tasks) == 0
    return found


def test_one_thread_on_each_listed_processor():
    config_threadpool(-2, 2, ALLOWED[:2])
    assert num_threads() == 2
    found = masks()
    own = found.pop(threading.get_native_id())
    assert own == ALLOWED[:2]
    # A worker whose processor is busy may come too late for any task.
    assert list(found.values()) in ([], [ALLOWED[1:2]])


def test_all_threads_on_the_listed_processors():
    config_threadpool(-3, 4, [str(ALLOWED[0])])
    assert num_threads() == 4
    assert set(map(tuple, masks().values())) == {(ALLOWED[0],)}


@pytest.mark.parametrize("mode", [1, -1])
def test_the_fastest_or_slowest_and_back(mode):
    config_threadpool(mode)
    assert 1 <= num_threads() <= len(ALLOWED)
    found = masks()
    assert all(set(m) <= set(ALLOWED) for m in found.values())
    config_threadpool(0)
    assert sorted(os.sched_getaffinity(0)) == ALLOWED
    assert all(m == ALLOWED for m in masks().values())


def test_classic_name():
    configure = tvm.get_global_func("runtime.config_threadpool")
    configure(-2, 1, ALLOWED[1])
    assert num_threads() == 1
    assert os.sched_getaffinity(0) == {ALLOWED[1]}


@pytest.mark.parametrize("arguments", [(7, 0), (-2, 2), (-2, 1, [4095]), (1, 1000)])
def test_what_cannot_be_is_an_error(arguments):
    with pytest.raises(ValueError, match=r"config_threadpool: .* threads are 0 to 256"):
        config_threadpool(*arguments)
    assert sorted(os.sched_getaffinity(0)) == ALLOWED


def test_over_rpc():
    """In a process of its own, whose sessions inherit nothing from the tests above."""
    code = """
from slipway import rpc
with rpc.LocalSession() as session:
    configure = session.get_function("runtime.config_threadpool")
    configure(1, 1)
    try:
        configure(9, 1)
    except Exception as error:
        assert "config_threadpool" in str(error), error
    else:
        raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
