"""Proxies: devices and clients that both dial out."""

import asyncio
import gc
import os
import signal
import socket
import struct

import numpy as np
import pytest
from tests.rpc.faults.waiting import wait_for
from tests.rpc.raw import Raw, hello

from slipway import nd, rpc
from slipway.errors import RemoteError, RPCConnectionError, RPCError
from slipway.rpc.protocol import REGISTER_BUSY, Code, Role, frame
from slipway.rpc.proxy import ProxyServer


def free(port, key):
    with rpc.connect_tracker("127.0.0.1", port) as tracker:
        return tracker.summary()["queue_info"].get(key, {}).get("free", 0)


@pytest.fixture(scope="module")
def proxy():
    with rpc.Proxy("127.0.0.1", 0, silent=True) as running:
        yield running


@pytest.fixture(scope="module")
def device(proxy):
    with rpc.Server("127.0.0.1", proxy.port, is_proxy=True, key="far", silent=True) as server:
        wait_for(lambda: free(proxy.port, "far") == 1)
        yield server


def test_session_through_the_proxy(proxy, device):
    values = np.arange(1 << 20, dtype="float32")
    with rpc.connect("127.0.0.1", proxy.port, key="far") as session:
        assert session.key == "far"
        session.upload(values.tobytes(), "f")
        assert session.download("f") == values.tobytes()
        tensor = nd.array(values, session.cpu(0))
        np.testing.assert_array_equal(tensor.numpy(), values)
    with rpc.connect("127.0.0.1", proxy.port, key="far") as session:
        assert session.listdir() == []


def test_one_session_at_a_time_and_the_reason(proxy, device):
    with (
        rpc.connect("127.0.0.1", proxy.port, key="far"),
        pytest.raises(RPCError, match="no 'far' became free within 5 s: 1 registered, in use"),
    ):
        rpc.connect("127.0.0.1", proxy.port, key="far")
    with pytest.raises(RPCError, match=r"no 'near' became free .*registered: far\)"):
        rpc.connect("127.0.0.1", proxy.port, key="near")
    with pytest.raises(RPCError, match="no 'far' with that lease"):
        rpc.connect("127.0.0.1", proxy.port, key="far:" + "0" * 32)


def test_crash_is_told_through_the_proxy(proxy, device, kernels):
    with rpc.connect("127.0.0.1", proxy.port, key="far") as session:
        session.upload(kernels)
        with pytest.raises(RemoteError, match="SIGSEGV"):
            session.load_module("kernels.so")["segfault"]()
    with rpc.connect("127.0.0.1", proxy.port, key="far") as session:
        assert session.ping(b"x") == b"x"


def test_proxy_registers_its_devices_with_a_tracker():
    with rpc.Tracker("127.0.0.1", 0, silent=True) as tracker:
        address = ("127.0.0.1", tracker.port)
        with (
            rpc.Proxy("127.0.0.1", 0, tracker_addr=address, silent=True) as proxy,
            rpc.Server("127.0.0.1", proxy.port, is_proxy=True, key="far", silent=True),
        ):
            wait_for(lambda: free(tracker.port, "far") == 1)
            with rpc.connect_tracker(*address) as client:
                (entry,) = client.summary()["server_info"]
                assert entry["addr"] == ["127.0.0.1", proxy.port]
                with client.request("far") as session:
                    assert session.ping(b"x") == b"x"
                    assert free(tracker.port, "far") == 0
            wait_for(lambda: free(tracker.port, "far") == 1)
            with pytest.raises(RPCError, match="handed out by its tracker; ask there"):
                rpc.connect("127.0.0.1", proxy.port, key="far")
            with pytest.raises(RPCError, match="this proxy hands out no devices itself"):
                rpc.connect_tracker("127.0.0.1", proxy.port)
        wait_for(lambda: free(tracker.port, "far") == 0)


def test_devices_come_back_to_a_restarted_proxy():
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    first = rpc.Proxy("127.0.0.1", port, port + 1, silent=True)
    with rpc.Server("127.0.0.1", port, is_proxy=True, key="far", silent=True):
        wait_for(lambda: free(port, "far") == 1)
        session = rpc.connect("127.0.0.1", port, key="far")
        os.kill(first._process.pid, signal.SIGKILL)
        with pytest.raises(RPCConnectionError):
            session.ping(b"x")
        first.terminate()
        with rpc.Proxy("127.0.0.1", port, port + 1, silent=True):
            wait_for(lambda: free(port, "far") == 1)
            with rpc.connect("127.0.0.1", port, key="far") as again:
                assert again.ping(b"x") == b"x"


def test_static_server_behind_a_proxy(proxy, static_server_behind):
    device = static_server_behind("--port", str(proxy.port), "--key", "static")
    try:
        wait_for(lambda: free(proxy.port, "static") == 1)
        with rpc.connect("127.0.0.1", proxy.port, key="static") as session:
            assert session.description.startswith("slipway-server")
            assert session.ping(b"x") == b"x"
    finally:
        device.terminate()
        assert device.wait(10) == 0


@pytest.fixture
def static_server_behind(tmp_path):
    """Start a static server that dials out to a proxy on this machine."""
    import platform
    import subprocess

    from slipway.toolchain import native

    def start(*arguments):
        server = native.build_device_server(f"{platform.machine()}-linux-gnu")
        return subprocess.Popen(
            [server, "--through-proxy", "--host", "127.0.0.1", *arguments],
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )

    return start


def register(key, lease=b""):
    """The greeting and REGISTER of a device, which is busy with `lease` if it has one."""
    head = struct.pack("<IIII", 1, REGISTER_BUSY if lease else 0, len(lease), 0)
    words = frame(Code.REGISTER, 2, head + lease + bytes(2))
    return hello(role=Role.DEVICE, key=key) + words


def test_lease_stays_with_the_connection_that_came_later(proxy):
    """A device whose connection broke registers anew before the proxy has missed the old one."""
    lease = b"0123456789abcdef" * 2
    old, new = (Raw(proxy, greet=False) for _ in range(2))
    for connection in (old, new):
        connection.send(register(b"back", lease))
        assert [connection.receive()[0] for _ in range(2)] == [Code.WELCOME, Code.RETURN]
    old.close()
    wait_for(lambda: len(devices_of(proxy, "back")) == 1)
    client = Raw(proxy, greet=False)
    client.send(hello(key=b"back:" + lease))
    assert new.receive()[0] == Code.OPEN
    for connection in (client, new):
        connection.close()


def devices_of(proxy, key):
    with rpc.connect_tracker("127.0.0.1", proxy.port) as tracker:
        return [d for d in tracker.summary()["server_info"] if d["key"].startswith(f"server:{key}")]


def test_proxy_that_stops_leaves_no_task_behind():
    """What nobody waits for any more is told to the operator as a traceback of ours."""
    told = []

    async def scenario():
        asyncio.get_running_loop().set_exception_handler(lambda _, what: told.append(what))
        listener = socket.create_server(("127.0.0.1", 0))
        serving = asyncio.ensure_future(ProxyServer().serve(listener))
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(register(b"board"))
        await reader.readexactly(16 + 96 + 16)  # WELCOME, and RETURN of REGISTER
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        writer.close()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
    gc.collect()
    assert not told
