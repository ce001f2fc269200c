"""``slipway rpc-query``, and the logs that belong to what it shows."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from slipway import rpc
from slipway.cli.console import out
from slipway.cli.devices import rpc_query


class Farm:
    """A tracker with its page and a device, as programs that log JSON."""

    def __init__(self, folder):
        self.logs = [folder / "tracker.log", folder / "device.log"]
        self.programs = []
        tracker = ("rpc_tracker", "--port", "0", "--web", "0")
        self.port, self.page = self._start(self.logs[0], 2, *tracker)
        device = ("rpc_server", "--port", "0", "--key", "board")
        self._start(self.logs[1], 1, *device, "--tracker", f"127.0.0.1:{self.port}")

    def _start(self, log, addresses, name, *arguments):
        command = [sys.executable, "-m", f"slipway.exec.{name}", *arguments]
        with log.open("w") as stream:
            self.programs.append(
                subprocess.Popen(
                    [*command, "--log-format", "json"], stderr=stream,
                    env={**os.environ, "SLIPWAY_RPC_TOKEN": ""},
                )
            )  # fmt: skip
        ports = []
        deadline = time.monotonic() + 120
        while len(ports) < addresses:
            assert time.monotonic() < deadline
            told = [e["address"] for e in self.events(log) if e["event"] == "listening"]
            ports = [int(re.search(r":(\d+)/?$", address).group(1)) for address in told]
            time.sleep(0.02)
        return ports

    @staticmethod
    def events(log):
        return [json.loads(line) for line in log.read_text().splitlines(keepends=True)
                if line.endswith("\n")]  # fmt: skip

    def stop(self):
        for program in reversed(self.programs):
            program.terminate()
            program.wait(60)


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    running = Farm(tmp_path_factory.mktemp("farm"))
    yield running
    running.stop()


def query(farm, *arguments):
    command = [sys.executable, "-m", "slipway", "rpc-query", "--port", str(farm.port), *arguments]
    environment = {**os.environ, "COLUMNS": "160", "NO_COLOR": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def test_table_json_page_and_logs_tell_the_same(farm):
    with rpc.connect_tracker("127.0.0.1", farm.port) as tracker:
        with tracker.request("board", timeout=60):
            found = json.loads(query(farm, "--json").stdout)
            (device,) = found["devices"]
            assert device["state"] == "busy"
            table = query(farm).stdout
            with urllib.request.urlopen(f"http://127.0.0.1:{farm.page}/api/farm") as answer:
                assert json.load(answer)["devices"] == found["devices"]
        session = device["session"]
        assert re.fullmatch("[0-9a-f]{12}", session)
        assert session in table
        assert re.search(r"board .*in use", table)
        deadline = time.monotonic() + 60
        while tracker.summary()["queue_info"]["board"]["free"] == 0:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    told = [[e["event"] for e in farm.events(log) if e.get("session") == session]
            for log in farm.logs]  # fmt: skip
    assert told == [["granted", "ended"], ["started", "ended"]]


def test_watching_goes_on_until_it_is_interrupted(farm):
    command = [sys.executable, "-m", "slipway", "rpc-query", "--port", str(farm.port)]
    process = subprocess.Popen(
        [*command, "--watch", "--json", "--interval", "0.1"], stdout=subprocess.PIPE, text=True
    )
    looks = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.kill()
    process.communicate()
    assert looks[0]["now"] < looks[1]["now"] < looks[2]["now"]


def test_what_people_said_of_devices():
    device = {
        "key": "pi", "address": "10.0.0.1", "port": 9, "state": "free", "since": 0.0, "session": "",
        "holder": "", "last_error": "", "note": "left one", "tags": ["camera", "rack 2"],
        "reserved_for": "ana", "reserved_until": 700.0,
    }  # fmt: skip
    farm = {"now": 100.0, "kinds": {}, "devices": [device], "queue": [], "errors": []}
    with out.capture() as printed:
        out.print(rpc_query._picture(farm))
    words = " ".join(printed.get().split())
    assert "kept for ana for another 10 min 00 s; left one; camera, rack 2" in words
    farm["now"] = 800.0
    with out.capture() as printed:
        out.print(rpc_query._picture(farm))
    assert "ana" not in printed.get()


def test_no_tracker_is_one_clear_error():
    done = subprocess.run(
        [sys.executable, "-m", "slipway", "rpc-query", "--port", "1"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 9
    assert "cannot connect to 127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_tracker_that_says_nothing_is_given_up_after_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = str(silent.getsockname()[1])
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "slipway", "rpc-query", "--port", port, "--timeout", "0.5"],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 9
    assert time.monotonic() - began < 9  # not the 10 s of before
    assert "0.5 s" in done.stderr
