"""A proxy that dies or hangs in the middle of a session, and what its clients and devices do."""

import contextlib
import importlib
import os
import signal
import socket

import pytest
from tests.rpc.faults import work
from tests.rpc.faults.relay import Relay
from tests.rpc.faults.waiting import is_alive, wait_for

from slipway import rpc
from slipway.errors import RPCError, RPCTimeoutError
from slipway.rpc import client as rpc_client


def is_free(port):
    with contextlib.suppress(RPCError), rpc.connect_tracker("127.0.0.1", port) as tracker:
        return tracker.summary()["queue_info"].get("far", {}).get("free", 0) == 1
    return False


class Network:
    """A device behind a proxy; clients reach the proxy through a relay."""

    def __init__(self):
        importlib.import_module("tests.rpc.functions")
        with socket.create_server(("127.0.0.1", 0)) as reserved:
            self.port = reserved.getsockname()[1]
        self.proxies = []
        self.start_proxy()
        self.device = rpc.Server(
            "127.0.0.1", self.port, is_proxy=True, key="far", silent=True, use_popen=False
        )
        self.wait_until_free()

    def start_proxy(self):
        self.proxy = rpc.Proxy("127.0.0.1", self.port, self.port + 1, silent=True)
        self.proxies.append(self.proxy)

    def wait_until_free(self):
        wait_for(lambda: is_free(self.port), 90)

    def connect(self, relay_after, session_timeout=0):
        relay = Relay(self.port, relay_after)
        session = rpc.connect("127.0.0.1", relay.port, "far", session_timeout, timeout=60)
        return session, relay

    def stop(self):
        self.device.terminate()
        for proxy in self.proxies:
            with contextlib.suppress(ProcessLookupError, AttributeError):
                os.kill(proxy._process.pid, signal.SIGCONT)
            proxy.terminate()


@pytest.fixture
def network():
    made = Network()
    yield made
    made.stop()


@pytest.mark.parametrize("moment", work.MOMENTS)
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGSTOP, id="stopped", marks=pytest.mark.long),
    ],
)
def test_proxy_that_dies_or_hangs(network, moment, number, monkeypatch):
    """A MiB of an upload or a copy has passed the relay when it happens; a call is running."""
    monkeypatch.setattr(rpc_client, "STEP_TIMEOUT_S", 3.0)
    monkeypatch.setattr(rpc_client, "_ANSWER_GRACE_S", 0.5)
    hangs = number == signal.SIGSTOP
    busy = work.Work(network, moment, timeout=2.0 if hangs and moment == "call" else None)
    os.kill(network.proxy._process.pid, number)
    error = busy.finish()
    assert isinstance(error, RPCTimeoutError if hangs else RPCError), error
    if hangs:
        os.kill(network.proxy._process.pid, signal.SIGCONT)
    else:
        network.proxy._process.wait()
        network.start_proxy()
    wait_for(lambda: not is_alive(busy.pid))
    network.wait_until_free()
    with rpc.connect("127.0.0.1", network.port, key="far", timeout=60) as after:
        assert after.ping(b"next") == b"next"
