"""A farm in one command: up, used, down, and nothing left."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
import typer

from slipway import rpc
from slipway.cli.devices import farm as command
from slipway.errors import ArgumentValueError, ExecutionError, TargetError
from slipway.farm import process, virtual
from slipway.toolchain import emulators, zig

HERE = zig.architecture_of(os.uname().machine)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "farm"
    yield folder
    virtual.down(folder)


def test_up_gives_free_devices_and_down_leaves_nothing(folder):
    farm = virtual.up([HERE], 2, 0, 0, folder)
    token = farm.token_file.read_text().strip()
    assert farm.token_file.stat().st_mode & 0o077 == 0
    with rpc.connect_tracker("127.0.0.1", farm.port, token=token) as tracker:
        assert tracker.summary()["queue_info"][HERE]["free"] == 2
        with tracker.request(HERE, timeout=60) as session:
            assert session.ping(b"x") == b"x"
    if importlib.util.find_spec("starlette"):
        with urllib.request.urlopen(f"http://127.0.0.1:{farm.page}/api/farm") as answer:
            assert answer.status == 200
    stored = virtual.load(folder)
    assert stored == farm
    assert [p.name for p in stored.processes] == ["tracker", f"{HERE}-0", f"{HERE}-1"]
    assert virtual.down(folder) == 3
    assert not any(p.is_alive for p in stored.processes)
    assert not folder.exists()
    assert virtual.down(folder) == 0


def test_a_second_farm_is_refused_and_a_dead_one_replaced(folder):
    first = virtual.up([HERE], 1, 0, None, folder)
    with pytest.raises(ExecutionError, match="a farm runs already"):
        virtual.up([HERE], 1, 0, None, folder)
    assert all(p.is_alive for p in first.processes)
    for one in first.processes:
        os.killpg(one.pid, signal.SIGKILL)
        os.waitpid(one.pid, 0)
    second = virtual.up([HERE], 1, 0, None, folder)
    assert {p.pid for p in second.processes}.isdisjoint(p.pid for p in first.processes)


def test_two_people_of_one_machine_have_a_farm_each(tmp_path):
    """The second one's tracker and page take the next free ports."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = min(taken.getsockname()[1], 65000)
        try:
            farm = virtual.up([HERE], 1, port, port, tmp_path / "other")
            assert port not in (farm.port, farm.page)
            if farm.page is not None:
                assert farm.port != farm.page
        finally:
            virtual.down(tmp_path / "other")


def test_what_fails_leaves_nothing(folder, monkeypatch):
    started = []
    real = virtual.start

    def failing(name, command, *rest):
        words = [sys.executable, "-c", "raise SystemExit('no luck')"]
        started.append(real(name, command if name == "tracker" else words, *rest))
        return started[-1]

    monkeypatch.setattr(virtual, "start", failing)
    with pytest.raises(ExecutionError, match="no luck"):
        virtual.up([HERE], 1, 0, None, folder)
    assert len(started) == 2
    assert not any(p.is_alive for p in started)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (["arch64"], "Did you mean 'aarch64'"),
        (["cortex-m0"], "no board of this core"),
        ([], "name kinds"),
    ],
)
def test_kinds_that_cannot_be(kinds, words, folder):
    with pytest.raises((ArgumentValueError, TargetError), match=words):
        virtual.up(kinds, 1, 0, None, folder)
    assert not folder.exists()


def test_another_process_with_the_number_is_left_alone():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        taken = process.Running("x", other.pid, process._start_of(other.pid) - 1)
        assert not taken.is_alive
        taken.end()
        assert other.poll() is None
        other.kill()


def test_a_process_that_does_not_listen_to_term_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "END_S", 0.3)
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True)"
    running = process.start(
        "deaf", [sys.executable, "-c", f"{code}; time.sleep(60)"], tmp_path, os.environ
    )
    deadline = time.monotonic() + 60
    while "1" not in (tmp_path / "deaf.log").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    running.end()
    assert not running.is_alive


def test_an_emulated_kind(folder):
    if emulators.find("aarch64") is None:
        pytest.skip(emulators.install_hint("aarch64"))
    farm = virtual.up(["aarch64"], 1, 0, None, folder)
    token = farm.token_file.read_text().strip()
    with (
        rpc.connect_tracker("127.0.0.1", farm.port, token=token) as tracker,
        tracker.request("aarch64", timeout=60) as session,
    ):
        assert "aarch64" in session.description


def test_a_farm_without_its_tracker_says_so(folder, monkeypatch, capsys):
    farm = virtual.up([HERE], 1, 0, None, folder)
    os.killpg(farm.processes[0].pid, signal.SIGKILL)
    os.waitpid(farm.processes[0].pid, 0)
    with pytest.raises(ExecutionError, match=r"tracker has ended.*farm down.*farm up"):
        virtual.add(HERE, folder)
    assert len(virtual.load(folder).processes) == 2  # no device was started in vain
    monkeypatch.setattr(virtual, "farm_folder", lambda: folder)
    with pytest.raises(typer.Exit) as ended:
        command.status()
    assert ended.value.exit_code == 1
    said = capsys.readouterr().out
    assert "tracker has ended" in said
    assert "slipway farm down" in said


def test_the_commands(tmp_path):
    import json

    def farm(*words):
        command = [sys.executable, "-m", "slipway", "farm", *words]
        # The caches of this run are used: a device server takes a minute to build.
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    if virtual.load() is not None:
        pytest.skip("this user runs a farm")
    try:
        up = json.loads(farm("up", "--kinds", HERE, "--port", "0", "--web", "0", "--json"))
        assert up["devices"] == {HERE: 1}
        assert f"1 x {HERE}" in farm("status")
        assert farm("add", HERE) == f"2 x {HERE}\n"
        assert json.loads(farm("status", "--json"))["devices"] == {HERE: 2}
    finally:
        assert "ended" in farm("down")
    assert json.loads(farm("status", "--json")) is None
