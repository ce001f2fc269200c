"""Two machines' worth: client and device in two namespaces, 20 ms apart, 1 % of packets lost."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trustme
from tests.rpc.network import network

HERE = Path(__file__).parent
TOKEN = "over the wire"
TESTS = ("test_session.py", "test_kernels.py", "test_graph.py")


@pytest.fixture
def wire():
    made = network.Network()
    yield made
    made.close()


class Programs:
    """Programs in the namespaces, ended with the test."""

    def __init__(self, wire):
        self.wire, self.running = wire, []
        self.environment = {**os.environ, "SLIPWAY_RPC_TOKEN": TOKEN}

    def start(self, end, *arguments, **pipes):
        command = self.wire.inside(end, sys.executable, *arguments)
        process = subprocess.Popen(command, text=True, env=self.environment, **pipes)
        self.running.append(process)
        return process

    def port_of(self, end, *arguments):
        """Start a program that prints its port on stdout."""
        process = self.start(end, *arguments, stdout=subprocess.PIPE)
        return int(process.stdout.readline())

    def announced(self, end, *arguments):
        """Start a program that names its address on stderr; return the port."""
        process = self.start(end, *arguments, stderr=subprocess.PIPE)
        return int(re.search(r":(\d+)\s*$", process.stderr.readline()).group(1))

    def run(self, end, code, *arguments, token=TOKEN):
        """Run Python code; return what it prints."""
        done = subprocess.run(
            self.wire.inside(end, sys.executable, "-c", code, *map(str, arguments)),
            capture_output=True, text=True, check=False, timeout=280,
            env={**self.environment, "SLIPWAY_RPC_TOKEN": token},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self):
        for process in self.running:
            process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


@pytest.fixture
def programs(wire):
    made = Programs(wire)
    yield made
    made.stop()


USE = """
import sys
from slipway import rpc
with rpc.connect_tracker(sys.argv[1], int(sys.argv[2])) as tracker:
    with tracker.request("board", timeout=60) as session:
        content = bytes(range(256)) * 1000
        session.upload(content, "file")
        assert bytes(session.download("file")) == content
        for number in range(20):
            assert session.ping(bytes([number])) == bytes([number])
print("done")
"""
REFUSED = """
import sys
from slipway import rpc
from slipway.errors import RPCError
try:
    rpc.connect_tracker(sys.argv[1], int(sys.argv[2]), token="")
except RPCError as error:
    print(error)
"""


def start_farm(programs, tracker_end="far"):
    """Start a tracker and a device in `far`; return the tracker's address."""
    host = network.FAR if tracker_end == "far" else network.NEAR
    tracker = ("-m", "slipway.exec.rpc_tracker", "--host", host, "--port", "0")
    port = programs.announced(tracker_end, *tracker)
    device = ("-m", "slipway.exec.rpc_server", "--host", network.FAR, "--port", "0")
    programs.announced("far", *device, "--key", "board", "--tracker", f"{host}:{port}")
    return host, port


def test_farm_on_another_machine(programs, wire):
    host, port = start_farm(programs)
    assert programs.run("near", USE, host, port) == "done\n"
    assert wire.dropped > 0
    assert "asks for its token" in programs.run("near", REFUSED, host, port, token="")


SESSION = """
import sys
import numpy as np
from slipway import nd, rpc
from slipway.errors import RPCError
with rpc.connect(sys.argv[1], int(sys.argv[2]), key="board") as session:
    content = bytes(range(256)) * 1000
    session.upload(content, "file")
    assert bytes(session.download("file")) == content
    values = np.arange(50_000, dtype="float32")
    tensor = nd.array(values, session.cpu(0))
    np.testing.assert_array_equal(tensor.numpy(), values)
    for number in range(20):
        assert session.ping(bytes([number])) == bytes([number])
with rpc.connect(sys.argv[1], int(sys.argv[2]), key="board") as session:
    assert session.listdir() == []
print("done")
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A file with certificate and key, and one with the authority's certificate."""
    folder, authority = tmp_path_factory.mktemp("certificates"), trustme.CA()
    issued = authority.issue_cert(network.NEAR, network.FAR, "127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(folder / "cert")
    authority.cert_pem.write_to_path(folder / "ca")
    return str(folder / "cert"), str(folder / "ca")


def test_session_over_tls(programs, wire, certificate):
    device = ("-m", "slipway.exec.rpc_server", "--host", network.FAR, "--port", "0")
    port = programs.announced("far", *device, "--key", "board", "--tls-cert", certificate[0])
    programs.environment["SLIPWAY_RPC_TLS_CA"] = certificate[1]
    assert programs.run("near", SESSION, network.FAR, port) == "done\n"
    assert wire.dropped > 0


@pytest.mark.long
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("client", ["near", "far"])
def test_session_through_a_proxy(programs, wire, certificate, client, tls):
    """The device dials out over the wire; the client is beside the proxy or the device."""
    proxy = ("-m", "slipway.exec.rpc_proxy", "--host", network.NEAR, "--port", "0")
    port = programs.announced("near", *proxy, *(("--tls-cert", certificate[0]) if tls else ()))
    if tls:
        programs.environment["SLIPWAY_RPC_TLS_CA"] = certificate[1]
    device = ("-m", "slipway.exec.rpc_server", "--through-proxy", "--host", network.NEAR)
    programs.start("far", *device, "--port", str(port), "--key", "board", "--silent")
    deadline = time.monotonic() + 60
    while json.loads(programs.run("near", FREE, network.NEAR, port)) != 1:
        assert time.monotonic() < deadline
    assert programs.run(client, SESSION, network.NEAR, port) == "done\n"
    assert wire.dropped > 0


FREE = """
import sys
from slipway import rpc
with rpc.connect_tracker(sys.argv[1], int(sys.argv[2])) as tracker:
    print(tracker.summary()["queue_info"].get("board", {}).get("free", 0))
"""


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("name", TESTS)
def test_the_rpc_tests_across_the_network(programs, wire, certificate, name, tls):
    cert = [certificate[0]] if tls else []
    far = programs.port_of("far", str(HERE / "network_peer.py"), "server", network.FAR, *cert)
    if tls:
        programs.environment["SLIPWAY_RPC_TLS_CA"] = certificate[1]
    here = programs.port_of("near", str(HERE / "network_peer.py"), "forward", network.FAR, str(far))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(HERE.parent / name),
    ]
    done = subprocess.run(
        wire.inside("near", *command), capture_output=True, text=True, check=False,
        env={**programs.environment, "SLIPWAY_TEST_RPC_PORT": str(here)}, cwd=HERE.parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
    assert wire.dropped > 0


HANG = """
import sys, time
from slipway import rpc
from slipway.errors import RPCError
from slipway.rpc import client
client.STEP_TIMEOUT_S = 5.0
with rpc.connect_tracker(sys.argv[1], int(sys.argv[2])) as tracker:
    session = tracker.request("board", timeout=60)
print("ready", flush=True)
sys.stdin.readline()
try:
    session.ping(b"x")
except RPCError as error:
    print(type(error).__name__, flush=True)
"""


def states(programs, host, port, end="far"):
    code = (
        "import sys, json; from slipway import rpc; "
        "t = rpc.connect_tracker(sys.argv[1], int(sys.argv[2])); "
        "print(json.dumps([d['state'] for d in t.summary()['farm']['devices']]))"
    )
    return json.loads(programs.run(end, code, host, port))


def wait_for_states(programs, host, port, wanted, end="far", seconds=200):
    deadline = time.monotonic() + seconds
    while (found := states(programs, host, port, end)) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(1)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_client_whose_network_is_cut_for_ever_frees_its_device(programs, wire):
    host, port = start_farm(programs)
    client = programs.start(
        "near", "-c", HANG, host, str(port), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert client.stdout.readline() == "ready\n"
    wire.is_cut = True
    client.stdin.write("\n")
    client.stdin.close()
    assert client.stdout.readline() == "RPCTimeoutError\n"
    wait_for_states(programs, host, port, ["free"])
    wire.is_cut = False
    assert programs.run("near", USE, host, port) == "done\n"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("cut_s", [1, 30])
def test_device_cut_off_from_its_tracker_comes_back(programs, wire, cut_s):
    host, port = start_farm(programs, "near")
    wait_for_states(programs, host, port, ["free"], "near")
    wire.is_cut = True
    time.sleep(cut_s)  # the cut itself, not a wait for something
    if cut_s > 12:
        wait_for_states(programs, host, port, ["offline"], "near")
    wire.is_cut = False
    wait_for_states(programs, host, port, ["free"], "near")
    assert programs.run("near", USE, host, port) == "done\n"
