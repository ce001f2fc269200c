"""Whatever dies, hangs or is cut off, in the middle of whatever: the client gets an error that has
a name, within its time, and the device serves the next session.

Each in the middle of an upload, a call and a copy, except where it says otherwise:

==================  ===========================================================================
kill -9 of
  session process   test_killed_session_process
  device server     test_killed_device_server
  client            test_client_that_dies_or_hangs[killed]
  tracker           test_killed_tracker_disturbs_no_session; who waits for a device:
                    test_client_that_waits_hears_of_the_trackers_death
  proxy             test_proxy_faults.py::test_proxy_that_dies_or_hangs[killed]
SIGSTOP of
  session process   test_hung_session_process
  device server     test_hung_tracker_or_device_server_disturbs_no_session[server]; new sessions:
                    test_hung_device_server_is_not_handed_out (long)
  client            test_client_that_dies_or_hangs[stopped]
  tracker           test_hung_tracker_or_device_server_disturbs_no_session[tracker]; requests:
                    test_hung_tracker
  proxy             test_proxy_faults.py::test_proxy_that_dies_or_hangs[stopped] (long)
network cut
  1 s, 30 s         test_network_that_comes_back (30 s: long); the device from its tracker, in
                    namespaces: test_network.py::test_device_cut_off_from_its_tracker_comes_back
  for ever          test_network_that_does_not_come_back; in namespaces:
                    test_network.py::test_client_whose_network_is_cut_for_ever_frees_its_device
full disk           test_full_disk, test_file_size_limit_of_the_system
kernels             test_bad_kernels: loops, divides by zero, writes out of bounds, allocates;
                    on every processor's static server: test_static_server.py
==================  ===========================================================================
"""

import contextlib
import importlib
import os
import resource
import signal
import subprocess
import threading

import numpy as np
import pytest
from tests.rpc.faults import work
from tests.rpc.faults.relay import Relay
from tests.rpc.faults.waiting import is_alive, wait_for

from slipway import rpc
from slipway.errors import RemoteError, RPCConnectionError, RPCError, RPCTimeoutError
from slipway.rpc import client as rpc_client

BULK, MOMENTS, Work = work.BULK, work.MOMENTS, work.Work


class Lab:
    """A tracker with one device; clients reach the device through a relay."""

    def __init__(self):
        importlib.import_module("tests.rpc.functions")
        self.tracker = rpc.Tracker("127.0.0.1", 0, silent=True)
        self.device = None
        self.start_device()

    def start_device(self):
        options = rpc.ServerOptions(
            key="board", tracker=("127.0.0.1", self.tracker.port), is_quiet=True
        )
        self.device = rpc.Server("127.0.0.1", 0, use_popen=False, options=options)
        self.wait_until_free()

    def restart_tracker(self):
        port = self.tracker.port
        self.tracker.terminate()
        self.tracker = rpc.Tracker("127.0.0.1", port, port + 1, silent=True)

    def states(self):
        with self.ask() as tracker:
            return [device["state"] for device in tracker.summary()["farm"]["devices"]]

    def ask(self, **options):
        return rpc.connect_tracker("127.0.0.1", self.tracker.port, **options)

    def wait_until_free(self):
        def is_free():
            with contextlib.suppress(RPCError):
                return "free" in self.states()
            return False

        wait_for(is_free)

    def connect(self, relay_after=None, session_timeout=0):
        """Return a session with the device, and the relay that it goes through."""
        with self.ask() as tracker:
            _, port, lease = tracker._request("board", 1, 60)
        relay = Relay(port, relay_after)
        session = rpc.connect(
            "127.0.0.1", relay.port, f"board:{lease}", session_timeout, timeout=60
        )
        return session, relay

    def check_next_session(self):
        """The device serves the next one who asks."""
        with self.ask() as tracker, tracker.request("board", timeout=60) as session:
            assert session.ping(b"next") == b"next"
            session.upload(b"x" * 1000, "file")
            assert bytes(session.download("file")) == b"x" * 1000
        self.wait_until_free()

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.device._pid, signal.SIGCONT)
        self.device.terminate()
        with contextlib.suppress(ProcessLookupError, AttributeError):
            os.kill(self.tracker._process.pid, signal.SIGCONT)
        self.tracker.terminate()


@pytest.fixture(scope="module")
def lab():
    running = Lab()
    yield running
    running.stop()


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_session_process(lab, moment):
    work = Work(lab, moment)
    os.kill(work.pid, signal.SIGKILL)
    error = work.finish()
    assert isinstance(error, RPCError), error
    if moment == "call":
        assert "SIGKILL" in str(error)
        assert "test.rpc.sleep" in str(error)
    lab.check_next_session()


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_device_server(lab, moment):
    work = Work(lab, moment)
    os.kill(lab.device._pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(work.pid))  # nothing of it is left running
    error = work.finish()
    assert isinstance(error, (RPCConnectionError, RPCError)), error
    wait_for(lambda: "free" not in lab.states() and "busy" not in lab.states())
    lab.start_device()
    lab.check_next_session()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_client_that_dies_or_hangs(lab, moment, number, tmp_path):
    """A hung client keeps its device until its session's time is over, and no longer."""
    session, relay = lab.connect(1 << 20, session_timeout=3 if number == signal.SIGSTOP else 0)
    device = session.get_function("test.rpc.pid")()
    pid = os.fork()
    if pid == 0:
        try:
            if moment == "upload":
                session.upload(bytes(BULK), "big")
            elif moment == "copy":
                session.cpu(0).empty((BULK,), "uint8").copyfrom(np.zeros(BULK, "uint8"))
            else:
                session.get_function("test.rpc.sleep")(600.0)
        finally:
            os._exit(0)
    try:
        os.close(session.link._fd)  # the connection is the other process's alone
        if moment != "call":
            assert relay.stalled.wait(60)
        os.kill(pid, number)
        if number == signal.SIGKILL:
            os.waitpid(pid, 0)
        relay.resume()
        wait_for(lambda: not is_alive(device))
        lab.check_next_session()
    finally:
        relay.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        session.link._fd = -1


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_tracker_disturbs_no_session(lab, moment):
    work = Work(lab, moment, call_s=2.0)
    os.kill(lab.tracker._process.pid, signal.SIGKILL)
    lab.tracker._process.wait()
    assert work.finish() is None
    lab.restart_tracker()
    lab.wait_until_free()
    lab.check_next_session()


def test_client_that_waits_hears_of_the_trackers_death(lab):
    holder = lab.ask().request("board", timeout=60)
    errors = []

    def wait():
        try:
            with lab.ask() as tracker:
                tracker.request("board", timeout=60)
        except RPCError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    with lab.ask() as tracker:
        wait_for(lambda: tracker.summary()["queue_info"]["board"]["pending"] == 1)
    os.kill(lab.tracker._process.pid, signal.SIGKILL)
    waiting.join(60)
    assert isinstance(errors[0], RPCConnectionError)
    assert "Is the tracker still running?" in str(errors[0])
    holder.close()
    lab.restart_tracker()
    lab.wait_until_free()
    lab.check_next_session()


# Hangs


@pytest.mark.parametrize("moment", MOMENTS)
def test_hung_session_process(lab, moment, monkeypatch):
    monkeypatch.setattr(rpc_client, "STEP_TIMEOUT_S", 2.0)
    work = Work(lab, moment, timeout=2.0 if moment == "call" else None)
    os.kill(work.pid, signal.SIGSTOP)
    error = work.finish()
    assert isinstance(error, RPCTimeoutError), error
    if moment == "call":
        assert "time limit of 2.000 s" in str(error)
    wait_for(lambda: not is_alive(work.pid))
    lab.check_next_session()


@pytest.mark.parametrize("who", ["tracker", "server"])
@pytest.mark.parametrize(
    "moment", ["upload", *(pytest.param(m, marks=pytest.mark.long) for m in ("call", "copy"))]
)
def test_hung_tracker_or_device_server_disturbs_no_session(lab, moment, who):
    """What runs goes on: a session is a process of its own."""
    work = Work(lab, moment, call_s=2.0)
    pid = lab.tracker._process.pid if who == "tracker" else lab.device._pid
    os.kill(pid, signal.SIGSTOP)
    try:
        assert work.finish() is None
    finally:
        os.kill(pid, signal.SIGCONT)
    lab.wait_until_free()
    lab.check_next_session()


def test_hung_tracker(lab):
    pid = lab.tracker._process.pid
    tracker = lab.ask(timeout=1.0)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(RPCTimeoutError, match="did not answer within"):
            tracker.request("board", timeout=0.2)
        with pytest.raises(RPCTimeoutError):
            lab.ask(timeout=1.0)
    finally:
        os.kill(pid, signal.SIGCONT)
        tracker.close()
    lab.check_next_session()


@pytest.mark.long
def test_hung_device_server_is_not_handed_out(lab):
    """Its connection with the tracker lives in another process: that one finds out."""
    os.kill(lab.device._pid, signal.SIGSTOP)
    try:
        wait_for(lambda: lab.states() == ["offline"] or "free" not in lab.states())
        with pytest.raises(RPCTimeoutError, match="did not answer the greeting"):
            rpc.connect("127.0.0.1", lab.device.port, timeout=0.5)
    finally:
        os.kill(lab.device._pid, signal.SIGCONT)
    lab.wait_until_free()
    lab.check_next_session()


# Cuts


@pytest.mark.parametrize(
    "cut_s", [1, pytest.param(30, marks=pytest.mark.long)], ids=lambda s: f"{s}s"
)
@pytest.mark.parametrize("moment", MOMENTS)
def test_network_that_comes_back(lab, moment, cut_s):
    work = Work(lab, moment, call_s=0.5)  # a call's answer comes while nothing moves
    work.relay.stall()
    threading.Event().wait(cut_s)
    assert work.finish() is None
    lab.wait_until_free()
    lab.check_next_session()


@pytest.mark.parametrize("moment", MOMENTS)
def test_network_that_does_not_come_back(lab, moment, monkeypatch):
    monkeypatch.setattr(rpc_client, "STEP_TIMEOUT_S", 1.0)
    monkeypatch.setattr(rpc_client, "_ANSWER_GRACE_S", 0.5)
    timeout = 1.0 if moment == "call" else None
    work = Work(lab, moment, timeout=timeout, session_timeout=6)
    work.relay.stall()
    error = work.finish(resume=False)
    assert isinstance(error, RPCTimeoutError), error
    wait_for(lambda: not is_alive(work.pid))
    lab.check_next_session()


# What kernels do, and what devices lack


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("divide_by_zero", "SIGFPE"),
        ("write_out_of_bounds", "SIGSEGV"),
        ("spin", "time limit"),
        ("eat_memory", "memory|SIGKILL"),
    ],
)
def test_bad_kernels(kernels, function, words):
    options = rpc.ServerOptions(max_memory_bytes=512 << 20, is_quiet=True)
    with rpc.Server("127.0.0.1", 0, use_popen=False, options=options) as server:
        with rpc.connect("127.0.0.1", server.port, timeout=60) as session:
            session.upload(kernels)
            session.timeout = 2.0 if function == "spin" else 60.0
            kernel = session.load_module("kernels.so")[function]
            with pytest.raises(RPCError, match=words) as caught:
                kernel()
            assert isinstance(caught.value, (RemoteError, RPCTimeoutError))
        with rpc.connect("127.0.0.1", server.port, timeout=60) as session:
            assert session.ping(b"next") == b"next"


@pytest.fixture
def small_disk(tmp_path):
    """A folder that takes 4 MiB."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "slipway-test", str(tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {made.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def check_full(port):
    with rpc.connect("127.0.0.1", port, timeout=60) as session:
        with pytest.raises(RemoteError, match=r"big") as caught:
            session.upload(bytes(16 << 20), "big")
        assert "No space" in str(caught.value) or "too large" in str(caught.value)
        assert session.ping(b"x") == b"x"  # the session goes on
        assert "big" not in session.listdir()
        session.upload(b"small", "small")
    with rpc.connect("127.0.0.1", port, timeout=60) as session:
        assert session.listdir() == []
        session.upload(bytes(1 << 20), "fits")  # what the first one left is gone


def test_full_disk(small_disk, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(small_disk))
    with rpc.Server("127.0.0.1", 0, use_popen=False, silent=True) as server:
        check_full(server.port)


def test_file_size_limit_of_the_system(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)

    def confine():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, limit[1]))

    with rpc.Server(
        "127.0.0.1", 0, use_popen=False, silent=True, server_init_callback=confine
    ) as server:
        check_full(server.port)


def test_request_and_run_goes_to_another_device(lab):
    """The first try's device dies under it; the second try gets another one."""
    options = rpc.ServerOptions(key="board", tracker=("127.0.0.1", lab.tracker.port), is_quiet=True)
    tries = []

    def work(session):
        tries.append(session.get_function("test.rpc.pid")())
        if len(tries) == 1:
            session.close()
            raise RPCConnectionError("the device's cable was pulled.")
        return session.ping(b"done")

    with rpc.Server("127.0.0.1", 0, use_popen=False, options=options), lab.ask() as tracker:
        wait_for(lambda: tracker.summary()["queue_info"]["board"]["free"] == 2)
        assert tracker.request_and_run("board", work, max_retry=3) == b"done"
        assert len(set(tries)) == 2


def test_request_and_run_gives_up(lab):
    tries = []

    def work(session):
        tries.append(session)
        raise RPCConnectionError("the device's cable was pulled.")

    words = r"3 tries on devices of kind 'board' failed.*cable"
    with lab.ask() as tracker, pytest.raises(RPCError, match=words):
        tracker.request_and_run("board", work, max_retry=3)
    assert len(tries) == 3
    lab.wait_until_free()
