"""Where candidates run, what is said where there is no such place, and who else has it."""

import subprocess
import sys
import threading
import time

import pytest

import slipway as tvm
from slipway import relay, rpc
from slipway.errors import RPCConnectionError, RPCError
from slipway.tuning import runner as runners
from slipway.tuning.measure import kernel_bench
from slipway.tuning.runner import DeviceRunner, TrackerRunner
from slipway.tuning.task import extract_tasks

HOST = "127.0.0.1"


def test_a_kind_that_the_tracker_does_not_know_is_told_soon(monkeypatch):
    monkeypatch.setattr(runners, "COMING_S", 0.5)
    with (
        rpc.Tracker("127.0.0.1", 0, silent=True) as tracker,
        rpc.Server("127.0.0.1", 0, tracker_addr=("127.0.0.1", tracker.port), key="rpi4"),
    ):
        TrackerRunner("127.0.0.1", tracker.port, "rpi4").open().close()
        began = time.monotonic()
        with pytest.raises(RPCConnectionError, match=r"no device of kind 'rpi5'; it has rpi4\. Did "
                           r"you mean 'rpi4'\?.*--key rpi5"):  # fmt: skip
            TrackerRunner("127.0.0.1", tracker.port, "rpi5").open()
        assert time.monotonic() - began < 30  # a request would wait for ten minutes


def test_a_device_that_comes_a_little_later_is_waited_for():
    with rpc.Tracker("127.0.0.1", 0, silent=True) as tracker:
        found = []

        def ask():
            found.append(TrackerRunner("127.0.0.1", tracker.port, "late").open())

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(1.0)
        address = ("127.0.0.1", tracker.port)
        with rpc.Server("127.0.0.1", 0, tracker_addr=address, key="late"):
            thread.join(60)
            assert found
            found[0].close()


def dense_task():
    x, w = relay.var("x", shape=(3, 44)), relay.var("w", shape=(20, 44))
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    return next(t for t in extract_tasks(module, "llvm") if "dense" in t.op)


def server_of(tracker, key="board"):
    return tvm.rpc.Server(HOST, 0, tracker_addr=(HOST, tracker.port), key=key, silent=True)


def measured(runner, folder):
    """Return the failures of a default and a neighbour of it, and the default's times."""
    task = dense_task()
    candidate = next(iter(task.space.neighbours(task.space.default)))
    with kernel_bench(task, runner, folder, rounds=4) as bench:
        found = bench.measure([candidate])
    return [m.kind for m in found], found[0].seconds


def test_a_device_is_of_one_tracker_and_says_which():
    """Whoever goes past its tracker, another tracker's client too, is told where to ask."""
    with tvm.rpc.Tracker(HOST, 0, silent=True) as tracker, server_of(tracker) as server:
        for key in ("", "board"):
            said = rf"handed out by the tracker {HOST}:{tracker.port}; ask there for a 'board'"
            with pytest.raises(RPCError, match=said):
                tvm.rpc.connect(HOST, server.port, key=key, session_timeout=5)


def test_searches_by_two_trackers_on_one_board_both_end_well(tmp_path):
    """One board with a server for each of two trackers: both hand it out, and neither knows.

    Both run at once on it.  That costs time and noise; each candidate still meets the default in
    the same rounds of the same session.
    """
    found = {}
    with tvm.rpc.Tracker(HOST, 0, silent=True) as one, tvm.rpc.Tracker(HOST, 0, silent=True) as two:

        def search(tracker, name):
            folder = tmp_path / name
            folder.mkdir()
            runner = TrackerRunner(HOST, tracker.port, "board", max_devices=1, wait_s=60)
            found[name] = measured(runner, folder)

        with server_of(one), server_of(two):
            threads = [
                threading.Thread(target=search, args=pair) for pair in ((one, "one"), (two, "two"))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
    assert set(found) == {"one", "two"}
    for kinds, seconds in found.values():
        assert not any(kinds)
        assert len(seconds) >= 4


def test_a_tracker_that_comes_back_on_another_port_has_no_devices_until_they_are_told(
    tmp_path, monkeypatch
):
    """A server dials the address that it was given; a search says so, and finds a new one."""
    first = tvm.rpc.Tracker(HOST, 0, silent=True)
    server = server_of(first)
    try:
        assert not any(measured(TrackerRunner(HOST, first.port, "board"), tmp_path)[0])
        first.terminate()
        with pytest.raises(RPCConnectionError, match=str(first.port)):
            TrackerRunner(HOST, first.port, "board", wait_s=1).open()
        with tvm.rpc.Tracker(HOST, 0, silent=True) as second:
            assert second.port != first.port
            runner = TrackerRunner(HOST, second.port, "board", wait_s=60)
            with monkeypatch.context() as patch:
                patch.setattr(runners, "COMING_S", 0.5)
                with pytest.raises(RPCConnectionError, match=r"no device of kind 'board'"):
                    runner.open()
            server.terminate()
            again = tmp_path / "again"
            again.mkdir()
            with server_of(second):
                assert not any(measured(runner, again)[0])
    finally:
        server.terminate()
        first.terminate()


OTHER_CLOCK = """
import time
real = time.time
time.time = lambda: real() + {shift}
from slipway import rpc
with rpc.Server("127.0.0.1", 0, silent=True) as server:
    print(server.port, flush=True)
    input()
"""


@pytest.mark.parametrize("shift", [-3e8, 3e8], ids=["ten years behind", "ten years before"])
def test_the_date_of_a_device_says_nothing(shift, tmp_path):
    """Boards without a battery begin in 1970: times are differences of the device's own counter."""
    server = subprocess.Popen(
        [sys.executable, "-c", OTHER_CLOCK.format(shift=shift)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        port = int(server.stdout.readline())
        kinds, seconds = measured(DeviceRunner(HOST, port), tmp_path)
        assert not any(kinds)
        assert all(0 < s < 1 for s in seconds)
    finally:
        server.stdin.close()
        server.wait(30)
        server.stdout.close()
