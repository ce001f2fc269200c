"""A proxy that dies or hangs in the middle of a session, and what its clients and devices do."""

import contextlib
import os
import signal
import socket
import threading
import time

import pytest

from slipway import rpc
from slipway.errors import RPCConnectionError, RPCError, RPCTimeoutError
from slipway.rpc import client as rpc_client


def wait_for(condition, seconds=90.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_free(port):
    with contextlib.suppress(RPCError), rpc.connect_tracker("127.0.0.1", port) as tracker:
        return tracker.summary()["queue_info"].get("far", {}).get("free", 0) == 1
    return False


@pytest.fixture
def place():
    """A proxy and a device behind it; yields the list of proxies, the last one of them alive."""
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    proxies = [rpc.Proxy("127.0.0.1", port, port + 1, silent=True)]
    with rpc.Server("127.0.0.1", port, is_proxy=True, key="far", silent=True):
        wait_for(lambda: is_free(port))
        yield proxies
    for proxy in proxies:
        proxy.terminate()


def use(session, moment, errors, begun):
    try:
        begun.set()
        while True:  # until it breaks
            if moment == "upload":
                session.upload(bytes(8 << 20), "big")
            elif moment == "copy":
                session.cpu(0).empty((1 << 20,), "uint8").numpy()
            else:
                session.ping(b"x")
    except Exception as error:
        errors.append(error)


@pytest.mark.parametrize("moment", ["upload", "call", "copy"])
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGSTOP, id="stopped", marks=pytest.mark.long),
    ],
)
def test_proxy_that_dies_or_hangs(place, moment, number, monkeypatch):
    monkeypatch.setattr(rpc_client, "STEP_TIMEOUT_S", 3.0)
    (proxy,) = place
    session = rpc.connect("127.0.0.1", proxy.port, key="far", timeout=60)
    errors, begun = [], threading.Event()
    worker = threading.Thread(target=use, args=(session, moment, errors, begun))
    worker.start()
    assert begun.wait(60)
    os.kill(proxy._process.pid, number)
    worker.join(120)
    expected = (RPCConnectionError, RPCError) if number == signal.SIGKILL else RPCTimeoutError
    assert isinstance(errors[0], expected), errors
    session.close()
    if number == signal.SIGKILL:
        place.append(rpc.Proxy("127.0.0.1", proxy.port, proxy.port + 1, silent=True))
    else:
        os.kill(proxy._process.pid, signal.SIGCONT)
    wait_for(lambda: is_free(proxy.port))
    with rpc.connect("127.0.0.1", proxy.port, key="far", timeout=60) as after:
        assert after.ping(b"next") == b"next"
