"""Trackers: registration, queues, leases, and what happens when somebody goes away."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from tests.rpc.faults.waiting import wait_for

from slipway import rpc
from slipway.errors import RemoteError, RPCConnectionError, RPCError, RPCTimeoutError
from slipway.rpc.protocol import HEADER, Code, Role, frame
from slipway.rpc.tracker import TrackerServer


@pytest.fixture
def tracker():
    with rpc.Tracker("127.0.0.1", 0, silent=True) as running:
        yield running


@pytest.fixture
def client(tracker):
    with rpc.connect_tracker("127.0.0.1", tracker.port) as session:
        yield session


def free(client, key):
    return client.summary()["queue_info"].get(key, {}).get("free", 0)


@pytest.fixture
def device(tracker, client):
    address = ("127.0.0.1", tracker.port)
    with rpc.Server("127.0.0.1", 0, key="board", tracker_addr=address, silent=True) as server:
        wait_for(lambda: free(client, "board") == 1)
        yield server


def test_device_is_handed_out_and_comes_back(client, device):
    session = client.request("board", priority=0, session_timeout=60)
    assert session.key == "board"
    assert session.ping(b"x") == b"x"
    assert free(client, "board") == 0
    session.close()
    wait_for(lambda: free(client, "board") == 1)


def test_summaries_are_as_in_classic_tvm(client, device):
    summary = client.summary()
    assert summary["queue_info"]["board"] == {"free": 1, "total": 1, "pending": 0}
    (server,) = summary["server_info"]
    assert (server["key"], server["addr"]) == ("server:board", ["127.0.0.1", device.port])
    text = client.text_summary()
    assert "Server List" in text
    assert f"127.0.0.1:{device.port}" in text
    assert "Queue Status" in text


def test_device_serves_only_those_whom_the_tracker_sends(client, device):
    with pytest.raises(RPCError, match="handed out by the tracker"):
        rpc.connect("127.0.0.1", device.port)
    with pytest.raises(RPCError, match="handed out by the tracker"):
        rpc.connect("127.0.0.1", device.port, key="board:" + "0" * 32)
    with client.request("board") as session:
        assert session.ping(b"x") == b"x"


def test_second_client_waits_for_the_first(tracker, client, device):
    first = client.request("board")
    got = []

    def wait():
        with rpc.connect_tracker("127.0.0.1", tracker.port) as other:
            got.append(other.request("board"))

    thread = threading.Thread(target=wait)
    thread.start()
    wait_for(lambda: client.summary()["queue_info"]["board"]["pending"] == 1)
    assert not got
    first.close()
    thread.join(5)
    assert got[0].ping(b"x") == b"x"
    got[0].close()


def test_waiting_ends_with_the_reason(client, device):
    with client.request("board"):
        with pytest.raises(RPCTimeoutError, match=r"no 'board' became free within .* in use: 127"):
            client.request("board", timeout=0.2)
        with pytest.raises(RPCTimeoutError, match=r"no such device .*registered: board\)"):
            client.request("bord", timeout=0.2)


def test_crash_in_a_session_frees_the_device(client, device, kernels):
    session = client.request("board")
    session.upload(kernels)
    with pytest.raises(RemoteError, match="SIGSEGV"):
        session.load_module("kernels.so")["segfault"]()
    with client.request("board", timeout=5) as after:
        assert after.ping(b"x") == b"x"


def test_request_and_run(client, device):
    assert client.request_and_run("board", lambda session: session.ping(b"here")) == b"here"
    with pytest.raises(ZeroDivisionError):
        client.request_and_run("board", lambda _: 1 / 0)
    wait_for(lambda: free(client, "board") == 1)


def test_device_that_dies_is_taken_off_the_list(client, device):
    os.kill(device._pid, signal.SIGKILL)
    wait_for(lambda: client.summary()["server_info"] == [])
    # The kind is still known, so that who counts its devices finds none.
    assert client.summary()["queue_info"]["board"] == {"free": 0, "total": 0, "pending": 0}


def test_client_that_dies_leaves_the_queue(tracker, client, device):
    first = client.request("board")
    code = (
        "from slipway import rpc; "
        f"rpc.connect_tracker('127.0.0.1', {tracker.port}).request('board')"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    wait_for(lambda: client.summary()["queue_info"]["board"]["pending"] == 1)
    other.kill()
    other.wait()
    wait_for(lambda: client.summary()["queue_info"]["board"]["pending"] == 0)
    first.close()
    wait_for(lambda: free(client, "board") == 1)


def test_devices_come_back_to_a_restarted_tracker():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    first = rpc.Tracker("127.0.0.1", port, port + 1, silent=True)
    options = rpc.ServerOptions(key="board", tracker=("127.0.0.1", port), is_quiet=True)
    with rpc.Server("127.0.0.1", 0, use_popen=False, options=options):
        with rpc.connect_tracker("127.0.0.1", port) as client:
            wait_for(lambda: free(client, "board") == 1)
            session = client.request("board")
        first.terminate()
        with (
            rpc.Tracker("127.0.0.1", port, port + 1, silent=True),
            rpc.connect_tracker("127.0.0.1", port) as client,
        ):
            wait_for(lambda: client.summary()["queue_info"].get("board") is not None)
            assert session.ping(b"x") == b"x"  # the tracker's restart did not touch it
            assert free(client, "board") == 0
            session.close()
            wait_for(lambda: free(client, "board") == 1)


def test_static_server_registers(client, tracker, tmp_path_factory, static_server_for_this_machine):
    arguments = ("--key", "static", "--tracker", f"127.0.0.1:{tracker.port}")
    device = static_server_for_this_machine(*arguments)
    wait_for(lambda: free(client, "static") == 1)
    with client.request("static") as session:
        assert session.description.startswith("slipway-server")
    wait_for(lambda: free(client, "static") == 1)
    device.stop()
    wait_for(lambda: client.summary()["server_info"] == [])


def test_clients_get_the_address_that_a_device_gives(tracker, client):
    """As behind a forwarded port: the tracker sees another address than clients are to use."""
    address = ("127.0.0.1", tracker.port)
    with rpc.Server(
        "0.0.0.0", 0, key="far", tracker_addr=address, custom_addr="127.0.0.2", silent=True
    ) as server:
        wait_for(lambda: free(client, "far") == 1)
        (entry,) = client.summary()["server_info"]
        assert entry["addr"] == ["127.0.0.2", server.port]
        with client.request("far", session_timeout=7) as session:
            assert session.link.peer == f"127.0.0.2:{server.port}"
            assert session.session_timeout_s == 7
            assert session.ping(b"x") == b"x"


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(RPCConnectionError, match="rpc_tracker --host"):
        rpc.connect_tracker("127.0.0.1", port)


def test_session_with_a_tracker_is_refused(tracker):
    with pytest.raises(RPCError, match="this is a tracker, not a device"):
        rpc.connect("127.0.0.1", tracker.port)


def test_query_program(tracker, device):
    done = subprocess.run(
        [sys.executable, "-m", "slipway.exec.query_rpc_tracker", "--port", str(tracker.port)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "server:board" in done.stdout


# The queue by itself, with simulated devices and clients in one loop.


class Peer:
    """A simulated device or client."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def greet(cls, port, role, key, name):
        peer = cls(*await asyncio.open_connection("127.0.0.1", port))
        raw_key, raw = key.encode(), name.encode()
        hello = struct.pack(
            "<8sHHIQIIHHI", b"SLIPWAY\n", 1, 1, role, 0, 4096, 0, len(raw_key), len(raw), 0
        )
        await peer.send(Code.HELLO, 1, hello + raw_key + b"\0" + raw + b"\0")
        assert (await peer.receive())[0] == Code.WELCOME
        return peer

    async def send(self, code, number, payload=b""):
        self.writer.write(frame(code, number, payload))
        await self.writer.drain()

    async def receive(self):
        size, code, _, number, _ = HEADER.unpack(await self.reader.readexactly(HEADER.size))
        return code, number, await self.reader.readexactly(size)

    async def register(self, port):
        await self.send(Code.REGISTER, 2, struct.pack("<IIII", port, 0, 0, 0) + b"\0\0")
        assert (await self.receive())[0] == Code.RETURN

    async def ask(self, key, priority=0, timeout_ms=0):
        raw = key.encode()
        payload = struct.pack("<iIII", priority, timeout_ms, len(raw), 0) + raw + b"\0"
        await self.send(Code.REQUEST, 3, payload)
        code, _, payload = await self.receive()
        assert code == Code.RETURN, payload
        port, lease_size, _, _ = struct.unpack_from("<IIII", payload)
        return port, payload[16 : 16 + lease_size]

    async def close(self):
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def with_tracker(scenario):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        serving = asyncio.ensure_future(TrackerServer().serve(listener))
        try:
            await scenario(port)
            await asyncio.sleep(0.1)  # the tracker sees its peers leave
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


def test_order_of_the_queue():
    """Priority first; then who holds the fewest; then who came first."""
    order = []

    async def scenario(port):
        device = await Peer.greet(port, Role.DEVICE, "k", "device")
        await device.register(1000)
        other = await Peer.greet(port, Role.DEVICE, "other", "device")
        await other.register(1001)

        async def answer(peer):
            code, number, _ = await peer.receive()
            assert code == Code.ASSIGN
            await peer.send(Code.RETURN, number)

        async def wait(name, holder, priority):
            peer = await Peer.greet(port, Role.CLIENT, "", holder)
            await peer.ask("k", priority)
            order.append(name)
            await peer.close()

        holder = await Peer.greet(port, Role.CLIENT, "", "greedy")
        asking = asyncio.ensure_future(holder.ask("other"))
        await answer(other)
        await asking
        first = await Peer.greet(port, Role.CLIENT, "", "first")
        asking = asyncio.ensure_future(first.ask("k"))
        await answer(device)
        await asking
        tasks = []
        for name, who, priority in (
            ("greedy", "greedy", 1), ("modest", "modest", 1), ("later", "someone", 1),
            ("urgent", "greedy", 5),
        ):  # fmt: skip
            tasks.append(asyncio.ensure_future(wait(name, who, priority)))
            await asyncio.sleep(0.05)
        for count in range(4):
            await device.send(Code.IDLE, 0, struct.pack("<II", 0, 0) + b"\0")
            await answer(device)
            await asyncio.wait_for(tasks_done(tasks, count + 1), 5)
        await device.close()
        await other.close()
        await holder.close()
        await first.close()

    async def tasks_done(tasks, count):
        while sum(task.done() for task in tasks) < count:
            await asyncio.sleep(0.005)

    asyncio.run(with_tracker(scenario))
    assert order == ["urgent", "modest", "later", "greedy"]


async def crowd(port, devices, clients, seconds):
    """Simulate; returns how many requests were granted. Asserts that no device is given twice."""
    in_use = set()
    waits = []
    deadline = time.monotonic() + seconds

    async def device(number):
        peer = await Peer.greet(port, Role.DEVICE, f"k{number % 3}", "device")
        try:
            await run_device(peer, number)
        finally:
            await peer.close()

    async def run_device(peer, number):
        await peer.register(1000 + number)
        released[1000 + number] = asyncio.Queue()
        while True:
            get = asyncio.ensure_future(peer.receive())
            while not (await asyncio.wait({get}, timeout=3))[0]:
                await peer.send(Code.HEARTBEAT, 0)
            code, request, payload = await get
            assert code == Code.ASSIGN
            await peer.send(Code.RETURN, request)
            lease = await released[1000 + number].get()
            assert lease == payload[8:40]
            await peer.send(Code.IDLE, 0, struct.pack("<II", 32, 0) + lease + b"\0")

    async def client(number):
        peer = await Peer.greet(port, Role.CLIENT, "", f"client {number}")
        while time.monotonic() < deadline:
            start = time.monotonic()
            got, lease = await peer.ask(f"k{random.randrange(3)}", random.randrange(3))
            waits.append(time.monotonic() - start)
            assert got not in in_use, "one device was handed out twice"
            in_use.add(got)
            await asyncio.sleep(random.random() * 0.02)
            in_use.remove(got)
            released[got].put_nowait(lease)
        await peer.close()

    released = {}
    running = [asyncio.ensure_future(device(number)) for number in range(devices)]
    while len(released) < devices:
        await asyncio.sleep(0.01)
    await asyncio.gather(*(client(number) for number in range(clients)))
    for task in running:
        assert not task.done() or not task.exception()
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return waits


def test_no_device_is_handed_out_twice():
    async def scenario(port):
        waits = await crowd(port, devices=12, clients=30, seconds=1.0)
        assert len(waits) > 100

    asyncio.run(with_tracker(scenario))


def test_a_port_that_is_taken_is_told():
    """Who is told of one tracker otherwise talks to the other."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "slipway.exec.rpc_tracker", "--host", "127.0.0.1"]
        ports = ["--port", str(port), "--port-end", str(port + 50)]
        with subprocess.Popen([*command, *ports], stderr=subprocess.PIPE, text=True) as process:
            lines = [process.stderr.readline() for _ in range(2)]
            process.terminate()
    at = lines[0].split("bind to 127.0.0.1:", 1)[1].strip()
    assert f"port {port} is taken" in lines[1]
    assert lines[1].strip().endswith(f"name port {at}")
