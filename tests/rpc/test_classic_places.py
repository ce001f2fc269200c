"""Servers under the modules where classic TVM has them."""

import contextlib
import importlib

import pytest

from slipway import rpc
from slipway.errors import RPCError


@pytest.mark.parametrize(
    ("module", "name"), [("tracker", "Tracker"), ("proxy", "Proxy"), ("server", "Server")]
)
def test_a_server_is_in_its_module(module, name):
    imported = importlib.import_module(f"slipway.rpc.{module}")
    assert getattr(imported, name) is getattr(rpc, name)
    assert getattr(rpc, module) is imported


def test_a_name_that_is_not_there_says_what_to_use():
    with pytest.raises(AttributeError, match=r"find_rpc_server"):
        _ = rpc.with_minrpc  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Did you mean 'Tracker'"):
        _ = rpc.Trakcer  # type: ignore[attr-defined]


@pytest.mark.parametrize("through_proxy", [False, True])
def test_a_key_may_look_like_an_address(through_proxy):
    key = "127.0.0.1:5555"
    at = {"host": "127.0.0.1", "port": 0, "port_end": 0}
    with contextlib.ExitStack() as ends:
        tracker = rpc.Tracker(**at)
        ends.callback(tracker.terminate)
        address = ("127.0.0.1", tracker.port)
        if through_proxy:
            proxy = rpc.Proxy(**at, tracker_addr=address)
            ends.callback(proxy.terminate)
            at["port"] = proxy.port
        server = rpc.Server(**at, key=key, tracker_addr=address, is_proxy=through_proxy)
        ends.callback(server.terminate)
        client = rpc.connect_tracker(*address)
        assert client.request(key, session_timeout=30).cpu(0).exist
        assert client.summary()["queue_info"][key]["total"] == 1


def test_a_key_that_ends_like_a_lease_is_refused():
    with pytest.raises(RPCError, match="ends like the lease of a device"):
        rpc.Server(port=0, key=f"board:{'0a' * 16}")
