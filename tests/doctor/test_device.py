"""The examination of a device: each fault has its own line, and says what to do."""

import json
import socket
import subprocess
import sys
import threading
import time

import pytest
from tests.rpc.faults.waiting import wait_for

from slipway import rpc
from slipway.doctor import device, farm, serial
from slipway.doctor.finding import FindingState
from slipway.errors import RPCError
from slipway.rpc.protocol import Failure, greet


def named(findings):
    return {finding.name: finding for finding in findings}


def faults(findings):
    return {
        name for name, finding in named(findings).items() if finding.state is FindingState.WRONG
    }


@pytest.fixture(scope="module")
def server():
    with rpc.Server("127.0.0.1", 0, key="board", silent=True) as running:
        yield running


def test_a_device_in_order_is_told_whole(server):
    found = named(device.examine_device("127.0.0.1", server.port))
    assert not faults(found.values())
    assert list(found) == [
        "name", "route", "port", "server", "token", "version", "clock", "processor", "features",
        "memory", "disk", "link", "kernel",
    ]  # fmt: skip
    assert "NumPy" in found["kernel"].text
    assert "'board'" in found["server"].text
    assert all(not finding.advice for finding in found.values())
    with rpc.connect("127.0.0.1", server.port) as session:
        assert session.listdir() == []


def test_it_tells_what_the_system_tells(server):
    import os
    import platform

    with rpc.connect("127.0.0.1", server.port) as session:
        about = device.about_of(session)
        with pytest.raises(RPCError, match="takes no arguments"):
            session.get_function("slipway.about")(1)
    assert int(about["cores"]) == os.cpu_count()
    assert about["machine"] == platform.machine()
    assert abs(float(about["clock_ahead_s"])) < 5
    assert 0 < int(about["disk_free_bytes"]) <= int(about["disk_bytes"])
    assert 0 < int(about["memory_free_bytes"]) <= int(about["memory_bytes"])


def test_a_name_that_nobody_knows():
    (finding,) = device.examine_device("no-such-machine.invalid", 9090)
    assert finding.name == "name"
    assert finding.state is FindingState.WRONG
    assert "192.168.1.7" in finding.advice


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_a_port_where_nobody_listens():
    port = free_port()
    found = named(device.examine_device("127.0.0.1", port))
    assert faults(found.values()) == {"port"}
    assert f"--port {port}" in found["port"].advice


def test_a_silent_program_at_the_port(monkeypatch):
    monkeypatch.setattr(device, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as other:
        found = named(device.examine_device("127.0.0.1", other.getsockname()[1]))
    assert faults(found.values()) == {"server"}


class Answering:
    """A listener that answers every greeting with one frame."""

    def __init__(self, *frames):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._frames = frames
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        for _ in range(2):  # the probe of the port, then the greeting
            peer, _ = self._listener.accept()
            with peer:
                if peer.recv(4096):
                    peer.sendall(b"".join(self._frames))
                    peer.recv(4096)

    def close(self):
        self._listener.close()
        self._thread.join(60)


@pytest.mark.parametrize(
    ("failure", "line"),
    [(Failure.AUTH, "token"), (Failure.VERSION, "version"), (Failure.BUSY, "session")],
)
def test_a_refusal_stands_under_what_it_is_about(failure, line):
    from slipway.rpc.protocol import Code, error_payload, frame

    other = Answering(frame(Code.ERROR, 1, error_payload(failure, "no")))
    found = named(device.examine_device("127.0.0.1", other.port))
    other.close()
    assert faults(found.values()) == {line}
    assert "no" in found[line].text
    assert found[line].advice


def test_a_challenge_without_a_token_is_about_the_token():
    from slipway.rpc.protocol import Code, frame

    other = Answering(frame(Code.CHALLENGE, 1, bytes(32)))
    with (
        socket.create_connection(("127.0.0.1", other.port)),  # the server's first visitor
    ):
        pass
    with socket.create_connection(("127.0.0.1", other.port)) as link:
        link.settimeout(10)
        with pytest.raises(RPCError, match="SLIPWAY_RPC_TOKEN") as raised:
            greet(link, key="", session_timeout_s=0, token=None, peer="x")
    other.close()
    assert raised.value.failure == Failure.AUTH
    assert device.refusal(raised.value).name == "token"


def test_a_device_that_knows_less_is_no_fault(server, monkeypatch):
    monkeypatch.setattr(device, "about_of", lambda session: {})
    found = named(device.examine_device("127.0.0.1", server.port))
    assert not faults(found.values())
    assert found["kernel"].state is FindingState.ABSENT
    assert "processor" not in found


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"clock_ahead_s": "-86400"}, "clock"),
        ({"memory_free_bytes": "1000"}, "memory"),
        ({"disk_free_bytes": "1000"}, "disk"),
    ],
)
def test_a_poor_condition_is_told(server, monkeypatch, change, line):
    real = device.about_of
    monkeypatch.setattr(device, "about_of", lambda session: {**real(session), **change})
    found = named(device.examine_device("127.0.0.1", server.port))
    assert faults(found.values()) == {line}
    assert found[line].advice


def test_another_release_is_told(server, monkeypatch):
    monkeypatch.setattr(device, "VERSION", "9.9.9")
    assert faults(device.examine_device("127.0.0.1", server.port)) == {"version"}


def test_a_kernel_that_cannot_run_there(server, monkeypatch):
    real = device.about_of
    monkeypatch.setattr(
        device, "about_of", lambda session: {**real(session), "architecture": "riscv64"}
    )
    found = named(device.examine_device("127.0.0.1", server.port))
    assert faults(found.values()) == {"kernel"}
    assert "riscv64" in found["kernel"].text
    with rpc.connect("127.0.0.1", server.port) as session:
        assert session.listdir() == []


# A tracker's kinds


@pytest.fixture(scope="module")
def tracked():
    with rpc.Tracker("127.0.0.1", 0, silent=True) as tracker:
        address = ("127.0.0.1", tracker.port)
        with (
            rpc.Server("127.0.0.1", 0, key="rpi4", tracker_addr=address, silent=True),
            rpc.connect_tracker(*address) as client,
        ):
            wait_for(lambda: client.summary()["queue_info"].get("rpi4", {}).get("free"))
            yield address


def test_a_kind_of_a_tracker(tracked):
    found = named(farm.examine_kind("rpi4", *tracked))
    assert not faults(found.values())
    assert found["devices"].text == "1 free"
    assert "NumPy" in found["kernel"].text


def test_an_unknown_kind_is_told_at_once(tracked):
    start = time.monotonic()
    found = named(farm.examine_kind("rpi44", *tracked))
    assert time.monotonic() - start < 3
    assert faults(found.values()) == {"kind"}
    assert "Did you mean 'rpi4'" in found["kind"].text


def test_devices_that_are_all_in_use(tracked):
    with rpc.connect_tracker(*tracked) as client, client.request("rpi4", timeout=60):
        found = named(farm.examine_kind("rpi4", *tracked, wait_s=0.3))
    assert faults(found.values()) == {"session"}
    assert "1 busy" in found["devices"].text or "1 assigned" in found["devices"].text


def test_no_tracker_there():
    (finding,) = farm.examine_kind("rpi4", "127.0.0.1", free_port())
    assert finding.name == "tracker"
    assert "slipway rpc-tracker" in finding.advice


# A serial port


def test_a_port_that_is_not_there():
    (finding,) = serial.examine_serial("/dev/ttyNOT0")
    assert finding.name == "port"
    assert "there is no /dev/ttyNOT0" in finding.text


def test_a_board_that_says_nothing(monkeypatch):
    import os
    import tty

    inner, outer = os.openpty()
    tty.setraw(outer)
    monkeypatch.setattr(serial, "ANSWER_S", 0.5)
    found = named(serial.examine_serial(os.ttyname(outer)))
    os.close(inner)
    os.close(outer)
    assert faults(found.values()) == {"server"}
    assert "reset button" in found["server"].advice


# The command


def doctor(*arguments):
    command = [sys.executable, "-m", "slipway", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_command_exits_with_what_it_found(server):
    done = doctor(f"127.0.0.1:{server.port}", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["well"]) == (0, True)
    assert {finding["state"] for finding in report["findings"]} == {"ok"}
    done = doctor(f"127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert "to mend: port" in done.stdout
    assert "→ start the server" in done.stdout


def test_a_word_is_a_kind_where_a_tracker_knows_it(tracked):
    from slipway.cli.doctor import tracker_of

    assert tracker_of("rpi4", f"127.0.0.1:{tracked[1]}") == tracked
    assert tracker_of("localhost", None) is None
    assert tracker_of("pi.local", None) is None


def test_a_word_is_looked_up_at_the_tracker_of_the_environment(tracked, monkeypatch):
    from slipway.cli.doctor import tracker_of

    monkeypatch.setenv("TVM_TRACKER_HOST", tracked[0])
    monkeypatch.setenv("TVM_TRACKER_PORT", str(tracked[1]))
    assert tracker_of("rpi4", None) == tracked
    assert tracker_of("otherhost", None) is None
